/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs came across: opcodes, answers, statuses, events, and transitions of QPs. `sim --covered` prints how
 * often, and fails where something that can occur did not.
 */
#include "sim.h"

#include "engine/why.h"
#include "wire/print.h"

#define TYPES  (ROCI_QPT_UD - ROCI_QPT_RC + 1)
#define STATES (ROCI_QPS_ERR + 1)

/* ---- counting ---- */

void sim_cover_packet(struct sim *sim, const struct roci_packet *pkt)
{
	struct sim_covered *c = &sim->stats.covered;

	c->opcodes[pkt->opcode]++;
	if (pkt->op->headers & 1 << ROCI_HDR_AETH)
		c->syndromes[pkt->syndrome]++;
}

void sim_cover_completion(struct sim *sim, const struct roci_cqe *cqe, bool receive)
{
	struct sim_covered *c = &sim->stats.covered;

	if (cqe->status < SIM_STATUSES)
		c->statuses[receive][cqe->status]++;
}

void sim_cover_event(struct sim *sim, enum roci_async_type type)
{
	if (type < SIM_STATUSES)
		sim->stats.covered.events[type]++;
}

/* The QP is in another state than when it was looked at last. */
static void look(struct sim *sim, struct sim_qp *qp)
{
	enum roci_qp_state state = qp->qp ? roci_qp_state(qp->qp) : ROCI_QPS_RESET;

	if (qp->qp && state != qp->state_seen)
		sim->stats.covered.moves[qp->type - ROCI_QPT_RC][qp->state_seen][state]++;
	qp->state_seen = state;
}

void sim_cover_states(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_qps; i++)
		look(sim, &sim->qps[i]);
}

int sim_modify(struct sim *sim, struct sim_qp *qp, const struct roci_qp_attr *attr, unsigned mask)
{
	int err;

	look(sim, qp);
	err = SIM_PRESSED(sim, roci_qp_modify(qp->qp, sim_host_now(qp->host), attr, mask));
	if (!err && roci_qp_state(qp->qp) == qp->state_seen)
		sim->stats.covered.moves[qp->type - ROCI_QPT_RC][qp->state_seen][qp->state_seen]++;
	look(sim, qp);
	return err;
}

/* ---- the report ---- */

/* How many of the things of a table occurred, and the names of those that did not. */
struct tally {
	const char *what;
	unsigned occurred, missing;
};

static void count(struct tally *t, uint64_t times, const char *name)
{
	printf("  %12llu %s\n", (unsigned long long)times, name);
	if (times)
		t->occurred++;
	else
		t->missing++;
}

static bool finish(const struct tally *t)
{
	printf("# %s: %u of %u occurred\n", t->what, t->occurred, t->occurred + t->missing);
	return !t->missing;
}

/* Not HELLO and CHALLENGE: the simulator has no NAT (tests/unit/engine/test_nat.c, tests/clients/test_nat.py). Not MTU
 * PROBE and PIECE, which no engine sees (tests/clients/test_path_mtu.py). */
static bool print_opcodes(const struct sim_covered *c)
{
	struct tally t = {.what = "opcodes"};

	for (unsigned i = 0; i < 256; i++)
		if (roci_opcode_info((uint8_t)i) && i != ROCI_OPCODE_HELLO && i != ROCI_OPCODE_CHALLENGE &&
		    i != ROCI_OPCODE_MTU_PROBE && i != ROCI_OPCODE_PIECE)
			count(&t, c->opcodes[i], roci_opcode_info((uint8_t)i)->name);
	return finish(&t);
}

/* Not NAK 4: it is about reliable datagrams (IBTA 9.7.5.2.8), which are not offered. */
static bool print_answers(const struct sim_covered *c)
{
	struct tally t = {.what = "answers"};

	for (unsigned i = 0; i < 256; i++) {
		unsigned type = i & ROCI_AETH_TYPE_MASK, value = i & ROCI_AETH_VALUE_MASK;
		bool nak = type == ROCI_AETH_NAK && value <= ROCI_NAK_REMOTE_OPERATION;
		char name[64];

		snprintf(name, sizeof(name), "%s", roci_syndrome_str((uint8_t)i));
		if (nak || type == ROCI_AETH_RNR_NAK || i == (ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS))
			count(&t, c->syndromes[i], name);
	}
	return finish(&t);
}

/* What cannot occur: BAD_RESP_ERR (only a peer that breaks the protocol causes it: tests/unit/engine), and what is
 * only of the other side. */
