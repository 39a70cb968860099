/* SPDX-License-Identifier: BSD-2-Clause */
/* Selective resending between two engines whose round trip takes 20 ms. */
#include "pair.h"

#include <string.h>

#include "engine/path.h"
#include "engine/qp.h"

#define MS      1000000ull
#define SECRET  0x0123456789abcdefull
#define LEN     60000u
#define PACKETS ((LEN + PAIR_MTU - 1) / PAIR_MTU)

static bool seen[1 << 24]; /* PSNs of requests that were sent once */

static unsigned offers, ranges, requests;

static void count(const struct roci_packet *pkt)
{
	offers += pkt->op->kind == ROCI_KIND_OFFER;
	ranges += pkt->op->kind == ROCI_KIND_RANGES;
	requests += pkt->op->kind == ROCI_KIND_WRITE && pkt->payload_len;
}

static bool lose_nothing(struct pair *p, int from, const struct roci_packet *pkt)
{
	count(pkt);
	return true;
}

/* Every seventh packet, the first time. */
static bool lose_some(struct pair *p, int from, const struct roci_packet *pkt)
{
	bool first = pkt->op->kind == ROCI_KIND_WRITE && pkt->payload_len && !seen[pkt->psn];

	count(pkt);
	seen[pkt->psn] |= first;
	return !first || pkt->psn % 7;
}

/* The last ten of what side 0 has to send, the first time. */
static bool lose_tail(struct pair *p, int from, const struct roci_packet *pkt)
{
	bool first = pkt->op->kind == ROCI_KIND_WRITE && pkt->payload_len && !seen[pkt->psn];

	count(pkt);
	seen[pkt->psn] |= first;
	return !first || p->count++ < PACKETS - 10;
}

static struct pair *make(uint64_t secret)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.secret = secret;
	memset(seen, 0, sizeof(seen));
	offers = ranges = requests = 0;
	p = pair_create(&o);
	p->filter = lose_nothing;
	return p;
}

static void transfer(struct pair *p, unsigned rounds)
{
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
	for (unsigned i = 0; i < rounds; i++)
		pair_round_trip(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
}

/* Side 0 learns the path, then sends far more than side 1 answers. */
static void fill_window(struct pair *p)
{
	transfer(p, 6);
	transfer(p, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, LEN, 0), 0);
	for (unsigned i = 0; i < 300; i++, p->now += MS / 10)
		pair_drain(p, 0);
	assert_true(roci_send_window_packets(&p->side[0].qp->req.window) > 400);
}

static void two_of_ours_agree(void **state)
{
	struct pair *p = make(SECRET);

	transfer(p, 6);
	transfer(p, 3);
	assert_true(p->side[0].qp->req.selective.agreed);
	assert_true(p->side[0].qp->path->far);
	assert_in_range(offers, 1, 2);
	assert_in_range(ranges, 1, 2);
	pair_free(p);
}

/* No secret, no offer: everything is as with other devices. */
static void others_see_nothing_of_it(void **state)
{
	struct pair *p = make(0);

	transfer(p, 6);
	p->filter = lose_some;
	transfer(p, 12);
	assert_int_equal(offers + ranges, 0);
	assert_false(p->side[0].qp->path->far);
	pair_free(p);
}

/* A round trip after the loss was told, all of it has arrived, and nothing else was sent again. */
static void all_holes_are_repaired_in_one_round_trip(void **state)
{
	struct pair *p = make(SECRET);
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[0].e);

	transfer(p, 6);
	transfer(p, 3);
	p->filter = lose_some;
	requests = 0;
	assert_int_equal(stats->retransmits, 0);
	transfer(p, 3); /* one to send, one to repair, one for the timer of what was sent last */
	assert_in_range(p->dropped, 30, 40);
	assert_int_equal(stats->retransmits, p->dropped);
	assert_int_equal(requests, PACKETS + p->dropped);
	assert_int_equal(stats->timeouts, 0);
	assert_memory_equal(p->side[1].memory, p->side[0].memory, LEN);
	pair_free(p);
}

