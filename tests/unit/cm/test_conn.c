/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, message by message: IBTA 12.9. Loss in random order is tests/sim_cm's. */
#include "test.h"

#include <errno.h>

#include "pair.h"

static const struct roci_cm_bytes none;

static void connects_and_disconnects(void **state)
{
	struct roci_conn *active, *passive;
	const struct roci_cm_event *ev;
	struct pair p;

	pair_open(&p, 0);
	active = pair_connect(&p, 0x1000);
	pair_carry(&p);
	ev = pair_only_event(&p, ROCI_CM_REQ_RECEIVED);
	passive = ev->conn;
	assert_ptr_equal(ev->user, &p);
	assert_true(ev->has_ip);
	assert_int_equal(ev->ip.src_port, 40000);
	assert_int_equal(ev->private.len, ROCI_CM_REQ_PRIVATE);
	assert_memory_equal((const char *)ev->private.data + ROCI_CM_IP_BYTES, "hello", 6);
	assert_int_equal(ev->peer->responder_resources, 4);
	assert_int_equal(ev->peer->initiator_depth, 5);
	assert_int_equal(ev->peer->qpn, 0x1000);
	assert_int_equal(ev->peer->ack_timeout, 17);
	assert_int_equal(ev->peer->ece.vendor_id, 0xabcdef);
	assert_int_equal(ev->peer->ece.options, 0x11223344);
	assert_int_equal(ev->path->mtu, 3);
	assert_int_equal(ev->path->packet_life, 16);
	assert_memory_equal(ev->path->sgid, pair_gid_b, 16);
	assert_memory_equal(ev->path->dgid, pair_gid_a, 16);
	assert_int_equal(ev->path->ifindex, 7);
	pair_clear(&p);

	assert_int_equal(pair_accept(&p, passive, 0x2000), 0);
	assert_int_equal(pair_accept(&p, passive, 0x2000), -EINVAL);
	pair_carry(&p);
	ev = pair_only_event(&p, ROCI_CM_REP_RECEIVED);
	assert_ptr_equal(ev->conn, active);
	assert_memory_equal(ev->private.data, "welcome", 8);
	assert_int_equal(ev->peer->responder_resources, 2);
	assert_int_equal(ev->peer->initiator_depth, 3);
	assert_int_equal(ev->peer->ece.vendor_id, 0xfedcba);
	assert_int_equal(ev->peer->ece.options, 5);
	assert_int_equal(roci_conn_info(active)->remote_qpn, 0x2000);
	/* As in captures/rxe-6.1-rping2.pcap: each side sends from the PSN that its peer has chosen. */
	assert_int_equal(roci_conn_info(active)->sq_psn, 0x222222);
	assert_int_equal(roci_conn_info(active)->rq_psn, 0x111111);
	assert_int_equal(roci_conn_info(active)->rnr_retry_count, 5);
	assert_int_equal(roci_conn_info(active)->ack_timeout, 17);
	assert_int_equal(roci_conn_info(passive)->rnr_retry_count, 6);
	assert_int_equal(roci_conn_info(passive)->responder_resources, 3);
	assert_int_equal(roci_conn_info(active)->remote_comm_id, roci_conn_info(passive)->local_comm_id);
	assert_int_equal(roci_conn_info(passive)->local_comm_id >> 22, 6);
	pair_clear(&p);

	assert_int_equal(roci_conn_establish(active, p.now, none), 0);
	pair_carry(&p);
	assert_ptr_equal(pair_only_event(&p, ROCI_CM_ESTABLISHED)->conn, passive);
	pair_clear(&p);

	assert_int_equal(roci_conn_disconnect(passive, p.now, (struct roci_cm_bytes){"bye", 4}), 0);
	pair_carry(&p);
	assert_memory_equal(pair_only_event(&p, ROCI_CM_DREQ_RECEIVED)->private.data, "bye", 4);
	pair_clear(&p);
	assert_int_equal(roci_conn_disconnect(active, p.now, none), 0);
	pair_carry(&p);
	assert_ptr_equal(pair_only_event(&p, ROCI_CM_DREP_RECEIVED)->conn, passive);
	pair_clear(&p);
	assert_int_equal(active->state, ROCI_CONN_TIMEWAIT);
	assert_int_equal(passive->state, ROCI_CONN_TIMEWAIT);
	assert_int_equal(roci_conn_disconnect(active, p.now, none), -EINVAL);
	pair_wait(&p, 2 * SECOND);
	assert_int_equal(p.event_count, 2);
	assert_int_equal(p.events[0].kind, ROCI_CM_TIMEWAIT_EXIT);
	assert_int_equal(p.events[1].kind, ROCI_CM_TIMEWAIT_EXIT);
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now);
	assert_int_equal(p.a->exchange_count + p.b->exchange_count, 0);
	pair_close(&p);
}

