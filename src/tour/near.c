/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/near.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tour/clock.h"
#include "tour/content.h"
#include "tour/near_post.h"
#include "tour/stop.h"

#define GIVEN_UP_NS  UINT64_C(15000000000) /* on RC, whose own retries end before */
#define ALIVE_NS     UINT64_C(10000000000) /* the far end hears of us at least so often */
#define LOOK_NS      UINT64_C(200000000)   /* how often a near end that waits looks whether the far end has gone */
#define AFTERMATH_NS UINT64_C(300000000)   /* how long the cause of a flush may take to show */

/* Whether an answer of the far end's program ends the time, and not a completion. */
static bool ends_with_answer(const struct tour_plan *plan)
{
	return tour_op_answered(plan->op, plan->qp) && (plan->op != TOUR_WRITE || plan->verify);
}

const struct dial *near_dial(const struct near *n)
{
	return &n->dial;
}

/* ---- completions ---- */

static void take_answer(struct near *n, const struct ibv_wc *wc)
{
	unsigned slot = (uint32_t)wc->wr_id % n->endpoint.slot_count;
	struct failure ignored;
	struct answer a;

	if (!hello_get_answer(endpoint_message(&n->endpoint, slot), endpoint_message_len(&n->endpoint, wc), &a)) {
		n->answer = a;
		n->answered = true;
		n->answer_ns = tour_wall_ns();
	}
	endpoint_post_slot(&n->endpoint, slot, &ignored);
}

static const char *what(const struct near *n, enum wr_kind kind)
{
	switch (kind) {
	case WR_OPERATION: return tour_op_title(n->plan.op);
	case WR_READ_BACK: return "the RDMA READ that verifies";
	case WR_CONTROL: return "a SEND to the far end's program";
	default: return "a receive";
	}
}

/* A QP in the error state flushes all its requests, so the cause may come after a flushed one. */
static int completed_in_error(struct near *n, struct ibv_wc wc, struct failure *f)
{
	uint64_t deadline_ns = tour_now_ns() + AFTERMATH_NS;

	while (wc.status == IBV_WC_WR_FLUSH_ERR || wc.status == IBV_WC_SUCCESS) {
		if (waiter_next(&n->waiter, &wc, deadline_ns) == 1)
			continue;
		return fail(f, -EIO, "what was under way was flushed, because the QP is in the error state");
	}
	fail_wc(f, what(n, wr_kind(wc.wr_id)), wc.status);
	return -EIO;
}

/* Whether the answer is the one to this. Short content has no number, so any will do. */
static bool is_answer(const struct near *n, enum control_kind to, uint32_t seq)
{
	bool by_content = to == CONTROL_ALIVE && (n->plan.op == TOUR_SEND || n->plan.op == TOUR_SEND_INV);
	bool numbered = !by_content || n->plan.size >= CONTENT_NUMBERED_BYTES;

	return n->answered && n->answer.to == to && (!numbered || n->answer.seq == seq);
}

/* Waits for `sends` completions of requests, and for an answer if `to` is not -1. */
static int collect(struct near *n, unsigned sends, int to, uint32_t seq, struct failure *f)
{
	uint64_t patience_ns = n->plan.qp == TOUR_RC ? GIVEN_UP_NS : n->plan.answer_ms * UINT64_C(1000000);
	uint64_t deadline_ns = tour_now_ns() + patience_ns;

	n->answered = false;
	while (sends || (to >= 0 && !is_answer(n, (enum control_kind)to, seq))) {
		uint64_t look_ns = tour_now_ns() + LOOK_NS;
		struct ibv_wc wc;
		int got = waiter_next(&n->waiter, &wc, look_ns < deadline_ns ? look_ns : deadline_ns);
		if (!got && !tour_stopped() && dial_lost(&n->dial, 0))
			return fail(f, -ECONNRESET, "the far end has disconnected");
		if (!got && !tour_stopped() && tour_now_ns() < deadline_ns)
			continue;
		if (got < 0)
			return fail_call(f, "ibv_poll_cq", got);
		if (!got && tour_stopped())
			return fail(f, -EINTR, "interrupted");
		if (!got)
			return fail(f, -ETIMEDOUT, "%s within %g s", sends ? "no completion" : "no answer",
				    (double)patience_ns / 1e9);
		if (wc.status != IBV_WC_SUCCESS)
			return completed_in_error(n, wc, f);
		if (wr_kind(wc.wr_id) == WR_RECEIVE)
			take_answer(n, &wc);
		else
			sends -= sends ? 1 : 0;
		if (wr_kind(wc.wr_id) == WR_OPERATION) {
			n->completed_ns = tour_wall_ns();
			n->woken_ns = n->waiter.woken_ns;
		}
	}
	return 0;
}