/* No packet behind it tells of a lost tail. A probe does. */
static void a_lost_tail_is_found_by_a_probe(void **state)
{
	struct pair *p = make(SECRET);
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[0].e);

	transfer(p, 6);
	transfer(p, 3);
	p->filter = lose_tail;
	p->count = 0;
	transfer(p, 6);
	assert_int_equal(p->dropped, 10);
	assert_int_equal(stats->retransmits, 10);
	assert_in_range(stats->probes, 1, 2);
	assert_int_equal(stats->timeouts, 0);
	pair_free(p);
}

/* One in the middle, and the tail: what was sent again for the one has come, so the tail, which was sent before, is
 * lost. No probe has to ask first. */
static bool lose_one_and_tail(struct pair *p, int from, const struct roci_packet *pkt)
{
	bool first = pkt->op->kind == ROCI_KIND_WRITE && pkt->payload_len && !seen[pkt->psn];
	int64_t n = first ? p->count++ : 0;

	seen[pkt->psn] |= first;
	return !first || (n != PACKETS / 2 && n < PACKETS - 10);
}

static void a_lost_tail_is_found_by_what_was_sent_again(void **state)
{
	struct pair *p = make(SECRET);
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[0].e);

	transfer(p, 6);
	transfer(p, 3);
	p->filter = lose_one_and_tail;
	p->count = 0;
	transfer(p, 3); /* one to send, one for the hole, one for the tail */
	assert_int_equal(p->dropped, 11);
	assert_int_equal(stats->retransmits, 11);
	pair_free(p);
}

/* READ requests but the second, the first time. */
static bool lose_reads(struct pair *p, int from, const struct roci_packet *pkt)
{
	bool first = pkt->op->kind == ROCI_KIND_READ_REQUEST && !seen[pkt->psn];

	seen[pkt->psn] |= first;
	return !first || p->count++ == 1;
}

/* Lost requests stand for many PSNs each. On a path that has become near, these fill its small window for ever, unless
 * what is lost may always go again. */
static void lost_reads_go_again_though_the_window_is_full(void **state)
{
	struct pair *p = make(SECRET);
	struct roci_path *path = p->side[0].qp->path;

	transfer(p, 6);
	transfer(p, 3);
	assert_true(p->side[0].qp->req.selective.agreed);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 1, 0), 0);
		pair_run(p);
		pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	}
	assert_false(path->far);
	path->cwnd = path->ssthresh = 32768; /* four pieces of a READ; half of it is the least */
	p->filter = lose_reads;
	p->count = 0;
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 2, 0, LEN, 0), 0);
	pair_run_until(p, p->now + 10000 * MS);
	assert_in_range(p->dropped, 2, 100);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* A RANGES packet for side 0 that says that everything has arrived. */
static void claim(struct pair *p, uint64_t secret)
{
	const struct roci_qp *qp = p->side[0].qp;
	struct roci_ranges r = {.secret = secret, .room = 1000};
	uint8_t payload[ROCI_RANGES_MAX_BYTES];
	struct roci_rx rx = {.src_port = qp->peer.port, .hop_limit = 64};

	rx.pkt = (struct roci_packet){.opcode = ROCI_OPCODE_RANGES,
				      .op = roci_opcode_info(ROCI_OPCODE_RANGES),
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = qp->qpn,
				      .psn = roci_psn_add(qp->req.window.max, ROCI_PSN_MASK),
				      .payload = payload,
				      .payload_len = roci_ranges_build(&r, payload)};
	memcpy(rx.sgid, qp->attr.av.dgid, 16);
	memcpy(rx.dgid, qp->attr.av.sgid, 16);
	roci_engine_rx(p->side[0].e, p->now, &rx);
}

