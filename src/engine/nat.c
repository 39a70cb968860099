/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/nat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/batch.h"
#include "engine/qp.h"
#include "engine/rc.h"

/* ---- the terms ---- */

static bool is_hidden(const struct roci_nat *n)
{
	return !n->terms.port;
}

static void set_flows(struct roci_nat *n, const uint8_t peer_src[16], const uint8_t peer_dst[16])
{
	roci_nat_flow(&n->in, peer_src, peer_dst);
	roci_nat_flow(&n->out.flow, peer_dst, peer_src);
	n->out.port = n->terms.port;
}

static void say_hello(struct roci_qp *qp)
{
	struct roci_nat *n = qp->nat;

	n->hello_at = qp->e->now;
	n->hello_due = true;
	roci_qp_make_ready(qp);
}

/* Silence may be rest, or the NAT has forgotten, and the peer sends to where nobody listens any more. Its retries last
 * some seconds: rdma_cm's QPs have eight times half a second. */
static void expire(struct roci_timer *timer)
{
	struct roci_nat *n = roci_container_of(timer, struct roci_nat, timer);
	struct roci_qp *qp = n->qp;
	uint64_t now = qp->e->now, silent = now - qp->alive.rx_at;

	if (qp->state == ROCI_QPS_ERR)
		return;
	if (silent >= ROCI_NAT_QUIET_NS || now - n->hello_at >= ROCI_NAT_HELLO_NS)
		say_hello(qp);
	if (silent < ROCI_NAT_QUIET_NS)
		silent = ROCI_NAT_QUIET_NS;
	roci_timer_set(&qp->e->timers, timer, now + (silent < ROCI_NAT_HELLO_NS ? silent : ROCI_NAT_HELLO_NS));
}

int roci_qp_cross_nat(struct roci_qp *qp, const struct roci_nat_terms *terms)
{
	struct roci_nat *n;

	if (qp->type == ROCI_QPT_UD || qp->state != ROCI_QPS_INIT)
		return -EINVAL;
	roci_nat_end(qp);
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->qp = qp;
	n->terms = *terms;
	roci_timer_init(&n->timer);
	n->timer.expire = expire;
	qp->nat = n;
	qp->e->nat_count++;
	return 0;
}

void roci_nat_begin(struct roci_qp *qp)
{
	struct roci_nat *n = qp->nat;

	n->hello_at = qp->alive.rx_at = qp->e->now;
	qp->attr.av.src_port = qp->attr.av.mad_port;
	if (is_hidden(n)) {
		roci_timer_set(&qp->e->timers, &n->timer, qp->e->now + ROCI_NAT_QUIET_NS);
		return;
	}
	set_flows(n, n->terms.src, n->terms.dst);
	qp->attr.av.nat = &n->out;
	qp->peer = (struct roci_peer_port){.shown = true, .port = n->terms.port};
	roci_qp_address(qp);
}

void roci_nat_end(struct roci_qp *qp)
{
	if (!qp->nat)
		return;
	roci_timer_set(&qp->e->timers, &qp->nat->timer, ROCI_TIMER_OFF);
	qp->attr.av.nat = NULL;
	qp->e->nat_count--;
	free(qp->nat);
	qp->nat = NULL;
}

const struct roci_flow *roci_engine_nat_flow(const struct roci_engine *e, uint32_t qpn)
{
	const struct roci_qp *qp = e->nat_count ? roci_idmap_find(&e->qps, qpn) : NULL;

	return qp && qp->nat && !is_hidden(qp->nat) ? &qp->nat->in : NULL;
}

bool roci_engine_nat_terms(const struct roci_engine *e, uint32_t qpn, struct roci_nat_terms *terms, uint8_t gid[16])
{
	const struct roci_qp *qp = roci_idmap_find(&e->qps, qpn);

	if (!qp || !qp->nat)
		return false;
	*terms = qp->nat->terms;
	memcpy(gid, qp->attr.av.dgid, 16);
	return true;
}

void roci_engine_nat_key(struct roci_engine *e, const struct roci_nat_key *key)
{
	e->nat_key = *key;
}

/* ---- the open end ---- */

static void challenge(struct roci_qp *qp, const struct roci_rx *rx, const struct roci_hello *hello)
{
	struct roci_nat *n = qp->nat;

	n->challenge_av = qp->attr.av;
	memcpy(n->challenge_av.dgid, rx->sgid, 16);
	n->challenge_way.port = rx->src_port;
	roci_nat_flow(&n->challenge_way.flow, hello->dst, hello->src);
	n->challenge_av.nat = &n->challenge_way;
	n->challenge_due = true;
	roci_qp_make_ready(qp);
}