static void no_listener_means_rejected(void **state)
{
	struct roci_conn *active;
	const struct roci_cm_event *ev;
	struct pair p;

	pair_open(&p, 0);
	roci_listener_destroy(p.listener, p.now);
	p.listener = NULL;
	active = pair_connect(&p, 0x1000);
	pair_wait(&p, PENDING);
	ev = pair_only_event(&p, ROCI_CM_REJ_RECEIVED);
	assert_int_equal(ev->reason, ROCI_REJ_INVALID_SERVICE_ID);
	assert_int_equal(ev->rejected, ROCI_CM_ABOUT_REQ);
	assert_int_equal(active->state, ROCI_CONN_CLOSED);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

enum wrong { WRONG_NONE, WRONG_IP_SRC, WRONG_IP_DST, WRONG_LOCAL_GID, WRONG_REMOTE_GID, WRONGS };

/* a sends a REQ with one wrong address. b has a listener at `elsewhere` as well. */
static const struct roci_cm_event *request_with(struct pair *p, enum wrong wrong)
{
	static const uint8_t elsewhere[16] = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1};
	struct roci_cm_msg req;
	struct roci_cm_tx tx;
	struct roci_cm_ip ip;

	pair_clear(p);
	pair_connect(p, 0x1000 + wrong);
	assert_true(roci_cm_tx(p->a, p->now, &tx));
	assert_int_equal(roci_cm_msg_parse(&req, tx.mad), ROCI_CM_PARSE_OK);
	assert_true(roci_cm_ip_parse(&ip, req.private, ROCI_CM_REQ_PRIVATE));
	switch (wrong) {
	case WRONG_IP_SRC: memcpy(ip.src, elsewhere, 16); break;
	case WRONG_IP_DST: memcpy(ip.dst, elsewhere, 16); break;
	case WRONG_LOCAL_GID: memcpy(req.primary.local_gid, elsewhere, 16); break;
	case WRONG_REMOTE_GID: memcpy(req.primary.remote_gid, elsewhere, 16); break;
	default: break;
	}
	roci_cm_ip_build(&ip, req.private);
	roci_cm_msg_build(&req, tx.mad);
	roci_cm_rx(p->b, p->now, tx.mad, tx.sgid, tx.dgid, 7);
	pair_drain(p, p->b);
	pair_wait(p, PENDING);
	return pair_only_event(p, wrong == WRONG_NONE ? ROCI_CM_REQ_RECEIVED : ROCI_CM_REJ_RECEIVED);
}

/* A REQ reaches only a listener of the address that it was sent to. It cannot aim our QP at another host, or pose as
 * another host. */
static void addresses_are_those_of_the_datagram(void **state)
{
	struct roci_cm_listen listen = {.service_id = SERVICE, .gid = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}};
	struct roci_listener *local;
	struct pair p;

	pair_open(&p, 0);
	assert_int_equal(roci_cm_listen(p.b, &listen, &local), 0);
	for (enum wrong wrong = WRONG_IP_SRC; wrong < WRONGS; wrong++) {
		const struct roci_cm_event *ev = request_with(&p, wrong);

		assert_int_equal(ev->reason, wrong == WRONG_IP_SRC || wrong == WRONG_IP_DST
						     ? ROCI_REJ_INVALID_SERVICE_ID
						     : ROCI_REJ_INVALID_GID);
		roci_conn_destroy(ev->conn, p.now);
	}
	roci_conn_destroy(request_with(&p, WRONG_NONE)->conn, p.now);
	pair_clear(&p);
	pair_carry(&p);
	roci_conn_destroy(pair_only_event(&p, ROCI_CM_REJ_RECEIVED)->conn, p.now);
	roci_listener_destroy(local, p.now);
	pair_close(&p);
}