/* From the right port, with the right PSN: only the secret is missing. */
static void only_the_secret_proves_ranges(void **state)
{
	struct pair *p = make(SECRET);

	transfer(p, 6);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 2000, 0), 0);
	pair_drain(p, 0);
	for (unsigned bit = 0; bit < 64; bit++)
		claim(p, SECRET ^ 1ull << bit);
	claim(p, SECRET + 1); /* the other side's */
	pair_expect_nothing(p, 0);
	claim(p, SECRET);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	assert_int_equal(roci_engine_stats(p->side[0].e)->rx_wrong_source, 65);
	pair_free(p);
}

/* Thousands of packets may be outstanding on a far path, so no acknowledgement from the middle counts, however often it
 * comes: a peer that answers with RANGES proves them. */
static void no_far_answer_is_believed_where_ranges_are(void **state)
{
	struct pair *p = make(SECRET);
	const struct roci_qp *qp = p->side[0].qp;
	struct roci_rx rx = {.hop_limit = 64};
	uint32_t una;

	fill_window(p);
	una = qp->req.window.una;
	rx.src_port = qp->peer.port;
	rx.pkt = (struct roci_packet){.opcode = ROCI_OP_ACKNOWLEDGE,
				      .op = roci_opcode_info(ROCI_OP_ACKNOWLEDGE),
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = qp->qpn,
				      .syndrome = ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS,
				      .psn = roci_psn_add(una, 300)};
	memcpy(rx.sgid, qp->attr.av.dgid, 16);
	memcpy(rx.dgid, qp->attr.av.sgid, 16);
	for (unsigned i = 0; i < 200; i++)
		roci_engine_rx(p->side[0].e, p->now, &rx);
	assert_int_equal(qp->req.window.una, una);
	rx.pkt.psn = roci_psn_add(una, 5); /* near */
	roci_engine_rx(p->side[0].e, p->now, &rx);
	assert_int_equal(qp->req.window.una, roci_psn_add(una, 6));
	pair_free(p);
}

/* It makes this side ask: once in half a round trip, and with one packet, since RANGES answer it all. */
static void a_far_answer_is_asked_about_where_ranges_are(void **state)
{
	struct pair *p = make(SECRET);
	struct roci_qp *qp = p->side[0].qp;
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[0].e);
	struct roci_packet ack = {.opcode = ROCI_OP_ACKNOWLEDGE,
				  .syndrome = ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS};
	uint64_t probes;

	fill_window(p);
	ack.psn = roci_psn_add(qp->req.window.una, 300);
	probes = stats->probes;
	qp->req.ack_timer.probes = 2;
	for (unsigned i = 1; i <= 3; i++) {
		pair_inject(p, 0, ack);
		pair_inject(p, 0, ack);
		assert_int_equal(stats->probes - probes, i);
		assert_int_equal(qp->req.ack_timer.probes, 0); /* somebody is there */
		p->now += 20 * MS;
	}
	pair_free(p);
}

/* Who does not ask for RANGES believes none. */
static void nothing_is_believed_without_a_secret(void **state)
{
	struct pair *p = make(0);

	transfer(p, 6);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 2000, 0), 0);
	pair_drain(p, 0);
	claim(p, 0);
	pair_expect_nothing(p, 0);
	pair_free(p);
}

