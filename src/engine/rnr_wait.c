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
