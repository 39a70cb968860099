/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets `roci dump` shows. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "wire/gid.h"

const char *const dump_op_names[] = {"any",   "send", "write", "read", "atomic", "atomic-write",
				     "flush", "ack",  "nak",   "cm",   "cnp",    NULL};

/* Of enum ibv_wr_opcode and ibv_wc_opcode; the headers of Debian 12 do not have these. */
#define WR_FLUSH        14
#define WR_ATOMIC_WRITE 15
#define WC_FLUSH        8
#define WC_ATOMIC_WRITE 9

enum op { ANY, SEND, WRITE, READ, ATOMIC, ATOMIC_WRITE, FLUSH, ACK, NAK, CM, CNP };

static bool parse_gid(const char *text, uint8_t gid[16])
{
	uint8_t ipv4[4];

	if (inet_pton(AF_INET, text, ipv4) == 1) {
		roci_gid_from_ipv4(gid, ipv4);
		return true;
	}
	return inet_pton(AF_INET6, text, gid) == 1;
}

int dump_filter_parse(const struct command *self, const struct dump_choices *choices, struct dump_filter *filter)
{
	*filter = (struct dump_filter){.errors = choices->errors,
				       .all = choices->all,
				       .packets = choices->packets,
				       .op = choices->op,
				       .steps = choices->verbose || choices->json};
	if (choices->qp) {
		char *end;
		unsigned long value;

		errno = 0;
		value = strtoul(choices->qp, &end, 0);
		if (errno || *end || value > ROCI_QPN_MASK)
			return complain(self, "--qp '%s' is not a QP number: use 0x000011 or 17, up to 0xffffff",
					choices->qp);
		filter->by_qp = true;
		filter->qpn = (uint32_t)value;
	}
	if (choices->host && !parse_gid(choices->host, filter->gid))
		return complain(self, "--host '%s' is not an IP address; captures hold no names", choices->host);
	filter->by_host = choices->host;
	return 0;
}

static bool op_matches(unsigned op, const struct capture_event *e)
{
	bool cm = e->sort == CAPTURE_SORT_CM, nak = e->flags & (CAPTURE_NAK | CAPTURE_RNR);

	if (op == ANY)
		return true;
	if (op == CM || cm)
		return op == CM && cm;
	if (e->sort != CAPTURE_SORT_ROCE)
		return false;
	if (op == NAK || nak)
		return op == NAK && nak;
	switch ((enum roci_kind)e->packet.op->kind) {
	case ROCI_KIND_SEND: return op == SEND;
	case ROCI_KIND_WRITE: return op == WRITE;
	case ROCI_KIND_READ_REQUEST:
	case ROCI_KIND_READ_RESPONSE: return op == READ;
	case ROCI_KIND_ACK: return op == ACK;
	case ROCI_KIND_ATOMIC:
	case ROCI_KIND_ATOMIC_ACK: return op == ATOMIC;
	case ROCI_KIND_ATOMIC_WRITE: return op == ATOMIC_WRITE;
	case ROCI_KIND_FLUSH: return op == FLUSH;
	case ROCI_KIND_CNP: return op == CNP;
	case ROCI_KIND_OFFER:
	case ROCI_KIND_HELLO:
	case ROCI_KIND_CHALLENGE:
	case ROCI_KIND_MTU_PROBE:
	case ROCI_KIND_PIECE: return false;
	case ROCI_KIND_RANGES: return op == ACK;
	}
	return false;
}

static bool qp_matches(uint32_t qpn, const struct capture_event *e)
{
	bool roce = e->sort == CAPTURE_SORT_ROCE || e->sort == CAPTURE_SORT_CM;

	return roce &&
	       (e->packet.dest_qpn == qpn || (e->src_qpn_known && e->src_qpn == qpn) || (e->cm && e->cm->qpn == qpn));
}

bool dump_filter_admits(const struct dump_filter *filter, const struct capture_event *e)
{
	const struct roci_flow *flow = &e->frame->flow;

	if (!filter->all && (e->sort == CAPTURE_SORT_OTHER || e->sort == CAPTURE_SORT_FRAGMENT))
		return false;
	if (filter->errors && !(e->flags & CAPTURE_ERRORS) && e->sort != CAPTURE_SORT_ICMP)
		return false;
	if (filter->by_qp && !qp_matches(filter->qpn, e))
		return false;
	if (filter->by_host && memcmp(flow->src, filter->gid, 16) && memcmp(flow->dst, filter->gid, 16))
		return false;
	return op_matches(filter->op, e);
}

/* ---- records ---- */

/* What the completion of a request, or of a receive, is about. */
static unsigned op_of_completion(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WC_SEND:
	case IBV_WC_RECV: return SEND;
	case IBV_WC_RDMA_WRITE:
	case IBV_WC_RECV_RDMA_WITH_IMM: return WRITE;
	case IBV_WC_RDMA_READ: return READ;
	case IBV_WC_COMP_SWAP:
	case IBV_WC_FETCH_ADD: return ATOMIC;
	case WC_FLUSH: return FLUSH;
	case WC_ATOMIC_WRITE: return ATOMIC_WRITE;
	default: return ANY;
	}
}

static unsigned op_of_post(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV: return SEND;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM: return WRITE;
	case IBV_WR_RDMA_READ: return READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD: return ATOMIC;
	case WR_FLUSH: return FLUSH;
	case WR_ATOMIC_WRITE: return ATOMIC_WRITE;
	default: return ANY;
	}
}

static unsigned op_of_request(uint8_t opcode)
{
	const struct roci_opcode_info *op = roci_opcode_info(opcode);

	switch (op ? op->kind : ROCI_KIND_CNP) {
	case ROCI_KIND_WRITE: return WRITE;
	case ROCI_KIND_READ_REQUEST: return READ;
	case ROCI_KIND_ATOMIC: return ATOMIC;
	case ROCI_KIND_ATOMIC_WRITE: return ATOMIC_WRITE;
	case ROCI_KIND_FLUSH: return FLUSH;
	default: return ANY;
	}
}

static unsigned op_of_record(const struct roci_record *r)
{
	switch (r->kind) {
	case ROCI_RECORD_POST_SEND:
	case ROCI_RECORD_SEND_TAKEN: return op_of_post(r->opcode);
	case ROCI_RECORD_POST_RECV:
	case ROCI_RECORD_RECV_TAKEN:
	case ROCI_RECORD_POST_SRQ: return SEND;
	case ROCI_RECORD_EXECUTED: return op_of_request(r->opcode);
	case ROCI_RECORD_COMPLETION: return op_of_completion(r->opcode);
	case ROCI_RECORD_CM_EVENT: return CM;
	default: return ANY;
	}
}

bool dump_filter_admits_record(const struct dump_filter *filter, const struct roci_record *r)
{
	if (filter->packets || (filter->errors && !capture_record_is_error(r)))
		return false;
	if (capture_record_is_step(r) && !filter->steps)
		return false;
	if (filter->by_qp && r->qpn != filter->qpn && r->peer != filter->qpn)
		return false;
	if (filter->by_host && memcmp(r->local_gid, filter->gid, 16) && memcmp(r->remote_gid, filter->gid, 16))
		return false;
	return filter->op == ANY || filter->op == op_of_record(r);
}