/* The path object stays: its model soon learns what is different. */
static void move(struct roci_qp *qp, const struct roci_rx *rx, const struct roci_hello *hello)
{
	struct roci_nat *n = qp->nat;

	n->terms.port = rx->src_port;
	memcpy(n->terms.src, hello->src, 16);
	memcpy(n->terms.dst, hello->dst, 16);
	set_flows(n, hello->src, hello->dst);
	memcpy(qp->attr.av.dgid, rx->sgid, 16);
	qp->peer = (struct roci_peer_port){.shown = true, .port = rx->src_port};
	roci_qp_address(qp);
	qp->e->stats->peers_moved++;
	roci_keepalive_rx(qp);
	if (roci_qp_is_connected(qp) && roci_send_window_packets(&qp->req.window))
		roci_rc_ask(qp); /* what was sent to the old place is lost */
}

bool roci_nat_rx_hello(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_nat *n = qp->nat;
	struct roci_hello hello;

	if (!n || is_hidden(n) || !roci_qp_receives(qp) || memcmp(rx->dgid, qp->attr.av.sgid, 16) ||
	    !roci_hello_parse(rx->pkt.payload, rx->pkt.payload_len, &hello) || hello.token != n->terms.token) {
		qp->e->stats->rx_wrong_source++;
		return false;
	}
	if (!roci_nat_cookie_is(&qp->e->nat_key, qp->e->now, rx->sgid, rx->src_port, hello.cookie)) {
		challenge(qp, rx, &hello);
		return false;
	}
	if (rx->src_port == n->terms.port && !memcmp(rx->sgid, qp->attr.av.dgid, 16) &&
	    !memcmp(hello.src, n->terms.src, 16) && !memcmp(hello.dst, n->terms.dst, 16)) {
		roci_keepalive_rx(qp);
		return false;
	}
	move(qp, rx, &hello);
	return true;
}

static void fill_challenge(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_nat *n = qp->nat;
	const struct roci_av *av = &n->challenge_av;
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_CHALLENGE,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qp->attr.dest_qpn,
				  .payload_len = ROCI_CHALLENGE_BYTES};
	struct roci_challenge c = {.token = n->terms.token, .seen_port = av->nat->port};

	memcpy(c.seen, av->dgid, 16);
	c.cookie = roci_nat_cookie(&qp->e->nat_key, qp->e->now, av->dgid, av->nat->port);
	roci_challenge_build(&c, n->challenge);
	roci_tx_batch_span(batch, n->challenge, ROCI_CHALLENGE_BYTES);
	roci_tx_batch_add(batch, av, &pkt);
	n->challenge_due = false;
}

/* ---- the hidden end ---- */

void roci_nat_rx_challenge(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_nat *n = qp->nat;
	struct roci_challenge c;

	if (!n || !is_hidden(n) || !roci_challenge_parse(rx->pkt.payload, rx->pkt.payload_len, &c) ||
	    c.token != n->terms.token) {
		qp->e->stats->rx_wrong_source++;
		return;
	}
	if (c.cookie == n->terms.cookie)
		return; /* a copy, or the answer to a HELLO that crossed it */
	n->terms.cookie = c.cookie;
	say_hello(qp);
	if (roci_qp_is_connected(qp))
		roci_probe_send(qp, 1); /* behind the HELLO: what did not arrive goes again now */
}

void roci_nat_silent(struct roci_qp *qp)
{
	if (qp->nat && is_hidden(qp->nat) && qp->e->now - qp->nat->hello_at >= ROCI_NAT_SILENT_NS)
		say_hello(qp);
}

void roci_engine_rehome(struct roci_engine *e, uint64_t now, roci_rehome_fn *rehome, void *driver)
{
	roci_engine_clock(e, now);
	for (struct roci_list *l = e->all_qps.next; l != &e->all_qps; l = l->next) {
		struct roci_qp *qp = roci_container_of(l, struct roci_qp, all);
		struct roci_av av = qp->attr.av;

		if (!qp->nat || !is_hidden(qp->nat) || !roci_qp_receives(qp) || !rehome(driver, &av))
			continue;
		qp->attr.av = av;
		qp->attr.av.src_port = av.mad_port;
		roci_qp_address(qp);
		say_hello(qp);
		if (roci_qp_is_connected(qp))
			roci_probe_send(qp, 1);
	}
}

static void fill_hello(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_nat *n = qp->nat;
	const struct roci_av *av = &qp->attr.av;
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_HELLO,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qp->attr.dest_qpn,
				  .payload_len = ROCI_HELLO_BYTES};
	struct roci_hello h = {.token = n->terms.token, .cookie = n->terms.cookie};

	memcpy(h.src, av->sgid, 16);
	memcpy(h.dst, av->dgid, 16);
	roci_hello_build(&h, n->hello);
	roci_tx_batch_span(batch, n->hello, ROCI_HELLO_BYTES);
	roci_tx_batch_add(batch, av, &pkt);
	n->hello_due = false;
}

bool roci_nat_fill(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_nat *n = qp->nat;

	if (!n->hello_due && !n->challenge_due)
		return false;
	if (batch->count == ROCI_TX_BATCH || batch->span_count == ROCI_TX_SPANS)
		return true;
	if (qp->state == ROCI_QPS_ERR)
		n->hello_due = n->challenge_due = false;
	else if (n->hello_due)
		fill_hello(qp, batch);
	else
		fill_challenge(qp, batch);
	return false;
}