/* The REJ is lost: the duplicate REQ is answered with it again, without a second event. */
static void a_rejection_reaches_the_peer(void **state)
{
	struct roci_conn *active;
	const struct roci_cm_event *ev;
	struct pair p;

	pair_open(&p, 0);
	active = pair_connect(&p, 0x1000);
	pair_carry(&p);
	ev = pair_only_event(&p, ROCI_CM_REQ_RECEIVED);
	p.lose_only = ROCI_CM_ATTR_REJ;
	assert_int_equal(roci_conn_reject(ev->conn, p.now, ROCI_REJ_CONSUMER_DEFINED, (struct roci_cm_bytes){"ari", 3},
					  (struct roci_cm_bytes){"no", 3}),
			 0);
	roci_conn_destroy(ev->conn, p.now);
	pair_clear(&p);
	pair_carry(&p);
	assert_int_equal(p.event_count, 0);
	pair_wait(&p, SECOND);
	ev = pair_only_event(&p, ROCI_CM_REJ_RECEIVED);
	assert_int_equal(ev->reason, ROCI_REJ_CONSUMER_DEFINED);
	assert_int_equal(ev->ari.len, 3);
	assert_memory_equal(ev->ari.data, "ari", 3);
	assert_memory_equal(ev->private.data, "no", 3);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

static void an_unanswered_req_times_out(void **state)
{
	struct roci_conn *active;
	struct pair p;

	pair_open(&p, 0);
	p.lose = true;
	active = pair_connect(&p, 0x1000);
	pair_wait(&p, 100 * SECOND);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REQ], 16);
	assert_int_equal(pair_only_event(&p, ROCI_CM_REQ_ERROR)->status, -ETIMEDOUT);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REJ], 1);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

/* IBTA 12.6.6: an MRA stops the retransmissions while the consumer takes its time. */
static void a_slow_consumer_causes_mras(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	pair_wait(&p, 10 * SECOND);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REQ], 2);
	assert_int_equal(p.sent[ROCI_CM_ATTR_MRA], 1);
	assert_int_equal(p.event_count, 1);
	pair_accept(&p, passive, 0x2000);
	pair_carry(&p);
	assert_int_equal(p.event_count, 2);
	assert_int_equal(p.events[1].kind, ROCI_CM_REP_RECEIVED);
	/* Now the active side is slow. */
	pair_wait(&p, 10 * SECOND);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REP], 2);
	assert_int_equal(p.sent[ROCI_CM_ATTR_MRA], 2);
	roci_conn_destroy(active, p.now);
	pair_carry(&p);
	assert_int_equal(p.events[2].kind, ROCI_CM_REJ_RECEIVED);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

static void lost_messages_are_sent_again(void **state)
{
	static const uint16_t order[] = {ROCI_CM_ATTR_REQ, ROCI_CM_ATTR_REP, ROCI_CM_ATTR_RTU, ROCI_CM_ATTR_DREQ,
					 ROCI_CM_ATTR_DREP};

	for (unsigned i = 0; i < 5; i++) {
		struct roci_conn *active, *passive;
		struct pair p;

		pair_open(&p, 0);
		p.lose_only = order[i];
		active = pair_connect(&p, 0x1000);
		pair_wait(&p, SECOND);
		passive = p.events[0].conn;
		pair_accept(&p, passive, 0x2000);
		pair_wait(&p, SECOND);
		assert_int_equal(roci_conn_establish(active, p.now, none), 0);
		pair_wait(&p, 20 * SECOND); /* an MRA may have asked the passive side for patience */
		assert_int_equal(passive->state, ROCI_CONN_ESTABLISHED);
		assert_int_equal(roci_conn_disconnect(active, p.now, none), 0);
		pair_wait(&p, SECOND);
		assert_int_equal(passive->state, ROCI_CONN_DREQ_RECEIVED);
		assert_int_equal(roci_conn_disconnect(passive, p.now, none), 0);
		pair_wait(&p, 5 * SECOND);
		assert_int_equal(active->state, ROCI_CONN_CLOSED);
		assert_int_equal(p.event_count, 7); /* REQ, REP, established, DREQ, DREP, two exits */
		roci_conn_destroy(active, p.now);
		roci_conn_destroy(passive, p.now);
		pair_close(&p);
	}
}

