/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows the events of a transfer: to people (show_people.c), or to programs as JSON (show_json.c). */
#ifndef ROCI_SHOW_H
#define ROCI_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "bar.h"
#include "mover/mover.h"

struct device_choice;

/* The context of the events. */
struct show {
	const char *command; /* "send", "recv" */
	const struct device_choice *device;
	FILE *list; /* JSON: gets all events. People: gets the list of entries; the rest goes to stderr */
	bool json, quiet, verbose;
	bool receiving, many; /* many: several sessions, so their lines are numbered */
	bool dry_run;
	bool ticket_shown; /* the next ticket is not the first */
	struct bar bar;
	char where[64];                 /* "roci0 over udp" */
	uint64_t resent, resent_before; /* packets, by this process: since it connected, and before */
	bool resent_known, connected;
	uint64_t local_qps; /* queue pairs of this process that took the local path, when a session was last shown */
	bool broken;        /* the connection; until there is another */
	uint64_t printed_at_ns; /* without a terminal: the time of the last line of progress */
};

/* Prepares it for show_event(). */
void show_init(struct show *show);

/* A mover_event_fn whose context is a struct show. */
void show_event(void *context, const struct mover_event *event);

/* Shows the ticket for the sender, or the name of the `file` that holds it if that is not NULL. */
void show_ticket(struct show *show, const struct mover_ticket *ticket, const char *file);

/* Shows what a sender has to run where everybody is let in. The ticket has the host and the port. */
void show_open(struct show *show, const struct mover_ticket *ticket);

/* Shows a failure outside a session. Returns `status`. */
__attribute__((format(printf, 3, 4))) enum mover_status show_failure(struct show *show, enum mover_status status,
								     const char *format, ...);
__attribute__((format(printf, 2, 3))) void show_warning(struct show *show, const char *format, ...);

/* The two forms of show_event() and show_ticket(); and show_open(), for people only. */
void show_people(struct show *show, const struct mover_event *event);
void show_people_ticket(struct show *show, const struct mover_ticket *ticket, const char *file);
void show_people_open(struct show *show, const struct mover_ticket *ticket);
void show_json(struct show *show, const struct mover_event *event);
void show_json_ticket(struct show *show, const struct mover_ticket *ticket, const char *file);

#endif
