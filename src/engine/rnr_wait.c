/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/rnr_wait.h"

bool roci_rnr_wait_is_for(const struct roci_rnr_wait *w, uint32_t psn)
{
	return w->waiting && w->psn == psn;
}

bool roci_rnr_wait_retry(struct roci_rnr_wait *w, unsigned rnr_retry)
{
	if (rnr_retry == ROCI_RNR_RETRY_FOREVER)
		return true;
	if (!w->retries_left)
		return false;
	w->retries_left--;
	return true;
}

void roci_rnr_wait_begin(struct roci_rnr_wait *w, uint32_t psn)
{
	w->waiting = true;
	w->psn = psn;
}

void roci_rnr_wait_keep(struct roci_rnr_wait *w)
{
	w->kept = w->due = true;
}

void roci_rnr_wait_again(struct roci_rnr_wait *w)
{
	w->due = w->kept;
}

void roci_rnr_wait_passed(struct roci_rnr_wait *w, unsigned rnr_retry)
{
	w->kept = w->due = false;
	w->retries_left = (uint8_t)rnr_retry;
}

void roci_rnr_wait_resend(struct roci_rnr_wait *w)
{
	w->kept = w->due = false;
}