/* SENDs a control. With `answered`, waits for the answer to it. */
static int control(struct near *n, enum control_kind kind, uint32_t seq, bool answered, struct failure *f)
{
	struct control c = {kind, n->seed, seq};
	uint8_t bytes[HELLO_CONTROL_BYTES];
	int err;

	hello_put_control(bytes, &c);
	n->heard_ns = tour_now_ns();
	err = endpoint_send(&n->endpoint, &n->controls, 0, WR_CONTROL, bytes, sizeof(bytes), f);
	if (!err)
		err = collect(n, 1, answered ? (int)kind : -1, seq, f);
	if (!err && answered && n->answer.verdict != VERDICT_GOOD)
		err = fail(f, -EIO, "%s", hello_verdict_str(n->answer.verdict));
	return err;
}

/* ---- verification ---- */

static int wrong_content(const struct near *n, const uint8_t *bytes, uint32_t seq, const char *where, struct failure *f)
{
	uint32_t at = content_check(bytes, n->plan.size, n->seed, seq);

	if (at == n->plan.size)
		return 0;
	return fail(f, -EBADMSG, "wrong content %s: byte %u of %u is 0x%02x", where, at, n->plan.size, bytes[at]);
}

/* READs the far end's memory, and compares. */
static int read_back(struct near *n, uint32_t seq, struct failure *f)
{
	uint64_t there;
	int err = near_post_read_back(n, f);

	if (!err)
		err = collect(n, 1, -1, 0, f);
	if (err)
		return err;
	if (n->plan.op == TOUR_WRITE || n->plan.op == TOUR_FLUSH)
		return wrong_content(n, n->back.bytes, seq, "in the far end's memory", f);
	memcpy(&there, n->back.bytes, sizeof(there));
	if (there == n->value)
		return 0;
	return fail(f, -EBADMSG, "the far end's memory has 0x%016llx, not 0x%016llx", (unsigned long long)there,
		    (unsigned long long)n->value);
}

/* CAS and FAA return what was there before. */
static int check_returned(const struct near *n, struct failure *f)
{
	uint64_t returned;

	memcpy(&returned, n->data.bytes, sizeof(returned));
	if (returned == n->previous)
		return 0;
	return fail(f, -EBADMSG, "it returned 0x%016llx, but 0x%016llx was there", (unsigned long long)returned,
		    (unsigned long long)n->previous);
}

static int verify(struct near *n, uint32_t seq, struct failure *f)
{
	if (ends_with_answer(&n->plan)) {
		if (n->answer.verdict == VERDICT_GOOD)
			return 0;
		return fail(f, -EBADMSG, "%s (%u bytes came, the first wrong one is %u)",
			    hello_verdict_str(n->answer.verdict), n->answer.len, n->answer.wrong_at);
	}
	if (!n->plan.verify)
		return 0;
	switch (n->plan.op) {
	case TOUR_READ: near_gather(n, n->back.bytes); return wrong_content(n, n->back.bytes, 0, "was read", f);
	case TOUR_CAS:
	case TOUR_FAA:
		if (check_returned(n, f))
			return -EBADMSG;
		return read_back(n, seq, f);
	default: return read_back(n, seq, f);
	}
}

/* ---- one operation ---- */