static void dreqs_cross(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active, &passive);
	roci_conn_disconnect(active, p.now, none);
	roci_conn_disconnect(passive, p.now, none);
	pair_carry(&p);
	assert_int_equal(p.event_count, 2);
	assert_int_equal(p.events[0].kind, ROCI_CM_DREP_RECEIVED);
	assert_int_equal(p.events[1].kind, ROCI_CM_DREP_RECEIVED);
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

static void an_unanswered_dreq_times_out(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active, &passive);
	p.lose = true;
	roci_conn_disconnect(active, p.now, none);
	pair_wait(&p, 30 * SECOND);
	assert_int_equal(p.sent[ROCI_CM_ATTR_DREQ], 6);
	assert_int_equal(p.event_count, 2);
	assert_int_equal(p.events[0].kind, ROCI_CM_DREQ_ERROR);
	assert_int_equal(p.events[0].status, -ETIMEDOUT);
	assert_int_equal(p.events[1].kind, ROCI_CM_TIMEWAIT_EXIT);
	p.lose = false;
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now); /* its DREQ is answered, although the connection is gone */
	pair_carry(&p);
	assert_int_equal(p.sent[ROCI_CM_ATTR_DREP], 1);
	pair_close(&p);
}

static void a_rep_without_connection_is_rejected(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	p.lose = true;
	roci_conn_destroy(active, p.now); /* its REJ is lost */
	pair_carry(&p);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REJ], 1);
	pair_wait(&p, 30 * SECOND);
	p.lose = false;
	pair_clear(&p);
	pair_accept(&p, passive, 0x2000);
	pair_carry(&p);
	assert_int_equal(pair_only_event(&p, ROCI_CM_REJ_RECEIVED)->reason, ROCI_REJ_INVALID_COMM_ID);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

static void a_withdrawn_request_is_reported(void **state)
{
	struct roci_conn *active, *passive;
	const struct roci_cm_event *ev;
	struct pair p;

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	pair_clear(&p);
	roci_conn_destroy(active, p.now);
	pair_carry(&p);
	ev = pair_only_event(&p, ROCI_CM_REJ_RECEIVED);
	assert_ptr_equal(ev->conn, passive);
	assert_int_equal(ev->reason, ROCI_REJ_TIMEOUT);
	assert_int_equal(pair_accept(&p, passive, 1), -EINVAL);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

/* IBTA 12.9.8.3.1: the peer has forgotten the connection and uses its QP again. */
static void a_stale_connection_is_found(void **state)
{
	struct roci_conn *active, *passive, *again;
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active, &passive);
	p.lose = true;
	roci_conn_destroy(active, p.now);
	pair_wait(&p, 60 * SECOND);
	p.lose = false;
	pair_clear(&p);
	again = pair_connect(&p, 0x1000);
	pair_carry(&p);
	assert_int_equal(p.event_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		if (p.events[i].conn == again)
			assert_int_equal(p.events[i].reason, ROCI_REJ_STALE_CONN);
		else
			assert_int_equal(p.events[i].kind, ROCI_CM_DREP_RECEIVED);
	}
	roci_conn_destroy(again, p.now);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

/* A REQ of a's for this QP, as if a CA with this GUID had sent it from this address. */
static void receive_req(struct pair *p, uint32_t qpn, uint64_t ca_guid, const uint8_t sgid[16])
{
	struct roci_cm_msg req;
	struct roci_cm_ip ip;
	struct roci_cm_tx tx;

	pair_connect(p, qpn);
	assert_true(roci_cm_tx(p->a, p->now, &tx));
	assert_int_equal(roci_cm_msg_parse(&req, tx.mad), ROCI_CM_PARSE_OK);
	assert_true(roci_cm_ip_parse(&ip, req.private, ROCI_CM_REQ_PRIVATE));
	req.ca_guid = ca_guid;
	memcpy(req.primary.local_gid, sgid, 16);
	memcpy(ip.src, sgid, 16);
	roci_cm_ip_build(&ip, req.private);
	roci_cm_msg_build(&req, tx.mad);
	roci_cm_rx(p->b, p->now, tx.mad, sgid, pair_gid_b, 7);
	pair_drain(p, p->b);
}

/* IBTA 12.9.8.3.1: a QPN is the same QP only of the same CA. A REQ of another CA with that QPN, be it forged or from
 * behind the same address translation, is an ordinary REQ. */
static void a_stale_connection_is_of_the_same_ca(void **state)
{
	static const uint8_t elsewhere[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 66};
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active, &passive);
	receive_req(&p, 0x1000, 0xbad, pair_gid_a);
	pair_only_event(&p, ROCI_CM_REQ_RECEIVED);
	assert_int_equal(passive->state, ROCI_CONN_ESTABLISHED);
	pair_clear(&p);
	pair_wait(&p, 50 * MS); /* the backlog's pace */
	receive_req(&p, 0x1000, 0xa00, elsewhere);
	pair_wait(&p, 50 * MS);
	pair_only_event(&p, ROCI_CM_REQ_RECEIVED);
	assert_int_equal(passive->state, ROCI_CONN_ESTABLISHED);
	assert_int_equal(p.b->stats.stale, 0);
	assert_int_equal(p.sent[ROCI_CM_ATTR_DREQ], 0);
	/* The other CAs' requests do not hide the connection. */
	receive_req(&p, 0x1000, 0xa00, pair_gid_a);
	assert_int_equal(passive->state, ROCI_CONN_DREQ_SENT);
	assert_int_equal(p.b->stats.stale, 1);
	roci_cm_destroy(p.a);
	roci_cm_destroy(p.b);
}