static bool print_statuses(const struct sim_covered *c)
{
	static const uint32_t possible[2] = {
		BIT(ROCI_WC_SUCCESS) | BIT(ROCI_WC_LOC_LEN_ERR) | BIT(ROCI_WC_LOC_PROT_ERR) |
			BIT(ROCI_WC_WR_FLUSH_ERR) | BIT(ROCI_WC_MW_BIND_ERR) | BIT(ROCI_WC_LOC_QP_OP_ERR) |
			BIT(ROCI_WC_REM_INV_REQ_ERR) | BIT(ROCI_WC_REM_ACCESS_ERR) | BIT(ROCI_WC_REM_OP_ERR) |
			BIT(ROCI_WC_RETRY_EXC_ERR) | BIT(ROCI_WC_RNR_RETRY_EXC_ERR),
		BIT(ROCI_WC_SUCCESS) | BIT(ROCI_WC_LOC_LEN_ERR) | BIT(ROCI_WC_LOC_PROT_ERR) |
			BIT(ROCI_WC_WR_FLUSH_ERR) | BIT(ROCI_WC_LOC_ACCESS_ERR) | BIT(ROCI_WC_REM_INV_REQ_ERR),
	};
	struct tally t = {.what = "statuses of completions"};

	for (unsigned receive = 0; receive < 2; receive++) {
		for (unsigned i = 0; i < SIM_STATUSES; i++) {
			char name[64];

			snprintf(name, sizeof(name), "%s of a %s", roci_wc_status_name(i),
				 receive ? "receive" : "work request");
			if (possible[receive] & BIT(i))
				count(&t, c->statuses[receive][i], name);
			else if (c->statuses[receive][i])
				printf("  %12llu %s (not expected)\n", (unsigned long long)c->statuses[receive][i],
				       name);
		}
	}
	return finish(&t);
}

static const struct {
	enum roci_async_type type;
	const char *name;
} events[] = {
	{ROCI_EVENT_CQ_ERR, "CQ_ERR"},
	{ROCI_EVENT_QP_FATAL, "QP_FATAL"},
	{ROCI_EVENT_QP_REQ_ERR, "QP_REQ_ERR"},
	{ROCI_EVENT_QP_ACCESS_ERR, "QP_ACCESS_ERR"},
	{ROCI_EVENT_COMM_EST, "COMM_EST"},
	{ROCI_EVENT_SQ_DRAINED, "SQ_DRAINED"},
	{ROCI_EVENT_SRQ_LIMIT_REACHED, "SRQ_LIMIT_REACHED"},
	{ROCI_EVENT_QP_LAST_WQE_REACHED, "QP_LAST_WQE_REACHED"},
};

static bool print_events(const struct sim_covered *c)
{
	struct tally t = {.what = "events"};

	for (unsigned i = 0; i < sizeof(events) / sizeof(*events); i++)
		count(&t, c->events[events[i].type], events[i].name);
	return finish(&t);
}

/* IBTA 10.3.1, figure 124. Each state but RESET goes to RESET and to ERR. SQE is not a state of RC. In SQD nothing
 * begins, and a datagram is done when it has begun, so none can fail there. */
static bool is_possible(unsigned type, unsigned from, unsigned to)
{
	static const uint32_t next[STATES] = {
		[ROCI_QPS_RESET] = BIT(ROCI_QPS_INIT),
		[ROCI_QPS_INIT] = BIT(ROCI_QPS_INIT) | BIT(ROCI_QPS_RTR),
		[ROCI_QPS_RTR] = BIT(ROCI_QPS_RTS),
		[ROCI_QPS_RTS] = BIT(ROCI_QPS_RTS) | BIT(ROCI_QPS_SQD) | BIT(ROCI_QPS_SQE),
		[ROCI_QPS_SQD] = BIT(ROCI_QPS_RTS) | BIT(ROCI_QPS_SQD) | BIT(ROCI_QPS_SQE),
		[ROCI_QPS_SQE] = BIT(ROCI_QPS_RTS),
	};

	if (type + ROCI_QPT_RC == ROCI_QPT_RC && (from == ROCI_QPS_SQE || to == ROCI_QPS_SQE))
		return false;
	if (type + ROCI_QPT_RC == ROCI_QPT_UD && from == ROCI_QPS_SQD && to == ROCI_QPS_SQE)
		return false;
	if (to == ROCI_QPS_RESET || to == ROCI_QPS_ERR)
		return from != ROCI_QPS_RESET;
	return next[from] & BIT(to);
}

static bool print_moves(const struct sim_covered *c)
{
	static const char *const types[TYPES] = {"RC", "UC", "UD"};
	struct tally t = {.what = "transitions of QPs"};
	char name[64];

	for (unsigned i = 0; i < TYPES * STATES * STATES; i++) {
		unsigned type = i / STATES / STATES, from = i / STATES % STATES, to = i % STATES;

		snprintf(name, sizeof(name), "%s %s to %s", types[type], roci_qp_state_name(from),
			 roci_qp_state_name(to));
		if (is_possible(type, from, to))
			count(&t, c->moves[type][from][to], name);
	}
	return finish(&t);
}

bool sim_cover_report(const struct sim_covered *c)
{
	bool all = print_opcodes(c);

	all &= print_answers(c);
	all &= print_statuses(c);
	all &= print_events(c);
	return print_moves(c) && all;
}
