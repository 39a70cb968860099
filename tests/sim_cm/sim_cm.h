/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with a connection manager each, applications that do what comes to their mind, and a network that loses,
 * doubles, delays and garbles: all of it drawn from one seed, on a virtual clock.
 *
 * What must hold: every event is one that the application's view of its connection allows, and comes once; both sides
 * mean the same connection by what they are told; every exchange ends within a bound; when everybody has let go,
 * nothing is left.
 */
#ifndef ROCI_SIM_CM_H
#define ROCI_SIM_CM_H

#include <stdio.h>

#include "cm/cm.h"
#include "cm_inspect.h"
#include "random.h"

#define US     1000ull
#define MS     1000000ull
#define SECOND 1000000000ull

#define MAX_ENDS   128
#define MAX_EVENTS 4096

enum { HOSTS = 2, SERVICES = 2 };

/* What the application knows of a connection or SIDR exchange of its own: the state of the model. */
enum view {
	VIEW_NONE,
	VIEW_ASKING,      /* active: REQ sent */
	VIEW_ASKED,       /* passive: REQ received */
	VIEW_ANSWERED,    /* passive: REP sent */
	VIEW_GOT_ANSWER,  /* active: REP received */
	VIEW_ESTABLISHED, /* either */
	VIEW_LEAVING,     /* DREQ sent */
	VIEW_LEFT,        /* DREQ received */
	VIEW_TIMEWAIT,
	VIEW_OVER,
	VIEW_SIDR_ASKING,
	VIEW_SIDR_ASKED,
	VIEW_SIDR_OVER,
	VIEWS
};

struct end {
	unsigned index, host, life; /* life: of the host, when it began */
	unsigned service;           /* active: that it asks for; SERVICES: one that nobody ever listens to */
	enum view view;
	bool active, sidr, taken, destroyed, was_established, rejected;
	struct roci_conn *conn;
	struct roci_sidr *sidr_handle;
	struct end *peer;  /* passive: who asks; active: the passive end told last */
	uint32_t qpn, psn; /* ours */
	uint8_t resources, depth;
	uint64_t since; /* the view */
};

struct host {
	struct roci_cm *cm;                                     /* NULL: killed */
	struct roci_listener *listeners[SERVICES];              /* NULL: between two */
	uint64_t closed_at[SERVICES], closed_longest[SERVICES]; /* when nobody listened */
	uint8_t gid[16];
	unsigned life;
	uint64_t cm_deadline;
};

enum event_kind { EV_MAD, EV_ACT, EV_KILL, EV_RISE, EV_CLOSE, EV_LISTEN };

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
	unsigned end_count, budget; /* connections and exchanges still to be begun */
	struct event events[MAX_EVENTS];
	unsigned event_count, heap[MAX_EVENTS], free_count, free[MAX_EVENTS];
	uint64_t mads, told, half_open;
};

extern struct sim sim;

_Noreturn void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
unsigned sim_below(unsigned limit);
bool sim_chance(unsigned per_thousand);
/* Mostly short, sometimes long. */
uint64_t sim_think(void);

/* network.c: what is to happen, and MADs on their way */
struct event *sim_schedule(enum event_kind kind, uint64_t at);
/* Takes the next event that is due no later than `until`; its record is free again when the next is scheduled. False:
 * none. */
bool sim_next(struct event *out, uint64_t until);
void net_send(const struct roci_cm_tx *tx);
/* Everything in the managers that is due: events told, MADs sent. */
void net_settle(unsigned host);

/* app.c */
void app_begin(unsigned host);
void app_act(struct end *end);
void app_told(unsigned host, const struct roci_cm_event *ev);
void app_host_up(unsigned host);
void app_host_killed(unsigned host);
/* A listener goes, and another comes. */
void app_close(unsigned host, unsigned service);
void app_listen(unsigned host, unsigned service);
void app_let_go(struct end *end);

/* model.c */
void model_enter(struct end *end, enum view view);
/* The event is one that the view allows; enters the next. */
void model_event(struct end *end, const struct roci_cm_event *ev);
/* Nobody is refused for want of a listener that was gone for a moment only. */
void model_check_no_service(const struct end *active);
void model_check_request(const struct end *passive, const struct roci_cm_event *ev);
void model_check_answer(const struct end *active, const struct roci_cm_event *ev);
/* Nobody waits longer than the protocol can. */
void model_check_patience(void);
/* All is quiet, and the network whole: both ends of a connection agree. */
void model_audit(void);
const char *model_view_str(enum view view);

#endif
