/* SPDX-License-Identifier: BSD-2-Clause */
/* What a responder that was offered RANGES (ranges.h) keeps of what comes early, and what its next RANGES names. */
#include "pair.h"

#include "engine/peer_port.h"
#include "engine/qp.h"
#include "engine/ranges.h"

/* Side 1 has executed a WRITE and was made an offer. */
static struct pair *make(void)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);
	const struct roci_qp *qp = p->side[1].qp;
	uint8_t payload[ROCI_OFFER_BYTES];

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 10, 0);
	pair_run(p);
	roci_offer_build(&(struct roci_offer){qp->attr.rq_psn, 0, 7, 0}, payload);
	pair_inject(p, 1,
		    (struct roci_packet){.opcode = ROCI_OPCODE_OFFER,
					 .psn = qp->resp.epsn - 1,
					 .payload = payload,
					 .payload_len = sizeof(payload)});
	assert_true(qp->resp.ranges.offered);
	pair_turn(p, 1);
	assert_false(qp->resp.ranges.due);
	return p;
}

static const struct roci_responder *responder(const struct pair *p)
{
	return &p->side[1].qp->resp;
}

/* A SEND whose PSN is so far from the expected one. */
static void arrive(struct pair *p, int ahead, uint32_t len, bool ack_req)
{
	static const uint8_t payload[16];

	pair_inject(p, 1,
		    (struct roci_packet){.opcode = ROCI_OP_SEND_ONLY,
					 .psn = responder(p)->epsn + (uint32_t)ahead,
					 .ack_req = ack_req,
					 .payload = payload,
					 .payload_len = len});
}

static void late_are(const struct pair *p, int from, int end)
{
	const struct roci_responder *r = responder(p);
	const struct roci_late_range *late = &r->ranges.kept->late.ranges[0];

	assert_int_equal(roci_psn_diff(late->begin, r->epsn), from);
	assert_int_equal(roci_psn_diff(late->end, r->epsn), end);
}

static bool none_is_late(const struct pair *p)
{
	const struct roci_late_range *late = &responder(p)->ranges.kept->late.ranges[0];

	return late->begin == late->end;
}

/* From the first that others had overtaken to the last, until it was told. */
static void what_was_overtaken_is_named(void **state)
{
	struct pair *p = make();

	arrive(p, 10, 0, false);
	assert_true(none_is_late(p));
	arrive(p, 11, 0, false); /* behind the newest: in order */
	assert_true(none_is_late(p));
	arrive(p, 5, 0, false);
	late_are(p, 5, 6);
	arrive(p, 3, 0, false);
	late_are(p, 3, 6);
	arrive(p, 7, 0, false);
	late_are(p, 3, 8);
	arrive(p, 8, 0, false);
	late_are(p, 3, 9);
	arrive(p, 6, 0, false);
	late_are(p, 3, 9);
	assert_true(pair_turn(p, 1)); /* RANGES */
	assert_true(none_is_late(p));
	arrive(p, 4, 0, false);
	late_are(p, 4, 5);
	pair_free(p);
}

/* A duplicate without payload is a probe. */
static void duplicates_are_counted_and_probes_are_not(void **state)
{
	struct pair *p = make();

	for (uint32_t len = 0; len < 4; len++) {
		unsigned before = responder(p)->ranges.duplicates;

		arrive(p, -1, len, true);
		assert_int_equal(responder(p)->ranges.duplicates - before, len != 0);
	}
	pair_free(p);
}

/* The peer hears of a gap at once, and then as often as it asks. */
static void a_gap_is_told_at_once(void **state)
{
	struct pair *p = make();

	arrive(p, 10, 0, false);
	assert_true(responder(p)->ranges.due);
	assert_true(pair_turn(p, 1));
	arrive(p, 11, 0, false);
	assert_false(responder(p)->ranges.due);
	arrive(p, 12, 0, true);
	assert_true(responder(p)->ranges.due);
	pair_free(p);
}

/* How many packets ahead is kept, where nothing else is. */
static bool is_kept(uint16_t port, int ahead)
{
	struct pair *p = make();
	unsigned refused;
	bool kept;

	p->side[1].qp->peer.port = port;
	arrive(p, ahead, 0, false);
	kept = responder(p)->early.count;
	refused = responder(p)->ranges.duplicates;
	assert_int_equal(refused, !kept);
	pair_free(p);
	return kept;
}

static void a_window_is_kept(void **state)
{
	assert_true(is_kept(7, ROCI_REORDER_AHEAD - 1));
	assert_false(is_kept(7, ROCI_REORDER_AHEAD));
	assert_true(is_kept(ROCI_UDP_PORT, ROCI_REORDER_WINDOW - 1)); /* everybody knows the port */
	assert_false(is_kept(ROCI_UDP_PORT, ROCI_REORDER_WINDOW));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_overtaken_is_named),
		cmocka_unit_test(duplicates_are_counted_and_probes_are_not),
		cmocka_unit_test(a_gap_is_told_at_once),
		cmocka_unit_test(a_window_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
