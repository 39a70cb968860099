/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which answers a sender believes. Thousands of packets may be outstanding, and who guesses an answer's PSN hits one of
 * them too easily. So an answer counts where its PSN is near: among the oldest packets that are outstanding, or the
 * newest. Together they are 1 of 2^16 of all PSNs.
 *
 * A peer of ours names PSNs in small steps (ack_steps.h), and others acknowledge whatever asks for it, which every
 * eighth packet does, and every 64th in a fast stream nearby (flight.h). So their answers are near, unless many were
 * lost. After a far one a probe asks (probe.h). A peer of ours repeats its steps then. Another one repeats the same
 * answer: it counts when it came so often that a guess would cost as much as that of a near one.
 */
#ifndef ROCI_ENGINE_FAR_ANSWER_H
#define ROCI_ENGINE_FAR_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/psn.h"
#include "engine/send_window.h"

#define ROCI_ANSWER_OLDEST   224               /* PSNs from the oldest outstanding one on */
#define ROCI_ANSWER_NEWEST   16                /* and of the newest */
#define ROCI_ANSWER_PATIENCE 40                /* equal ones in a row; and more where much is outstanding */
#define ROCI_ANSWER_PAUSE_NS UINT64_C(1000000) /* stands for the round trip before one was measured */

struct roci_far_answer {
	uint32_t psn;   /* of the last one */
	uint32_t count; /* in a row */
	uint64_t asked_at;
	bool open; /* it may have been a NAK, and what comes before it was not believed to be done yet */
};

/* Whether an answer that names `psn`, which is outstanding, is believed by itself. */
static inline bool roci_answer_is_near(const struct roci_send_window *w, uint32_t psn)
{
	return roci_psn_diff(psn, w->una) < ROCI_ANSWER_OLDEST || roci_psn_diff(w->max, psn) <= ROCI_ANSWER_NEWEST;
}

/* How many equal answers in a row count, where so many packets are outstanding. To hit any one of n packets is n times
 * as easy as to hit one, so it takes more. */
static inline uint32_t roci_answer_patience(uint32_t outstanding)
{
	uint32_t least = (outstanding * 5 + 1023) / 1024; /* 40 for 8,192 */

	return least > ROCI_ANSWER_PATIENCE ? least : ROCI_ANSWER_PATIENCE;
}

/* An answer came that is not near. True where it is believed all the same. */
static inline bool roci_far_answer_counts(struct roci_far_answer *f, uint32_t psn, uint32_t outstanding)
{
	if (f->psn != psn)
		f->count = 0;
	f->psn = psn;
	f->open = true;
	if (++f->count < roci_answer_patience(outstanding))
		return false;
	f->count = 0;
	return true;
}

/* How many probes to send now. `srtt`: the path's round trip in ns, 0 where none was measured. Each may be answered
 * with many steps, so there is one question in a while, however many far answers come. */
static inline unsigned roci_far_answer_probes(struct roci_far_answer *f, uint64_t now, uint64_t srtt)
{
	uint64_t pause = (srtt ? srtt : ROCI_ANSWER_PAUSE_NS) / 2;

	if (f->asked_at && now - f->asked_at < pause)
		return 0;
	f->asked_at = now;
	return f->count > 1 ? ROCI_ANSWER_PATIENCE : 1;
}

/* Everything before `una` is done. True where the peer has to be asked once more: if a NAK about `una` was not
 * believed, it does not come again. */
static inline bool roci_far_answer_reached(struct roci_far_answer *f, uint32_t una)
{
	int32_t beyond = roci_psn_diff(una, f->psn);
	bool reached = f->open && (beyond == 0 || beyond == 1);

	f->count = 0;
	f->open = f->open && beyond < 0;
	return reached;
}

#endif