static int operate(struct near *n, uint32_t seq, struct near_result *result)
{
	struct failure *f = &result->failure;
	uint64_t started_ns;
	int err = 0;

	if (n->plan.op == TOUR_SEND_INV) {
		err = control(n, CONTROL_PREPARE, seq, true, f);
		n->inv_rkey = n->answer.inv_rkey;
	}
	near_fill(n, seq);
	n->mark = record_mark();
	n->posted_ns = tour_wall_ns();
	n->heard_ns = tour_op_answered(n->plan.op, n->plan.qp) ? tour_now_ns() : n->heard_ns;
	started_ns = tour_now_ns();
	if (!err)
		err = near_post(n, seq, f);
	if (err)
		return err;
	if (n->plan.op == TOUR_WRITE && ends_with_answer(&n->plan)) {
		err = collect(n, near_requests(n), -1, seq, f);
		if (!err)
			err = control(n, CONTROL_CHECK, seq, true, f);
	} else {
		err = collect(n, near_requests(n), ends_with_answer(&n->plan) ? CONTROL_ALIVE : -1, seq, f);
	}
	result->ns = tour_now_ns() - started_ns;
	n->operation_answered_ns = n->answered ? n->answer.times[FAR_ANSWERED] : 0;
	return err ? err : verify(n, seq, f);
}

void near_run(struct near *n, uint32_t seq, struct near_result *result)
{
	int err;

	*result = (struct near_result){0};
	record_trim();
	err = operate(n, seq, result);
	result->good = !err;
	if (err && err != -EINTR && err != -ECONNRESET && dial_lost(&n->dial, 0)) {
		size_t len = strlen(result->failure.text);
		snprintf(result->failure.text + len, sizeof(result->failure.text) - len,
			 "; the far end has disconnected");
		result->over = true;
		return;
	}
	/* A datagram or a message of UC may be lost, and what came may be wrong. Anything else has ended the
	 * connection. */
	result->over = err && err != -EBADMSG && !(err == -ETIMEDOUT && n->plan.qp != TOUR_RC);
}

/* ---- steps ---- */

/* How far the far end's clock is ahead. If the same machine has both, not at all. Else the two ways are taken to be
 * equally long, as NTP does (RFC 5905 s.8). */
static int64_t clock_offset(const struct near *n, const struct answer *a, uint64_t asked_ns)
{
	int64_t there, back;

	if (n->dial.offer.host == device_host())
		return 0;
	there = (int64_t)(a->times[FAR_ANSWERED] - asked_ns);
	back = (int64_t)(n->answer_ns - a->times[FAR_ANSWERED]);
	return (there - back) / 2;
}

static uint32_t peer_qpn(const struct near *n)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	if (n->plan.qp == TOUR_UD)
		return n->endpoint.peer_qpn;
	return ibv_query_qp(n->endpoint.qp, &attr, IBV_QP_DEST_QPN, &init) ? 0 : attr.dest_qp_num;
}

int near_steps(struct near *n, struct near_steps *steps, struct failure *f)
{
	uint64_t asked_ns;
	int64_t offset;
	int err;

	*steps = (struct near_steps){
		.near_registered_ns = n->data.registered_ns,
		.posted_ns = n->posted_ns,
		.completed_ns = n->completed_ns,
		/* the thread may have been awake since before, and have found the completion while it still polled */
		.woken_ns = n->woken_ns > n->posted_ns ? n->woken_ns : 0,
		.answer_ns = ends_with_answer(&n->plan) ? n->answer_ns : 0,
		.near_recorded = record_on(),
		.clocks_differ = n->dial.offer.host != device_host(),
	};
	asked_ns = tour_wall_ns();
	err = control(n, CONTROL_TELL, 0, true, f);
	/* only now: the device writes its record before it sends, and the end of the operation may have waited for that
	 */
	if (steps->near_recorded)
		record_find(n->mark, true, n->plan.op, n->endpoint.qp->qp_num, peer_qpn(n), &steps->record);
	if (err)
		return err;
	steps->far_told = true;
	steps->far_recorded = n->answer.recorded;
	offset = clock_offset(n, &n->answer, asked_ns);
	/* the time of the answer to TELL itself: it belongs to no step */
	n->answer.times[FAR_ANSWERED] =
		n->answer.times[FAR_ANSWERED] && steps->answer_ns ? n->operation_answered_ns : 0;
	for (unsigned i = 0; i < FAR_TIMES; i++)
		steps->far_ns[i] = n->answer.times[i] ? (uint64_t)((int64_t)n->answer.times[i] - offset) : 0;
	return 0;
}

