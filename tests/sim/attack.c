/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a blind forgery costs in the middle of live programs: `sim --attack`. Now and then, behind a genuine packet, an
 * attacker's one is given to the engine. It is right in everything but a PSN, and mostly the UDP port. If it has an
 * effect the program ends there, since the model does not know of it.
 *
 * PSNs are drawn by their distance from the right one, each power of 2 as often as the next, and the share of those
 * with an effect is weighed by how many PSNs are that far. So a few thousand tries measure a share of 1 of 2^24. QPNs
 * are compared as a whole: they multiply the cost by 2^24. tests/unit/engine/test_forgery_cost.c tries all values of
 * each secret instead, in a few situations.
 */
#include <math.h>

#include "engine/cnp.h"
#include "engine/qp.h"
#include "sim.h"
#include "wire/nat.h"

#define SECRET  24   /* bits of a QPN, and of a PSN */
#define PORTS   16   /* bits of a port */
#define LEAST   39.0 /* bits; what is promised is 40, and the measurement has an error */
#define ONCE_IN 8    /* genuine packets */
#define MANY    (ROCI_ANSWER_OLDEST + ROCI_ANSWER_NEWEST) /* outstanding packets: behind these there is a middle */

enum sim_knowledge { KNOWS_PORT, GUESSES_PORT, ANY_PORT };

static const struct {
	const char *name;
	uint8_t opcode, syndrome;
	bool answer;
} kinds[SIM_FORGERIES] = {
	{"SEND", ROCI_OP_SEND_ONLY, 0, false},
	{"WRITE with immediate data, empty", ROCI_OP_WRITE_ONLY_IMM, 0, false},
	{"another port becomes the known one", ROCI_OP_SEND_ONLY, 0, false},
	{"ACK", ROCI_OP_ACKNOWLEDGE, ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS, true},
	{"NAK", ROCI_OP_ACKNOWLEDGE, ROCI_AETH_NAK | ROCI_NAK_REMOTE_ACCESS, true},
	{"READ response", ROCI_OP_READ_RESPONSE_ONLY, ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS, true},
	{"ACK or NAK in the middle", ROCI_OP_ACKNOWLEDGE, ROCI_AETH_ACK, true},
	{"CNP", ROCI_OPCODE_CNP, 0, true},
	{"HELLO", ROCI_OPCODE_HELLO, 0, false},
	{"CHALLENGE", ROCI_OPCODE_CHALLENGE, 0, false},
};

/* ---- one try ---- */

/* What an effect changes. */
struct state {
	enum roci_qp_state state;
	uint32_t epsn, una, acked, next, early, early_answers;
	uint64_t cnps, refusals;
	uint16_t port;
	bool shown, fatal, waiting, nat;
	uint8_t peer[16];
};

static struct state look(const struct roci_qp *qp)
{
	const struct roci_requester *r = &qp->req;
	const struct roci_engine_stats *stats = roci_engine_stats(qp->e);
	struct state s;

	memset(&s, 0, sizeof(s)); /* states are compared as bytes */
	s.state = qp->state;
	s.epsn = qp->resp.epsn;
	s.una = r->window.una;
	s.acked = r->window.acked;
	s.next = r->window.next;
	s.early = qp->resp.early.count;
	s.early_answers = r->early.count;
	s.cnps = stats->cnp_received - stats->cnp_refused;
	s.refusals = stats->rnr_sent;
	s.port = qp->peer.port;
	s.shown = qp->peer.shown;
	s.fatal = r->fatal_nak.pending;
	s.waiting = r->rnr.waiting;
	s.nat = qp->nat;
	memcpy(s.peer, qp->attr.av.dgid, 16);
	return s;
}

/* `distance` 0: the right one; else at least 2^(distance - 1) away, and less than twice that. */
static uint32_t psn_at(struct rng *r, uint32_t right, unsigned distance)
{
	uint32_t least = distance ? 1u << (distance - 1) : 0, away = least ? least + rng_below(r, least) : 0;

	return (rng_once_in(r, 2) ? right + away : right - away) & ROCI_PSN_MASK;
}