/* As for the REQ: two hosts behind one address may have QPs of the same number. */
static void a_rep_of_another_ca_is_accepted(void **state)
{
	struct roci_conn *active, *passive, *again;
	struct roci_cm_msg rep;
	struct roci_cm_tx tx;
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active, &passive);
	for (unsigned other = 0; other < 2; other++) {
		again = pair_connect(&p, 0x3000 + other);
		pair_wait(&p, 50 * MS);
		assert_int_equal(pair_accept(&p, pair_only_event(&p, ROCI_CM_REQ_RECEIVED)->conn, 0x1001), 0);
		pair_clear(&p);
		assert_true(roci_cm_tx(p.b, p.now, &tx));
		assert_int_equal(roci_cm_msg_parse(&rep, tx.mad), ROCI_CM_PARSE_OK);
		rep.ca_guid += other;
		roci_cm_msg_build(&rep, tx.mad);
		roci_cm_rx(p.a, p.now, tx.mad, tx.sgid, tx.dgid, 7);
		assert_int_equal(again->state, other ? ROCI_CONN_REP_RECEIVED : ROCI_CONN_CLOSED);
		assert_int_equal(p.a->stats.stale, 1);
		p.lose = true;
		pair_carry(&p);
		p.lose = false;
		pair_clear(&p);
	}
	roci_cm_destroy(p.a);
	roci_cm_destroy(p.b);
}

/* Once both sides have left the connection, the peer may use its QP again. */
static void a_qp_is_used_again_during_timewait(void **state)
{
	struct roci_conn *active, *passive, *again, *passive_again;
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active, &passive);
	assert_int_equal(roci_conn_disconnect(active, p.now, none), 0);
	pair_carry(&p);
	assert_int_equal(roci_conn_disconnect(passive, p.now, none), 0);
	pair_carry(&p);
	assert_int_equal(passive->state, ROCI_CONN_TIMEWAIT);
	pair_clear(&p);
	pair_establish(&p, 0x1000, &again, &passive_again);
	assert_int_equal(passive->state, ROCI_CONN_TIMEWAIT);
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now);
	roci_conn_destroy(again, p.now);
	roci_conn_destroy(passive_again, p.now);
	pair_close(&p);
}

static bool has_qpn(void *context, const uint8_t gid[16], const struct roci_conn_info *info)
{
	const uint32_t *qpn = context;

	assert_memory_equal(gid, pair_gid_b, 16);
	return info->local_qpn == *qpn;
}