/* An OFFER from another port, or far from what is expected, changes nothing: no RANGES, and NAKs as before. */
static void a_forged_offer_is_ignored(void **state)
{
	struct pair *p = make(0);
	const struct roci_qp *qp = p->side[1].qp;
	uint8_t payload[ROCI_OFFER_BYTES];
	struct roci_rx rx = {.hop_limit = 64};

	transfer(p, 6);
	roci_offer_build(&(struct roci_offer){qp->attr.rq_psn ^ 1, 0, 77, 0}, payload);
	rx.pkt = (struct roci_packet){.opcode = ROCI_OPCODE_OFFER,
				      .op = roci_opcode_info(ROCI_OPCODE_OFFER),
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = qp->qpn,
				      .payload = payload,
				      .payload_len = ROCI_OFFER_BYTES};
	memcpy(rx.sgid, qp->attr.av.dgid, 16);
	memcpy(rx.dgid, qp->attr.av.sgid, 16);
	rx.src_port = qp->peer.port;
	rx.pkt.psn = roci_psn_add(qp->resp.epsn, ROCI_PSN_MASK);
	roci_engine_rx(p->side[1].e, p->now, &rx);
	assert_false(qp->resp.ranges.offered); /* another first PSN */
	roci_offer_build(&(struct roci_offer){qp->attr.rq_psn, 0, 77, 0}, payload);
	rx.src_port ^= 1;
	roci_engine_rx(p->side[1].e, p->now, &rx);
	assert_false(qp->resp.ranges.offered);
	rx.src_port = qp->peer.port;
	rx.pkt.psn = roci_psn_add(qp->resp.epsn, 5);
	roci_engine_rx(p->side[1].e, p->now, &rx);
	rx.pkt.psn = roci_psn_add(qp->resp.epsn, ROCI_PSN_MASK - 2 * ROCI_CNP_WINDOW);
	roci_engine_rx(p->side[1].e, p->now, &rx);
	assert_false(qp->resp.ranges.offered);
	rx.pkt.psn = roci_psn_add(qp->resp.epsn, ROCI_PSN_MASK);
	roci_engine_rx(p->side[1].e, p->now, &rx);
	assert_true(qp->resp.ranges.offered);
	pair_free(p);
}

/* What asks whether this is a Rocinante arrives together with a request. The time stands still: no probe asks again. */
static void a_question_takes_no_acknowledgement_away(void **state)
{
	struct pair *p = make(SECRET);

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 8, 0), 0);
	roci_selective_ask(p->side[0].qp);
	pair_run(p);
	assert_int_equal(offers, 1);
	assert_int_equal(ranges, 1);
	assert_true(p->side[0].qp->path->ours);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* It is asked, and offered RANGES at once: the answer agrees. */
static void a_question_takes_no_agreement_away(void **state)
{
	struct pair *p = make(SECRET);
	struct roci_qp *qp = p->side[0].qp;

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		roci_selective_ask(qp);
		qp->req.selective.asks_now = i == 0;
		pair_drain(p, 0);
	}
	assert_int_equal(offers, 2);
	pair_run(p);
	assert_true(qp->req.selective.agreed);
	pair_free(p);
}

/* ---- a receiver without a receive ---- */

#define MESSAGE  19000u
#define MESSAGES 3
#define REFUSED  ((MESSAGE + PAIR_MTU - 1) / PAIR_MTU) /* packets of a message */

static unsigned refused_again; /* how often the first packet of a message was sent again */

static void post_messages(struct pair *p, unsigned receives)
{
	for (unsigned i = 0; i < receives; i++)
		assert_int_equal(pair_recv(p, 1, 10 + i, i * MESSAGE, MESSAGE), 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(pair_send(p, 0, ROCI_WR_SEND, i, i * MESSAGE, MESSAGE, 0), 0);
}

static void post_missing_receives(struct pair *p, unsigned from)
{
	for (unsigned i = from; i < MESSAGES; i++)
		assert_int_equal(pair_recv(p, 1, 10 + i, i * MESSAGE, MESSAGE), 0);
}

static void expect_messages(struct pair *p)
{
	for (unsigned i = 0; i < MESSAGES; i++) {
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
		pair_expect(p, 1, 10 + i, ROCI_WC_SUCCESS);
	}
	assert_memory_equal(p->side[1].memory, p->side[0].memory, MESSAGES * MESSAGE);
}

/* Two that have agreed, and different content at both. */
static struct pair *make_agreed(void)
{
	struct pair *p = make(SECRET);

	transfer(p, 6);
	transfer(p, 3);
	assert_true(p->side[0].qp->req.selective.agreed);
	for (unsigned i = 0; i < PAIR_MEMORY; i++) {
		p->side[0].memory[i] = (uint8_t)(i * 7 + i / 256);
		p->side[1].memory[i] = 0;
	}
	return p;
}

/* What came behind the packet that was refused is kept. */
static void only_what_was_refused_goes_again(void **state)
{
	struct pair *p = make_agreed();
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[0].e);

	post_messages(p, 1);
	pair_round_trip(p);
	assert_int_equal(roci_engine_stats(p->side[1].e)->rnr_sent, 1);
	post_missing_receives(p, 1);
	pair_round_trip(p);
	pair_round_trip(p);
	expect_messages(p);
	assert_int_equal(stats->retransmits, 1);
	assert_int_equal(stats->timeouts, 0);
	pair_free(p);
}

