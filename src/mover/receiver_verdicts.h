/* SPDX-License-Identifier: BSD-2-Clause */
/* From OFFER to VERDICT: a worker decides about the entries of an offer; then the sender gets the verdicts, after the
 * digests of the chunks that are there already. */
#ifndef ROCI_MOVER_RECEIVER_VERDICTS_H
#define ROCI_MOVER_RECEIVER_VERDICTS_H

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct cursor_in;
struct receiver;
struct worker;

struct verdicts {
	struct worker *worker;
	uint32_t offered;             /* entries so far */
	struct batch *first, **last;  /* decided; the sender does not know yet */
	unsigned under_way, deciding; /* offers without a VERDICT, and of them those with the worker */
	bool stdout_taken;            /* the worker's: an entry goes to standard output */
};

/* 0 or -errno. */
int verdicts_init(struct receiver *r);
/* Waits for the worker; r->ending makes that short. */
void verdicts_destroy(struct receiver *r);
/* OFFER has come. */
void verdicts_offer(struct receiver *r, struct cursor_in *payload);
bool verdicts_pump(struct receiver *r);

#endif
