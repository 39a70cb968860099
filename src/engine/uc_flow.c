/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/uc_flow.h"

#define UNANSWERED_MAX 3 /* then the peer is unresponsive */

void roci_uc_flow_answer(struct roci_uc_flow *f)
{
	if (f->unresponsive)
		f->paced = false;
	f->answered = true;
	f->unresponsive = f->ack_requested = false;
	f->unanswered = 0;
}

bool roci_uc_flow_silence(struct roci_uc_flow *f)
{
	bool due = f->ack_requested;

	f->ack_requested = false;
	if (due)
		f->unresponsive = ++f->unanswered >= UNANSWERED_MAX;
	return due;
}