/* It is refused among those that were kept, too: once for each message. */
static void a_kept_packet_may_be_refused(void **state)
{
	struct pair *p = make_agreed();
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[0].e);

	post_messages(p, 0);
	pair_round_trip(p);
	for (unsigned i = 0; i < MESSAGES; i++) {
		assert_int_equal(roci_engine_stats(p->side[1].e)->rnr_sent, i + 1);
		assert_int_equal(pair_recv(p, 1, 10 + i, i * MESSAGE, MESSAGE), 0);
		pair_round_trip(p);
	}
	pair_round_trip(p);
	expect_messages(p);
	assert_int_equal(stats->retransmits, MESSAGES);
	pair_free(p);
}

/* The first packet of a message, when it is sent again for the first time. */
static bool lose_refused(struct pair *p, int from, const struct roci_packet *pkt)
{
	bool again = from == 0 && pkt->op->kind == ROCI_KIND_SEND && seen[pkt->psn];

	if (pkt->op->kind == ROCI_KIND_SEND)
		seen[pkt->psn] = true;
	refused_again += again;
	return !again || refused_again > 1;
}

static void a_refused_packet_that_was_lost_goes_again_by_itself(void **state)
{
	struct pair *p = make_agreed();
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[0].e);

	refused_again = 0;
	p->filter = lose_refused;
	post_messages(p, 1);
	pair_round_trip(p);
	post_missing_receives(p, 1);
	for (unsigned i = 0; i < 8; i++)
		pair_round_trip(p);
	assert_int_equal(p->dropped, 1);
	expect_messages(p);
	assert_int_equal(stats->retransmits, 2);
	assert_int_equal(stats->timeouts, 0);
	pair_free(p);
}

/* Every ninth packet behind the one that is refused is lost the first time. */
static bool lose_behind(struct pair *p, int from, const struct roci_packet *pkt)
{
	bool first = from == 0 && pkt->op->kind == ROCI_KIND_SEND && !seen[pkt->psn];

	if (pkt->op->kind == ROCI_KIND_SEND)
		seen[pkt->psn] = true;
	return !first || p->count++ < REFUSED + 5 || p->count % 9;
}

static void holes_behind_a_refused_packet_are_repaired(void **state)
{
	struct pair *p = make_agreed();
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[0].e);

	p->filter = lose_behind;
	p->count = 0;
	post_messages(p, 1);
	pair_round_trip(p);
	post_missing_receives(p, 1);
	for (unsigned i = 0; i < 4; i++)
		pair_round_trip(p);
	assert_in_range(p->dropped, 10, 20);
	expect_messages(p);
	assert_int_equal(stats->retransmits, p->dropped + 1);
	pair_free(p);
}

/* A receiver that stays without a receive is asked with one packet at a time, and nothing new goes to it. */
static void nothing_new_goes_to_a_peer_that_refuses(void **state)
{
	struct pair *p = make_agreed();
	const struct roci_send_window *w = &p->side[0].qp->req.window;
	uint32_t max;

	post_messages(p, 0);
	pair_round_trip(p);
	max = w->max;
	assert_int_equal(pair_send(p, 0, ROCI_WR_SEND, MESSAGES, 0, MESSAGE, 0), 0);
	for (unsigned i = 1; i <= 5; i++) {
		pair_round_trip(p);
		assert_int_equal(w->max, max);
		assert_int_equal(roci_engine_stats(p->side[0].e)->retransmits, i);
		assert_int_equal(roci_engine_stats(p->side[1].e)->rnr_sent, i + 1);
	}
	pair_free(p);
}

