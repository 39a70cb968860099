/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with a connection manager each, applications that act at random, and a network that loses, duplicates,
 * delays and corrupts MADs. Everything is drawn from one seed, and time is virtual.
 *
 * Checked: each event is one that the application's view of its connection allows, and comes once; both sides mean the
 * same connection by their events; every exchange ends within a bound; when all applications have let go, nothing is
 * left in the managers.
 */
#ifndef ROCI_SIM_CM_H
#define ROCI_SIM_CM_H

#include <stdio.h>

#include "cm/cm.h"
#include "cm_inspect.h" /* IWYU pragma: export */
#include "random.h"     /* IWYU pragma: export */

#define US     1000ull
#define MS     1000000ull
#define SECOND 1000000000ull

#define MAX_ENDS   128
#define MAX_EVENTS 4096

enum { HOSTS = 2, SERVICES = 2 };

/* The state of a connection or SIDR exchange as its application knows it. */
enum view {
	VIEW_NONE,
	VIEW_REQ_SENT,      /* active: REQ sent */
	VIEW_REQ_RECEIVED,  /* passive: REQ received */
	VIEW_REP_SENT,      /* passive: REP sent */
	VIEW_REP_RECEIVED,  /* active: REP received */
	VIEW_ESTABLISHED,   /* either */
	VIEW_DREQ_SENT,     /* DREQ sent */
	VIEW_DREQ_RECEIVED, /* DREQ received */
	VIEW_TIMEWAIT,
	VIEW_CLOSED,
	VIEW_SIDR_REQ_SENT,
	VIEW_SIDR_REQ_RECEIVED,
	VIEW_SIDR_CLOSED,
	VIEWS
};

struct end {
	unsigned index, host, boots; /* boots: of the host, when this began */
	unsigned service;            /* active: the one requested; SERVICES: one without any listener */
	enum view view;
	bool active, sidr, fetched, destroyed, was_established, rejected;
	struct roci_conn *conn;
	struct roci_sidr *sidr_handle;
	struct end *peer;  /* passive: the active end; active: the passive end that the last event named */
	uint32_t qpn, psn; /* ours */
	uint8_t resources, depth;
	uint64_t since; /* when `view` began */
};

struct host {
	struct roci_cm *cm;                                     /* NULL: killed */
	struct roci_listener *listeners[SERVICES];              /* NULL: closed */
	uint64_t closed_at[SERVICES], closed_longest[SERVICES]; /* times without a listener */
	uint8_t gid[16];
	unsigned boots;
};

enum event_kind { EV_MAD, EV_ACT, EV_KILL, EV_BOOT, EV_CLOSE, EV_LISTEN };

struct event {
	uint64_t at, order;
	enum event_kind kind;
	unsigned host, service;
	struct end *end;
	struct roci_cm_tx tx;
};

struct sim {
	uint64_t seed, rng, now, order;
	bool verbose, hostile;
	unsigned loss, duplicate; /* per thousand */
	uint64_t delay_max;
	uint64_t blackout_from, blackout_to;
	struct host hosts[HOSTS];
	struct end ends[MAX_ENDS];
	unsigned end_count, budget; /* connections and exchanges to begin */
	struct event events[MAX_EVENTS];
	unsigned event_count, heap[MAX_EVENTS], free_count, free[MAX_EVENTS];
	uint64_t mads, events_seen, half_open;
};

extern struct sim sim;

/* ---- main.c ---- */

/* Ends the program as failed, and prints why and how to replay its seed. */
_Noreturn void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints a line with -v. */
void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Less than limit; 0 when that is 0. */
unsigned sim_below(unsigned limit);
bool sim_chance(unsigned per_thousand);
/* How long an application thinks, in ns: mostly short, sometimes long. */
uint64_t sim_think_time(void);

/* ---- coverage.c: what occurred ---- */

/* The host was started: its connections are others. */
void cover_forget(unsigned host);
/* Looks which connections have another state than before. */
void cover_states(unsigned host);
void cover_message(const struct roci_cm_tx *tx);
void cover_event(enum roci_cm_event_kind kind);
/* Prints what occurred. False where something that can occur did not. */
bool cover_report(void);

/* ---- network.c: scheduled events, and MADs on their way ---- */

struct event *sim_schedule(enum event_kind kind, uint64_t at);
/* Takes the next event that is due no later than `until`. False: none. */
bool sim_next(struct event *out, uint64_t until);
void net_send(const struct roci_cm_tx *tx);
/* Takes all events and MADs out of a host's manager. */
void net_settle(unsigned host);

/* ---- app.c: what applications do ---- */

void app_host_boot(unsigned host);
/* Without a message to its peers. */
void app_host_killed(unsigned host);
/* The host has one listener per service at most. */
void app_listen(unsigned host, unsigned service);
void app_close(unsigned host, unsigned service);
/* A new end: connects, or resolves by SIDR. */
void app_connect(unsigned host);
/* Any call, mostly the one that is expected. */
void app_act(struct end *end);
void app_event(unsigned host, const struct roci_cm_event *ev);
void app_destroy(struct end *end);

/* ---- model.c: what must hold ---- */

void model_enter(struct end *end, enum view view);
/* Checks that the view allows the event, and enters the next view. */
void model_event(struct end *end, const struct roci_cm_event *ev);
/* A rejected request: its service had no listener for as long as requests wait for one. */
void model_check_no_service(const struct end *active);
/* A REQ or REP says what its sender put into it, and belongs to this connection. */
void model_check_request(const struct end *passive, const struct roci_cm_event *ev);
void model_check_rep(const struct end *active, const struct roci_cm_event *ev);
/* No view lasts longer than the protocol allows. */
void model_check_timeouts(void);
/* At the end of a program: both ends of a connection agree. */
void model_check_agreement(void);
const char *model_view_str(enum view view);

#endif
