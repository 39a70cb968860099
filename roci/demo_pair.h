/* SPDX-License-Identifier: BSD-2-Clause */
/* The demo's two processes, and the JSON events that they print, in the order of time. */
#ifndef ROCI_DEMO_PAIR_H
#define ROCI_DEMO_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct command;
struct demo_pair;

enum demo_side { DEMO_RECEIVER, DEMO_SENDER, DEMO_SIDES };

struct demo_event {
	enum demo_side side;
	const char *time; /* RFC 3339 */
	json_t *object;
};

struct demo_pair *demo_pair_create(void);
void demo_pair_destroy(struct demo_pair *pair);

/* Runs the receiver in `dir`, and the sender as soon as the receiver's ticket is there. Waits for both. The sender's
 * packets go to the file `capture` in `dir`, with `both` the receiver's, too. Draws a progress bar if stderr is a
 * terminal. Returns 0, or the exit status of the process that failed, after a complaint. */
int demo_pair_run(struct demo_pair *pair, const struct command *command, const char *dir, const char *const *receiver,
		  const char *const *sender, const char *capture, bool both);

const struct demo_event *demo_pair_events(const struct demo_pair *pair, size_t *count);

/* A member of a side's last event of that name; NULL or 0 if there is none. */
const char *demo_pair_string(const struct demo_pair *pair, enum demo_side side, const char *event, const char *member);
double demo_pair_number(const struct demo_pair *pair, enum demo_side side, const char *event, const char *member);

#endif