bool near_wait(struct near *n, uint64_t deadline_ns)
{
	struct failure f;

	if (tour_now_ns() - n->heard_ns > ALIVE_NS && control(n, CONTROL_ALIVE, 0, false, &f))
		return true;
	return dial_lost(&n->dial, deadline_ns);
}

/* ---- opening and closing ---- */

static int make_memory(struct near *n, struct failure *f)
{
	struct ibv_pd *pd = n->endpoint.pd;
	unsigned local = IBV_ACCESS_LOCAL_WRITE;
	int err;

	/* the response of a READ is an RDMA WRITE in iWARP (RFC 5040 s.5.2) */
	if (device_is_iwarp(n->endpoint.verbs))
		local |= IBV_ACCESS_REMOTE_WRITE;
	err = region_create(&n->data, pd, near_data_bytes(&n->plan), local, f);
	if (!err)
		err = region_create(&n->back, pd, n->plan.size, local, f);
	if (!err)
		err = region_create(&n->controls, pd, ENDPOINT_SLOT_BYTES, IBV_ACCESS_LOCAL_WRITE, f);
	return err;
}

static int check_device(const struct near *n, struct failure *f)
{
	struct tour_refusal r = tour_refuse(n->plan.op, n->plan.qp, n->plan.way, n->dial.caps, n->dial.offer.caps);

	if (!r.reason)
		return 0;
	return fail(f, -EOPNOTSUPP, "%s%s%s",
		    r.whose == TOUR_NEAR_DEVICE  ? n->dial.device
		    : r.whose == TOUR_FAR_DEVICE ? n->dial.offer.device
						 : "",
		    r.whose == TOUR_BY_STANDARD ? "" : " ", r.reason);
}

int near_open(struct near **out, const struct dial_target *target, const struct tour_plan *plan, struct failure *f)
{
	struct near *n = *out = calloc(1, sizeof(*n));
	struct endpoint_wish wish = {
		.op = plan->op,
		.type = plan->qp,
		.sges = plan->sges,
		.inline_bytes = plan->inline_data ? plan->size : 0,
	};
	struct hello_request request = {
		.op = plan->op,
		.qp = plan->qp,
		.verify = plan->verify,
		.steps = plan->steps,
		.size = plan->size,
		.host = device_host(),
	};
	int err;

	if (!n)
		return fail_call(f, "calloc", ENOMEM);
	n->dial.fd = -1;
	n->plan = *plan;
	n->heard_ns = tour_now_ns();
	if (getrandom(&n->seed, sizeof(n->seed), 0) != (ssize_t)sizeof(n->seed))
		return fail_call(f, "getrandom", errno);
	request.seed = n->seed;
	err = (plan->way == TOUR_CM ? dial_cm : dial_socket)(&n->dial, target, &n->endpoint, &wish, &request, f);
	/* If an end cannot do it, that is the better reason: the call that failed is a consequence. */
	if (err && n->dial.caps && !n->dial.offer.caps)
		n->dial.offer.caps = TOUR_CAPS_ALL;
	if (n->dial.caps && check_device(n, f))
		return -EOPNOTSUPP;
	if (!err)
		err = make_memory(n, f);
	return err ? err : waiter_start(&n->waiter, &n->endpoint, plan->wait, f);
}

void near_close(struct near *n)
{
	struct failure ignored;

	if (!n)
		return;
	if (n->waiter.endpoint && n->plan.qp == TOUR_UD)
		control(n, CONTROL_BYE, 0, false, &ignored);
	waiter_stop(&n->waiter);
	dial_disconnect(&n->dial);
	region_destroy(&n->controls);
	region_destroy(&n->back);
	region_destroy(&n->data);
	endpoint_destroy(&n->endpoint);
	dial_end(&n->dial);
	free(n);
}
