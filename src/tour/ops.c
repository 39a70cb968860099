/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operation is possible where: IBTA vol. 1, table 37 (operations per transport), and what devices lack. */
#include <stddef.h>

#include "tour/tour.h"

const char *const tour_op_names[] = {"send", "send-imm", "send-inv",     "write", "write-imm", "read",
				     "cas",  "faa",      "atomic-write", "flush", "all",       NULL};
const char *const tour_qp_names[] = {"rc", "uc", "ud", NULL};
const char *const tour_way_names[] = {"cm", "socket", NULL};
const char *const tour_wait_names[] = {"poll", "event", NULL};

enum { ON_RC = 1 << TOUR_RC, ON_UC = 1 << TOUR_UC, ON_UD = 1 << TOUR_UD };

static const struct row {
	const char *title;
	unsigned types; /* of QPs that have it */
	uint32_t needs; /* bits of enum tour_cap */
	bool answered, atomic, carries;
} rows[TOUR_OPS] = {
	[TOUR_SEND] = {"SEND", ON_RC | ON_UC | ON_UD, 0, .answered = true, .carries = true},
	[TOUR_SEND_IMM] = {"SEND with immediate data", ON_RC | ON_UC | ON_UD, TOUR_CAP_IMM, .answered = true,
			   .carries = true},
	[TOUR_SEND_INV] = {"SEND with invalidate", ON_RC, TOUR_CAP_WINDOW, .answered = true, .carries = true},
	[TOUR_WRITE] = {"RDMA WRITE", ON_RC | ON_UC, 0, .carries = true},
	[TOUR_WRITE_IMM] = {"RDMA WRITE with immediate data", ON_RC | ON_UC, TOUR_CAP_IMM, .answered = true,
			    .carries = true},
	[TOUR_READ] = {"RDMA READ", ON_RC, 0},
	[TOUR_CAS] = {"COMPARE & SWAP", ON_RC, TOUR_CAP_ATOMIC, .atomic = true},
	[TOUR_FAA] = {"FETCH & ADD", ON_RC, TOUR_CAP_ATOMIC, .atomic = true},
	[TOUR_ATOMIC_WRITE] = {"ATOMIC WRITE", ON_RC, TOUR_CAP_ATOMIC_WRITE, .atomic = true},
	[TOUR_FLUSH] = {"FLUSH after an RDMA WRITE", ON_RC, TOUR_CAP_FLUSH, .carries = true},
};

static const struct {
	uint32_t cap;
	const char *reason;
} lacks[] = {
	{TOUR_CAP_RC, "has no RC"},
	{TOUR_CAP_UC, "has no UC (iWARP and some adapters)"},
	{TOUR_CAP_UD, "has no UD (iWARP)"},
	{TOUR_CAP_IMM, "has no immediate data (iWARP)"},
	{TOUR_CAP_ATOMIC, "has no atomic operations"},
	{TOUR_CAP_ATOMIC_WRITE, "or its library has no ATOMIC WRITE (rdma-core 44, Linux 6.2)"},
	{TOUR_CAP_FLUSH, "or its library has no FLUSH (rdma-core 47, Linux 6.2)"},
	{TOUR_CAP_WINDOW, "has no memory windows of type 2, whose rkey could be invalidated"},
	{TOUR_CAP_BARE, "is iWARP: its connections are TCP connections, and only rdma_cm makes them"},
	{TOUR_CAP_CM_UC, "cannot listen for UC through rdma_cm"},
};

const char *tour_op_title(enum tour_op op)
{
	return rows[op].title;
}

bool tour_op_answered(enum tour_op op, enum tour_qp qp)
{
	return rows[op].answered || (op == TOUR_WRITE && qp == TOUR_UC);
}

bool tour_op_atomic(enum tour_op op)
{
	return rows[op].atomic;
}

bool tour_op_carries(enum tour_op op)
{
	return rows[op].carries;
}

/* What the transport service forbids, whatever the device. */
static const char *forbidden(enum tour_op op, enum tour_qp qp)
{
	if (rows[op].types & 1u << qp)
		return NULL;
	if (qp == TOUR_UD)
		return op == TOUR_SEND_INV
			       ? "UD has no invalidate: whoever knows a QP's number and Q_Key may send to it"
			       : "UD has no RDMA: a datagram has no connection whose peer could be given rights to "
				 "memory";
	return op == TOUR_SEND_INV ? "UC has no invalidate: the sender would not learn whether it happened"
				   : "UC has no acknowledgements, so nothing that returns data or a result";
}

static const char *lacking(uint32_t needs, uint32_t caps)
{
	for (unsigned i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
		if (needs & ~caps & lacks[i].cap)
			return lacks[i].reason;
	}
	return NULL;
}

struct tour_refusal tour_refuse(enum tour_op op, enum tour_qp qp, enum tour_way way, uint32_t near, uint32_t far)
{
	uint32_t needs = rows[op].needs | (qp == TOUR_RC ? TOUR_CAP_RC : qp == TOUR_UC ? TOUR_CAP_UC : TOUR_CAP_UD);
	struct tour_refusal refusal = {TOUR_BY_STANDARD, forbidden(op, qp)};

	if (way == TOUR_SOCKET)
		needs |= TOUR_CAP_BARE;
	if (way == TOUR_CM && qp == TOUR_UC)
		needs |= TOUR_CAP_CM_UC;
	if (!refusal.reason)
		refusal = (struct tour_refusal){TOUR_NEAR_DEVICE, lacking(needs, near)};
	if (!refusal.reason)
		refusal = (struct tour_refusal){TOUR_FAR_DEVICE, lacking(needs, far)};
	if (!refusal.reason)
		refusal.whose = TOUR_POSSIBLE;
	return refusal;
}
