/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/record_meaning.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <string.h>

#include "capture/field_out.h"
#include "capture/line.h"
#include "capture/record_names.h"
#include "explain/explain.h"
#include "wire/opcode.h"

#define CM_REJECTED 3 /* enum roci_cm_event_kind: docs/WIRE.md */

static const struct {
	const char *name, *word;
} kinds[ROCI_RECORD_KINDS] = {
	[ROCI_RECORD_PROCESS] = {"process", "process"},
	[ROCI_RECORD_POST_SEND] = {"post send", "post_send"},
	[ROCI_RECORD_POST_RECV] = {"post receive", "post_recv"},
	[ROCI_RECORD_POST_SRQ] = {"post receive to SRQ", "post_srq"},
	[ROCI_RECORD_COMPLETION] = {"completion", "completion"},
	[ROCI_RECORD_QP_STATE] = {"QP state", "qp_state"},
	[ROCI_RECORD_CM_EVENT] = {"connection event", "cm_event"},
	[ROCI_RECORD_FAULT] = {"--fault", "fault"},
	[ROCI_RECORD_SEND_TAKEN] = {"send begun", "send_taken"},
	[ROCI_RECORD_RECV_TAKEN] = {"receive taken", "recv_taken"},
	[ROCI_RECORD_EXECUTED] = {"request executed", "executed"},
};

const char *capture_record_name(const struct roci_record *r)
{
	return kinds[r->kind].name;
}

const char *capture_record_word(const struct roci_record *r)
{
	return kinds[r->kind].word;
}

bool capture_record_is_error(const struct roci_record *r)
{
	switch (r->kind) {
	case ROCI_RECORD_COMPLETION: return r->status != IBV_WC_SUCCESS;
	case ROCI_RECORD_QP_STATE: return r->status == IBV_QPS_ERR || r->status == IBV_QPS_SQE;
	case ROCI_RECORD_CM_EVENT: return r->status != 0;
	case ROCI_RECORD_FAULT: return true;
	default: return false;
	}
}

bool capture_record_is_step(const struct roci_record *r)
{
	return r->kind == ROCI_RECORD_SEND_TAKEN || r->kind == ROCI_RECORD_RECV_TAKEN ||
	       r->kind == ROCI_RECORD_EXECUTED;
}

/* ---- runs ---- */

static bool is_receive(const struct roci_record *r)
{
	return r->kind == ROCI_RECORD_POST_RECV || r->kind == ROCI_RECORD_POST_SRQ;
}

static bool says_the_same(const struct roci_record *a, const struct roci_record *b)
{
	bool joins = is_receive(a) || (a->kind == ROCI_RECORD_COMPLETION && a->status == IBV_WC_WR_FLUSH_ERR);

	return joins && a->kind == b->kind && a->pid == b->pid && a->qpn == b->qpn && a->queue == b->queue &&
	       a->opcode == b->opcode && a->status == b->status && a->length == b->length;
}

bool capture_run_add(struct capture_run *run, const struct roci_record *record)
{
	if (run->count && !says_the_same(&run->first, record))
		return false;
	if (!run->count++)
		run->first = *record;
	run->last_wr_id = record->wr_id;
	return true;
}

/* ---- in a line ---- */

static void put_wr_id(struct capture_line *line, const struct capture_run *run)
{
	uint64_t first = run->first.wr_id, last = run->last_wr_id;
	bool large = first > UINT32_MAX || last > UINT32_MAX;

	capture_put(line, large ? ", wr_id 0x%" PRIx64 : ", wr_id %" PRIu64, first);
	if (last != first)
		capture_put(line, large ? " to 0x%" PRIx64 : " to %" PRIu64, last);
}