/* All but the last packet of the last message, the first time. */
static bool lose_last(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from || pkt->op->kind != ROCI_KIND_SEND || p->count++ != MESSAGES * REFUSED - 1;
}

/* The network had doubled the refused packet, and the second one is taken while the first one is waited for. */
static void a_refused_packet_may_be_taken_during_the_wait(void **state)
{
	struct pair *p = make_agreed();
	const struct roci_requester *r = &p->side[0].qp->req;
	struct roci_packet twin = {.opcode = ROCI_OP_SEND_FIRST, .payload_len = PAIR_MTU};

	p->filter = lose_last;
	p->count = 0;
	post_messages(p, 1);
	pair_round_trip(p);
	p->now -= 10 * MS; /* the answers arrive at once */
	assert_true(r->rnr.waiting);
	post_missing_receives(p, 1);
	twin.psn = r->rnr.psn;
	twin.payload = p->side[0].memory + MESSAGE;
	pair_inject(p, 1, twin);
	while (pair_turn(p, 1))
		;
	assert_true(r->rnr.waiting && r->window.una != r->rnr.psn);
	for (unsigned i = 0; i < 8; i++)
		pair_round_trip(p);
	expect_messages(p);
	assert_int_equal(roci_engine_stats(p->side[0].e)->timeouts, 0);
	pair_free(p);
}

/* The peer says what it keeps, and may drop it all the same (RFC 2018 s.8). */
static void what_was_kept_behind_a_refused_packet_may_be_dropped(void **state)
{
	struct pair *p = make_agreed();
	struct roci_qp *peer = p->side[1].qp;

	post_messages(p, 1);
	pair_round_trip(p);
	assert_true(peer->resp.early.count > 0);
	roci_reorder_clear(&p->side[1].e->reorder, &peer->resp.early);
	post_missing_receives(p, 1);
	for (unsigned i = 0; i < 20; i++)
		pair_round_trip(p);
	expect_messages(p);
	assert_int_equal(roci_engine_stats(p->side[0].e)->timeouts, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_of_ours_agree),
		cmocka_unit_test(others_see_nothing_of_it),
		cmocka_unit_test(all_holes_are_repaired_in_one_round_trip),
		cmocka_unit_test(a_lost_tail_is_found_by_a_probe),
		cmocka_unit_test(a_lost_tail_is_found_by_what_was_sent_again),
		cmocka_unit_test(lost_reads_go_again_though_the_window_is_full),
		cmocka_unit_test(only_what_was_refused_goes_again),
		cmocka_unit_test(a_kept_packet_may_be_refused),
		cmocka_unit_test(a_refused_packet_that_was_lost_goes_again_by_itself),
		cmocka_unit_test(holes_behind_a_refused_packet_are_repaired),
		cmocka_unit_test(nothing_new_goes_to_a_peer_that_refuses),
		cmocka_unit_test(a_refused_packet_may_be_taken_during_the_wait),
		cmocka_unit_test(what_was_kept_behind_a_refused_packet_may_be_dropped),
		cmocka_unit_test(a_question_takes_no_acknowledgement_away),
		cmocka_unit_test(a_question_takes_no_agreement_away),
		cmocka_unit_test(only_the_secret_proves_ranges),
		cmocka_unit_test(no_far_answer_is_believed_where_ranges_are),
		cmocka_unit_test(a_far_answer_is_asked_about_where_ranges_are),
		cmocka_unit_test(nothing_is_believed_without_a_secret),
		cmocka_unit_test(a_forged_offer_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