/* What is said about a NAT where there is none: the token is a guess. Returns the length. */
static uint32_t fill_nat(struct rng *r, enum sim_forgery kind, const struct roci_rx *rx, uint8_t *payload)
{
	uint64_t token = (uint64_t)rng_below(r, UINT32_MAX) << 32 | rng_below(r, UINT32_MAX);
	struct roci_hello hello = {.token = token, .cookie = token};
	struct roci_challenge challenge = {.token = token, .cookie = token, .seen_port = rx->src_port};

	if (kind == SIM_FORGE_CHALLENGE) {
		memcpy(challenge.seen, rx->dgid, 16);
		roci_challenge_build(&challenge, payload);
		return ROCI_CHALLENGE_BYTES;
	}
	memcpy(hello.src, rx->sgid, 16);
	memcpy(hello.dst, rx->dgid, 16);
	roci_hello_build(&hello, payload);
	return ROCI_HELLO_BYTES;
}

static struct roci_rx packet(struct sim *sim, const struct roci_rx *like, struct roci_qp *qp, enum sim_forgery kind,
			     unsigned distance)
{
	static uint8_t payload[ROCI_HELLO_BYTES]; /* the longest */
	const struct roci_send_window *w = &qp->req.window;
	struct rng *r = &sim->attacker;
	struct roci_rx rx = *like;
	uint32_t psn = psn_at(r, kinds[kind].answer ? w->una : qp->resp.epsn, distance);

	if (kind == SIM_FORGE_MIDDLE)
		psn = roci_psn_add(w->una,
				   ROCI_ANSWER_OLDEST + rng_below(r, (uint32_t)roci_psn_diff(w->max, w->una) - MANY));
	rx.pkt = (struct roci_packet){.opcode = kinds[kind].opcode,
				      .op = roci_opcode_info(kinds[kind].opcode),
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = qp->qpn,
				      .psn = psn,
				      .syndrome = kinds[kind].syndrome,
				      .payload = payload};
	if (kind == SIM_FORGE_MIDDLE && rng_once_in(r, 2))
		rx.pkt.syndrome = ROCI_AETH_NAK | ROCI_NAK_REMOTE_ACCESS;
	if (kind == SIM_FORGE_CNP) {
		/* It knows how much was sent. */
		uint32_t first = psn_at(r, qp->attr.sq_psn, distance), sent = w->max - qp->attr.sq_psn - 1;
		struct roci_cnp cnp = {ROCI_CNP_REQUEST, roci_psn_add(first, sent & ROCI_PSN_MASK), first};

		roci_cnp_build(&cnp, payload);
		rx.pkt.payload_len = ROCI_CNP_BYTES;
	}
	if (kind == SIM_FORGE_HELLO || kind == SIM_FORGE_CHALLENGE)
		rx.pkt.payload_len = fill_nat(r, kind, &rx, payload);
	return rx;
}

/* Answers and CNPs count only where something is outstanding, so that is when the attacker comes. */
static bool is_possible(const struct roci_qp *qp, enum sim_forgery kind)
{
	int32_t outstanding;

	if (!qp || qp->type != ROCI_QPT_RC || (qp->state != ROCI_QPS_RTS && qp->state != ROCI_QPS_SQD))
		return false;
	outstanding = roci_psn_diff(qp->req.window.max, qp->req.window.una);
	return kind == SIM_FORGE_MIDDLE ? outstanding > MANY : !kinds[kind].answer || outstanding > 0;
}

/* Another known port alone is the effect of one kind. */
static bool had_effect(enum sim_forgery kind, struct state before, const struct state *after)
{
	bool other_port = before.port != after->port || before.shown != after->shown;

	before.port = after->port;
	before.shown = after->shown;
	return kind == SIM_FORGE_PORT ? other_port : memcmp(&before, after, sizeof(before)) != 0;
}

/* The ports of a peer that is new, silent or changes its port often are no secret. */
static enum sim_knowledge draw_knowledge(struct sim *sim, const struct roci_qp *qp, enum sim_forgery kind)
{
	if (kind == SIM_FORGE_MIDDLE)
		return KNOWS_PORT;
	if (!qp->peer.shown || qp->peer.silent || qp->peer.sprays)
		return ANY_PORT;
	return kind == SIM_FORGE_PORT || rng_once_in(&sim->attacker, 2) ? GUESSES_PORT : KNOWS_PORT;
}