/* As if the peer had sent a DREQ; other connections live on. */
static void dead_peers_disconnect(void **state)
{
	struct roci_conn *active[2], *passive[2];
	uint32_t qpn = 0x1100;
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active[0], &passive[0]);
	pair_establish(&p, 0x1100, &active[1], &passive[1]);
	roci_cm_disconnect_dead(p.a, p.now, has_qpn, &qpn);
	pair_carry(&p);
	assert_ptr_equal(pair_only_event(&p, ROCI_CM_DREQ_RECEIVED)->conn, active[1]);
	pair_clear(&p);
	roci_cm_disconnect_dead(p.a, p.now, has_qpn, &qpn); /* once */
	pair_carry(&p);
	assert_int_equal(p.event_count, 0);
	assert_int_equal(active[0]->state, ROCI_CONN_ESTABLISHED);
	for (unsigned i = 0; i < 2; i++) {
		roci_conn_destroy(active[i], p.now);
		roci_conn_destroy(passive[i], p.now);
	}
	pair_close(&p);
}

static bool everybody(void *context, const uint8_t gid[16], const struct roci_conn_info *info)
{
	return true;
}

/* Also those whose connection is not established yet. */
static void dead_peers_end_what_begins(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	roci_cm_disconnect_dead(p.a, p.now, everybody, NULL);
	roci_cm_disconnect_dead(p.b, p.now, everybody, NULL);
	assert_int_equal(active->state, ROCI_CONN_REQ_SENT); /* has no peer yet */
	assert_int_equal(passive->state, ROCI_CONN_REQ_RECEIVED);
	pair_accept(&p, passive, 0x2000);
	pair_carry(&p);
	assert_int_equal(active->state, ROCI_CONN_REP_RECEIVED);
	assert_int_equal(passive->state, ROCI_CONN_REP_SENT);
	roci_cm_disconnect_dead(p.a, p.now, everybody, NULL);
	roci_cm_disconnect_dead(p.b, p.now, everybody, NULL);
	assert_int_equal(active->state, ROCI_CONN_DREQ_RECEIVED);
	assert_int_equal(passive->state, ROCI_CONN_DREQ_RECEIVED);
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

/* The REP was refused, and the REJ lost: the REP comes again, and so does the REJ. */
static void a_lost_rejection_of_a_rep_is_sent_again(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	pair_accept(&p, passive, 0x2000);
	pair_carry(&p);
	pair_clear(&p);
	p.lose_only = ROCI_CM_ATTR_REJ;
	assert_int_equal(roci_conn_reject(active, p.now, ROCI_REJ_CONSUMER_DEFINED, none, none), 0);
	pair_carry(&p);
	assert_int_equal(p.event_count, 0);
	pair_wait(&p, 10 * SECOND);
	assert_int_equal(pair_only_event(&p, ROCI_CM_REJ_RECEIVED)->reason, ROCI_REJ_CONSUMER_DEFINED);
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

static void data_establishes_before_the_rtu(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	assert_int_equal(roci_conn_notify(passive, p.now), -EINVAL);
	pair_accept(&p, passive, 0x2000);
	pair_carry(&p);
	pair_clear(&p);
	assert_int_equal(roci_conn_notify(passive, p.now), 0);
	pair_carry(&p);
	pair_only_event(&p, ROCI_CM_ESTABLISHED);
	assert_int_equal(roci_conn_notify(passive, p.now), -EISCONN);
	roci_conn_establish(active, p.now, none);
	pair_carry(&p);
	assert_int_equal(p.event_count, 1);
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

/* IBTA 12.8: a LAP is answered with an APR. */
static void alternate_paths_are_refused(void **state)
{
	struct roci_conn *active, *passive;
	struct roci_cm_msg lap = {.attribute = ROCI_CM_ATTR_LAP, .tid = 9}, apr;
	uint8_t mad[ROCI_CM_MAD_BYTES];
	struct roci_cm_tx tx;
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active, &passive);
	lap.local_id = roci_conn_info(active)->local_comm_id;
	lap.remote_id = roci_conn_info(active)->remote_comm_id;
	roci_cm_msg_build(&lap, mad);
	roci_cm_rx(p.b, p.now, mad, pair_gid_a, pair_gid_b, 7);
	assert_true(roci_cm_tx(p.b, p.now, &tx));
	assert_int_equal(roci_cm_msg_parse(&apr, tx.mad), ROCI_CM_PARSE_OK);
	assert_int_equal(apr.attribute, ROCI_CM_ATTR_APR);
	assert_int_equal(apr.outcome, ROCI_APR_UNSUPPORTED);
	assert_int_equal(apr.tid, 9);
	assert_int_equal(passive->state, ROCI_CONN_ESTABLISHED);
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

/* Right ids are not enough: address and QPN must be those of the connection, too. */
static void a_dreq_must_come_from_the_peer(void **state)
{
	static const uint8_t elsewhere[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 66};
	struct roci_cm_msg dreq = {.attribute = ROCI_CM_ATTR_DREQ};
	struct roci_conn *active, *passive;
	uint8_t mad[ROCI_CM_MAD_BYTES];
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active, &passive);
	dreq.local_id = roci_conn_info(active)->local_comm_id;
	dreq.remote_id = roci_conn_info(active)->remote_comm_id;
	dreq.qpn = 0x1001;
	roci_cm_msg_build(&dreq, mad);
	roci_cm_rx(p.b, p.now, mad, elsewhere, pair_gid_b, 7);
	assert_int_equal(passive->state, ROCI_CONN_ESTABLISHED);
	assert_int_equal(p.b->stats.rx_wrong_source, 1);
	dreq.qpn = 0x4242; /* from the peer, but for another QP */
	roci_cm_msg_build(&dreq, mad);
	roci_cm_rx(p.b, p.now, mad, pair_gid_a, pair_gid_b, 7);
	assert_int_equal(passive->state, ROCI_CONN_ESTABLISHED);
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now);
	pair_close(&p);
}

static void parameters_are_checked(void **state)
{
	struct roci_cm_connect good = {.service_id = SERVICE, .path = pair_path(), .qpn = 5, .transport = ROCI_CM_RC},
			       bad;
	struct roci_conn *conn;
	struct pair p;

	pair_open(&p, 0);
#define REFUSED(change)                                                                                                \
	do {                                                                                                           \
		bad = good;                                                                                            \
		change;                                                                                                \
		assert_int_equal(roci_conn_connect(p.a, p.now, &bad, &conn), -EINVAL);                                 \
	} while (0)
	REFUSED(bad.qpn = 1 << 24);
	REFUSED(bad.starting_psn = 1 << 24);
	REFUSED(bad.retry_count = 8);
	REFUSED(bad.rnr_retry_count = 8);
	REFUSED(bad.path.mtu = 6);
	REFUSED(bad.path.mtu = 0);
	REFUSED(bad.path.flow_label = 1 << 20);
	REFUSED(bad.ack_timeout = 32);
	REFUSED(bad.transport = 2);
	REFUSED(bad.private.len = 93);
	REFUSED(bad.ece.vendor_id = 1 << 24);
#undef REFUSED
	assert_int_equal(cm_object_count(p.a), 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects_and_disconnects),
		cmocka_unit_test(no_listener_means_rejected),
		cmocka_unit_test(a_rejection_reaches_the_peer),
		cmocka_unit_test(addresses_are_those_of_the_datagram),
		cmocka_unit_test(an_unanswered_req_times_out),
		cmocka_unit_test(a_slow_consumer_causes_mras),
		cmocka_unit_test(lost_messages_are_sent_again),
		cmocka_unit_test(dreqs_cross),
		cmocka_unit_test(an_unanswered_dreq_times_out),
		cmocka_unit_test(a_rep_without_connection_is_rejected),
		cmocka_unit_test(a_withdrawn_request_is_reported),
		cmocka_unit_test(a_stale_connection_is_found),
		cmocka_unit_test(a_stale_connection_is_of_the_same_ca),
		cmocka_unit_test(a_rep_of_another_ca_is_accepted),
		cmocka_unit_test(a_qp_is_used_again_during_timewait),
		cmocka_unit_test(dead_peers_disconnect),
		cmocka_unit_test(dead_peers_end_what_begins),
		cmocka_unit_test(a_lost_rejection_of_a_rep_is_sent_again),
		cmocka_unit_test(data_establishes_before_the_rtu),
		cmocka_unit_test(alternate_paths_are_refused),
		cmocka_unit_test(a_dreq_must_come_from_the_peer),
		cmocka_unit_test(parameters_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