static void put_post_send(struct capture_line *line, const struct capture_run *run)
{
	const struct roci_record *r = &run->first;

	capture_put(line, "%s", capture_post_name(r->opcode));
	if (r->length)
		capture_put_bytes(line, r->length);
	if (r->rkey)
		capture_put(line, ", remote address 0x%" PRIx64 ", rkey 0x%08" PRIx32, r->remote_addr, r->rkey);
	if (r->opcode == IBV_WR_SEND_WITH_IMM || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		capture_put(line, ", immediate 0x%08" PRIx32, be32toh(r->imm));
	if (r->opcode == IBV_WR_SEND_WITH_INV || r->opcode == IBV_WR_LOCAL_INV)
		capture_put(line, ", invalidates 0x%08" PRIx32, r->imm);
	put_wr_id(line, run);
	capture_put(line, "%s%s%s%s", r->flags & IBV_SEND_SIGNALED ? "" : ", not signaled",
		    r->flags & IBV_SEND_FENCE ? ", fence" : "", r->flags & IBV_SEND_SOLICITED ? ", solicited" : "",
		    r->flags & IBV_SEND_INLINE ? ", inline" : "");
}

static void put_post_receive(struct capture_line *line, const struct capture_run *run)
{
	if (run->count > 1)
		capture_put(line, "%" PRIu64 " receives of", run->count);
	else
		capture_put(line, "receive of");
	capture_put_bytes(line, run->first.length);
	put_wr_id(line, run);
}

static void put_completion(struct capture_line *line, const struct capture_run *run)
{
	const struct roci_record *r = &run->first;
	const struct explanation *why = r->status ? explain_wc_status((int)r->status) : NULL;

	if (run->count > 1)
		capture_put(line, "%" PRIu64 " of ", run->count);
	capture_put(line, "%s", capture_completion_name(r->opcode));
	if (!r->status) {
		capture_put(line, " is done");
		if (r->length) {
			capture_put(line, ",");
			capture_put_bytes(line, r->length);
		}
		if (r->flags & IBV_WC_WITH_IMM)
			capture_put(line, ", immediate 0x%08" PRIx32, be32toh(r->imm));
		if (r->flags & IBV_WC_WITH_INV)
			capture_put(line, ", invalidated 0x%08" PRIx32, r->imm);
		put_wr_id(line, run);
		return;
	}
	capture_put(line, " failed");
	put_wr_id(line, run);
	if (why)
		capture_put(line, ": %s (%" PRIu32 "): %s", why->name, r->status, why->title);
	else
		capture_put(line, ": status %" PRIu32, r->status);
}

static void put_state(struct capture_line *line, const struct roci_record *r)
{
	capture_put(line, "%s", capture_qp_state_name(r->status));
	if (r->status == IBV_QPS_RTR && r->peer)
		capture_put(line, ", connected to 0x%06" PRIx32 ", path MTU %" PRIu64, r->peer, r->length);
}

static void put_connection(struct capture_line *line, const struct roci_record *r)
{
	bool rejected = r->opcode == CM_REJECTED, error = (int32_t)r->status < 0;
	const struct explanation *why = rejected ? explain_code(EXPLAIN_CM_REJECT, (int)r->status)
					: error  ? explain_code(EXPLAIN_ERRNO, -(int32_t)r->status)
						 : NULL;

	capture_put(line, "%s", capture_cm_event_name(r->opcode));
	if (r->status)
		capture_put(line, ", %s %" PRId32, rejected ? "reason" : "status", (int32_t)r->status);
	if (why)
		capture_put(line, ": %s", why->title);
	if (r->peer)
		capture_put(line, ", QP 0x%06" PRIx32 " there", r->peer);
}

static void put_fault(struct capture_line *line, const struct roci_record *r)
{
	const struct roci_opcode_info *op = roci_opcode_info(r->opcode);

	capture_put(line, "%s %s: %s, PSN %" PRIu32, capture_fault_name(r->status),
		    r->flags ? "before it was sent" : "after it arrived", op ? op->name : "a packet", r->imm);
}

/* What the device does between a post and its completion. */
static void put_step(struct capture_line *line, const struct capture_run *run)
{
	const struct roci_record *r = &run->first;
	const struct roci_opcode_info *op = roci_opcode_info(r->opcode);

	if (r->kind == ROCI_RECORD_EXECUTED) {
		capture_put(line, "the device has executed the peer's %s", op ? op->name : "request");
		return;
	}
	if (r->kind == ROCI_RECORD_RECV_TAKEN) {
		capture_put(line, "a message takes the receive");
	} else {
		capture_put(line, "the device begins with %s", capture_post_name(r->opcode));
		if (r->length)
			capture_put_bytes(line, r->length);
	}
	put_wr_id(line, run);
}

const char *capture_run_meaning(const struct capture_run *run, char text[CAPTURE_RECORD_CHARS])
{
	struct capture_line line = {text, CAPTURE_RECORD_CHARS, 0};
	const struct roci_record *r = &run->first;

	text[0] = 0;
	switch (r->kind) {
	case ROCI_RECORD_PROCESS: capture_put(&line, "%s begins", r->text); break;
	case ROCI_RECORD_POST_SEND: put_post_send(&line, run); break;
	case ROCI_RECORD_POST_RECV:
	case ROCI_RECORD_POST_SRQ: put_post_receive(&line, run); break;
	case ROCI_RECORD_COMPLETION: put_completion(&line, run); break;
	case ROCI_RECORD_QP_STATE: put_state(&line, r); break;
	case ROCI_RECORD_CM_EVENT: put_connection(&line, r); break;
	case ROCI_RECORD_FAULT: put_fault(&line, r); break;
	case ROCI_RECORD_SEND_TAKEN:
	case ROCI_RECORD_RECV_TAKEN:
	case ROCI_RECORD_EXECUTED: put_step(&line, run); break;
	default: break;
	}
	return text;
}

/* ---- field by field ---- */

#define OF(kind)    (1u << ROCI_RECORD_##kind)
#define POSTS       (OF(POST_SEND) | OF(POST_RECV) | OF(POST_SRQ))
#define TAKEN       (OF(SEND_TAKEN) | OF(RECV_TAKEN))
#define OF_A_QP     (OF(POST_SEND) | OF(POST_RECV) | OF(COMPLETION) | OF(QP_STATE) | TAKEN | OF(EXECUTED))
#define WORK        (POSTS | OF(COMPLETION) | TAKEN)
#define WITH_LENGTH (POSTS | OF(COMPLETION) | OF(FAULT) | OF(SEND_TAKEN))
#define WITH_OPCODE (OF(POST_SEND) | OF(COMPLETION) | OF(CM_EVENT) | OF(FAULT) | OF(SEND_TAKEN) | OF(EXECUTED))
#define WITH_STATUS (OF(COMPLETION) | OF(QP_STATE) | OF(CM_EVENT) | OF(FAULT))

static const char *opcode_text(const struct roci_record *r)
{
	const struct roci_opcode_info *op = roci_opcode_info(r->opcode);

	switch (r->kind) {
	case ROCI_RECORD_POST_SEND:
	case ROCI_RECORD_SEND_TAKEN: return capture_post_name(r->opcode);
	case ROCI_RECORD_COMPLETION: return capture_completion_name(r->opcode);
	case ROCI_RECORD_CM_EVENT: return capture_cm_event_name(r->opcode);
	default: return op ? op->name : NULL;
	}
}

static const char *status_text(const struct roci_record *r)
{
	const struct explanation *why;

	switch (r->kind) {
	case ROCI_RECORD_COMPLETION:
		why = explain_wc_status((int)r->status);
		return why ? why->name : r->status ? NULL : "IBV_WC_SUCCESS";
	case ROCI_RECORD_QP_STATE: return capture_qp_state_name(r->status);
	case ROCI_RECORD_FAULT: return capture_fault_name(r->status);
	default: return NULL;
	}
}

static void put_gid(struct capture_field_out *out, const char *name, const uint8_t gid[16])
{
	static const uint8_t none[16];

	if (memcmp(gid, none, sizeof(none)))
		capture_out_bytes(out, "record", name, CAPTURE_FIELD_ADDRESS, gid, 16);
}

void capture_record_fields(const struct roci_record *r, capture_field_fn *fn, void *context)
{
	struct capture_field_out out = {fn, context};
	const struct {
		unsigned kinds;
		const char *name;
		uint64_t value;
		unsigned digits; /* hexadecimal; 0: decimal */
		const char *text;
	} rows[] = {
		{OF_A_QP, "qp_type", r->qp_type, 0, NULL},
		{WITH_OPCODE, "opcode", r->opcode, 0, opcode_text(r)},
		{WITH_STATUS, "status", r->status, 0, status_text(r)},
		{OF(POST_SEND) | OF(COMPLETION), "flags", r->flags, 8, NULL},
		{OF_A_QP | OF(FAULT), "qpn", r->qpn, 6, NULL},
		{(OF_A_QP & ~OF(POST_RECV)) | OF(CM_EVENT), "peer", r->peer, 6, NULL},
		{WORK, r->kind == ROCI_RECORD_POST_SRQ ? "srq" : "cq", r->queue, 0, NULL},
		{WORK, "wr_id", r->wr_id, 16, NULL},
		{WITH_LENGTH, "length", r->length, 0, NULL},
		{OF(QP_STATE), "mtu", r->length, 0, NULL},
		{OF(POST_SEND) | OF(COMPLETION), "imm", be32toh(r->imm), 8, NULL},
		{OF(FAULT), "psn", r->imm, 0, NULL},
		{OF(POST_SEND), "remote_addr", r->remote_addr, 16, NULL},
		{OF(POST_SEND), "rkey", r->rkey, 8, NULL},
	};

	capture_out_number(&out, "record", "pid", r->pid, NULL);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!(rows[i].kinds & 1u << r->kind))
			continue;
		if (rows[i].digits)
			capture_out_hex(&out, "record", rows[i].name, rows[i].value, rows[i].digits, rows[i].text);
		else
			capture_out_number(&out, "record", rows[i].name, rows[i].value, rows[i].text);
	}
	if (r->kind == ROCI_RECORD_FAULT)
		capture_out_bool(&out, "record", "outbound", r->flags);
	put_gid(&out, "local", r->local_gid);
	put_gid(&out, "remote", r->remote_gid);
}