void sim_attack(struct sim *sim, struct sim_host *host, const struct roci_rx *behind)
{
	enum sim_forgery kind = rng_below(&sim->attacker, SIM_FORGERIES);
	unsigned distance = rng_below(&sim->attacker, SIM_DISTANCES);
	struct sim_qp *to = sim_find_qp(sim, behind->pkt.dest_qpn);
	enum sim_knowledge knowledge;
	struct sim_tries *tries;
	struct state before, after;
	struct roci_rx rx;

	if (!rng_once_in(&sim->attacker, ONCE_IN) || !to || to->host != host)
		return;
	if (sim->big)
		kind = SIM_FORGE_MIDDLE; /* no other program has as much outstanding, and others end at a hit */
	if (!is_possible(to->qp, kind))
		return;
	knowledge = draw_knowledge(sim, to->qp, kind);
	rx = packet(sim, behind, to->qp, kind, distance);
	if (knowledge == GUESSES_PORT)
		rx.src_port = to->qp->peer.port ^ (uint16_t)rng_range(&sim->attacker, 1, 65535);
	else if (to->qp->peer.shown)
		rx.src_port = to->qp->peer.port;
	tries = &sim->stats.tries[kind][knowledge][distance];
	before = look(to->qp);
	if (kind == SIM_FORGE_HELLO)
		roci_engine_rx_hello(host->engine, sim_host_now(host), &rx);
	else
		roci_engine_rx(host->engine, sim_host_now(host), &rx);
	after = look(to->qp);
	tries->count++;
	if (!memcmp(&before, &after, sizeof(before)))
		return;
	tries->hits += had_effect(kind, before, &after);
	sim_trace(sim, "a forged %s has an effect", kinds[kind].name);
	sim->spoiled = true;
	longjmp(sim->fail, 1);
}

/* ---- the table ---- */

struct sum {
	uint64_t count, hits;
	double share; /* of all PSNs */
};

static struct sum sum_up(const struct sim_stats *stats, enum sim_forgery kind, enum sim_knowledge knowledge)
{
	struct sum sum = {0};

	for (unsigned d = 0; d < SIM_DISTANCES; d++) {
		const struct sim_tries *t = &stats->tries[kind][knowledge][d];

		sum.count += t->count;
		sum.hits += t->hits;
		if (t->hits)
			sum.share += ldexp((double)t->hits / (double)t->count, (int)d - SECRET);
	}
	return sum;
}

static bool print_row(enum sim_forgery kind, const char *when, struct sum sum, double share)
{
	double cost = SECRET - log2(share);

	printf("# %-36s %-26s %8llu %6llu", kinds[kind].name, when, (unsigned long long)sum.count,
	       (unsigned long long)sum.hits);
	if (sum.hits)
		printf("   2^%.1f\n", cost);
	else
		printf("   none had an effect\n");
	return !sum.hits || cost >= LEAST;
}

static bool print_kind(const struct sim_stats *stats, enum sim_forgery kind)
{
	struct sum right = sum_up(stats, kind, KNOWS_PORT), wrong = sum_up(stats, kind, GUESSES_PORT);
	struct sum any = sum_up(stats, kind, ANY_PORT), both = {right.count + wrong.count, right.hits + wrong.hits, 0};
	bool good = true;

	if (kind == SIM_FORGE_MIDDLE)
		return print_row(kind, "the port is known", right, right.share) && right.count && !right.hits;
	good &= print_row(kind, "the port is secret", both, ldexp(right.share, -PORTS) + wrong.share);
	if (kind != SIM_FORGE_PORT)
		good &= print_row(kind, "the port is known", right, right.share);
	return print_row(kind, "new or silent peer", any, any.share) && good;
}

bool sim_attack_report(const struct sim_stats *stats)
{
	bool good = true;

	printf("# %-36s %-26s %8s %6s   %s\n", "forged", "", "tries", "hits", "packets until one has an effect");
	for (enum sim_forgery kind = 0; kind < SIM_FORGERIES; kind++)
		good &= print_kind(stats, kind);
	return good;
}
