/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "capture/tracker_internal.h"
#include "wire/mtu.h"

/* A message that is sent again keeps its transaction ID (IBTA 13.4.6.4). Returns whether it was seen. */
static bool seen_before(struct capture_cm_story *story, const struct capture_recent *message)
{
	for (unsigned i = 0; i < CAPTURE_RECENT; i++) {
		const struct capture_recent *r = &story->recent[i];

		if (r->used && r->view == message->view && r->tid == message->tid &&
		    r->attribute == message->attribute && r->local_id == message->local_id &&
		    !memcmp(r->src, message->src, sizeof(r->src)))
			return true;
	}
	story->recent[story->next_recent++ % CAPTURE_RECENT] = *message;
	return false;
}

static void judge_again(struct capture_cm_story *story, struct capture_event *e)
{
	struct capture_recent message = {.used = true,
					 .view = e->record->direction == CAPTURE_INBOUND ? CAPTURE_ARRIVING
											 : CAPTURE_LEAVING,
					 .tid = e->cm->tid,
					 .local_id = e->cm->local_id,
					 .attribute = e->cm->attribute};

	memcpy(message.src, e->frame->flow.src, sizeof(message.src));
	if (seen_before(story, &message))
		e->flags |= message.view == CAPTURE_ARRIVING ? CAPTURE_DUPLICATE : CAPTURE_SENT_AGAIN;
}

static void take_req(struct capture_cm_story *story, const struct capture_event *e)
{
	struct capture_request *r = &story->requests[story->next_request++ % CAPTURE_REQUESTS];

	*r = (struct capture_request){.used = true,
				      .local_id = e->cm->local_id,
				      .qpn = e->cm->qpn,
				      .transport = e->cm->transport,
				      .mtu = e->cm->mtu};
	memcpy(r->src, e->frame->flow.src, sizeof(r->src));
	memcpy(r->dst, e->frame->flow.dst, sizeof(r->dst));
}

/* The REP names the QP of its sender, and the request, which named the other. */
static void take_rep(struct capture_tracker *t, const struct capture_event *e)
{
	const struct roci_flow *flow = &e->frame->flow;

	for (unsigned i = 0; i < CAPTURE_REQUESTS; i++) {
		const struct capture_request *r = &t->cm.requests[i];
		const struct capture_key key = {.src = flow->dst,
						.dst = flow->src,
						.dest_qpn = e->cm->qpn,
						.transport = r->transport == ROCI_CM_UC ? ROCI_TRANSPORT_UC
											: ROCI_TRANSPORT_RC};

		if (!r->used || r->local_id != e->cm->remote_id || memcmp(r->src, flow->dst, 16))
			continue;
		capture_talk_connect(t->talks, &key, r->qpn,
				     roci_mtu_code_is_valid(r->mtu) ? roci_mtu_bytes(r->mtu) : 0, false,
				     e->record->time_ns, t->given_up, t->given_up_context);
		return;
	}
}

bool capture_take_cm(struct capture_tracker *t, struct capture_event *e)
{
	if (e->packet.payload_len != ROCI_CM_MAD_BYTES || e->flags & CAPTURE_CUT ||
	    roci_cm_msg_parse(&t->cm.msg, e->packet.payload) != ROCI_CM_PARSE_OK)
		return false;
	e->cm = &t->cm.msg;
	judge_again(&t->cm, e);
	if (e->cm->attribute == ROCI_CM_ATTR_REQ)
		take_req(&t->cm, e);
	else if (e->cm->attribute == ROCI_CM_ATTR_REP)
		take_rep(t, e);
	else if (e->cm->attribute == ROCI_CM_ATTR_REJ || (e->cm->attribute == ROCI_CM_ATTR_SIDR_REP && e->cm->outcome))
		e->flags |= CAPTURE_REJECT;
	return true;
}
