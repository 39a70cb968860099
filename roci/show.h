/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens in a transfer, told: to people (show_people.c) or to programs (show_json.c). */
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
	FILE *list; /* people: entries are listed here, all else goes to stderr; JSON: events go here */
	bool json, quiet, verbose;
	bool receiving, many; /* many: one session after another, or at once; their lines are numbered */
	bool dry_run;
	struct bar bar;
	unsigned bar_session;
	char where[64];      /* "roci0 over udp" */
	uint64_t told_at_ns; /* without a terminal: of the last line that told progress */
};

/* Ready to be the context of show_event(). */
void show_init(struct show *show);

/* A mover_event_fn whose context is a struct show. */
void show_event(void *context, const struct mover_event *event);

/* A ticket to hand on: printed, or said to be in `file` if that is not NULL. */
void show_ticket(struct show *show, const struct mover_ticket *ticket, const char *file);

/* Tells that nothing could begin. Returns `status`. */
__attribute__((format(printf, 3, 4))) enum mover_status show_failure(struct show *show, enum mover_status status,
								     const char *format, ...);
__attribute__((format(printf, 2, 3))) void show_warning(struct show *show, const char *format, ...);

/* What is behind show_event() and show_ticket(). */
void show_people(struct show *show, const struct mover_event *event);
void show_people_ticket(struct show *show, const struct mover_ticket *ticket, const char *file);
void show_json(struct show *show, const struct mover_event *event);
void show_json_ticket(struct show *show, const struct mover_ticket *ticket, const char *file);

#endif
