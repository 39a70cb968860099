/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel has answered about ways to peers, kept for a millisecond: a program that opens many connections asks
 * the same for each, and every answer costs a system call or three. Routes change without telling, so no answer is kept
 * for longer. Failures are not kept. Pure, like hold.h.
 */
#ifndef ROCI_DEVICE_KEPT_ANSWERS_H
#define ROCI_DEVICE_KEPT_ANSWERS_H

#include <stdint.h>
#include <string.h>

#define ROCI_KEPT_NS     1000000
#define ROCI_KEPT_PLACES 16
#define ROCI_KEPT_BYTES  32 /* of a question, or an answer */

struct roci_kept {
	uint8_t bytes[ROCI_KEPT_BYTES];
};

struct roci_kept_answers {
	struct {
		uint64_t until;
		struct roci_kept question, answer;
	} places[ROCI_KEPT_PLACES];
};

static inline unsigned roci_kept_place(const struct roci_kept *question)
{
	uint32_t hash = 0;

	for (unsigned i = 0; i < ROCI_KEPT_BYTES; i++)
		hash = hash * 31 + question->bytes[i];
	return hash % ROCI_KEPT_PLACES;
}

/* NULL: not known, or no longer. */
static inline const struct roci_kept *roci_kept_find(const struct roci_kept_answers *k, uint64_t now,
						     const struct roci_kept *question)
{
	unsigned i = roci_kept_place(question);

	return now < k->places[i].until && !memcmp(&k->places[i].question, question, sizeof(*question))
		       ? &k->places[i].answer
		       : NULL;
}

static inline void roci_kept_add(struct roci_kept_answers *k, uint64_t now, const struct roci_kept *question,
				 const struct roci_kept *answer)
{
	unsigned i = roci_kept_place(question);

	k->places[i].until = now + ROCI_KEPT_NS;
	k->places[i].question = *question;
	k->places[i].answer = *answer;
}

static inline void roci_kept_forget(struct roci_kept_answers *k)
{
	for (unsigned i = 0; i < ROCI_KEPT_PLACES; i++)
		k->places[i].until = 0;
}

#endif
