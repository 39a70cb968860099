/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1 of a device and everybody who can reach it, led by a script of bytes: hosts that send MADs, HELLOs and
 * CHALLENGEs from any address, a peer behind a NAT that gives it another place whenever it likes, users of the host who
 * bring packets to the side door, and processes that do not read what is forwarded to them. Connections are made with a
 * second connection manager, whose messages the script carries, loses, repeats, changes and sends from elsewhere.
 * Whoever sends knows all tokens, and the cookies of all places that a CHALLENGE went to: more than any attacker.
 *
 * A QP or connection goes to no place that has not brought back the cookie of a CHALLENGE which went there. A packet
 * gets one CHALLENGE at most, which is shorter than itself, and nothing is kept of who has not proved where it is. From
 * users who have no business at the side door nothing is taken. What came by a side door is not forwarded again.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_gsi [iterations [seed]].
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/msg.h"
#include "cm_inspect.h"
#include "device/gsi.h"
#include "device/nat.h"
#include "device/seal.h"
#include "engine/cq.h"
#include "engine_steps.h"
#include "fake_host.h"
#include "random.h"
#include "script.h"
#include "seeded.h"
#include "wire/mtu_probe.h"

enum { QPS = 3, ENDS = 6, MADS = 16, PLACES = 5, COOKIES = 3 };

#define PD      1
#define FAR_QPN 77
#define GIFT    320 /* bytes of the longest MAD in a HELLO */

#define IPV4(a, b, c, d)                                                                                               \
	{                                                                                                              \
		[10] = 0xff, [11] = 0xff, a, b, c, d                                                                   \
	}

static const uint8_t ours[2][16] = {IPV4(10, 0, 0, 1), {0xfd, [15] = 1}};
static const uint8_t inside[16] = IPV4(192, 168, 1, 9); /* the far end's own address, behind its NAT */

struct place {
	uint8_t gid[16];
	uint16_t port;
};
/* The last one is the far end's where it is behind no NAT. */
static const struct place places[PLACES] = {{IPV4(203, 0, 113, 7), 40001},
					    {IPV4(203, 0, 113, 7), 40002},
					    {IPV4(203, 0, 113, 8), 40001},
					    {{0xfd, [15] = 9}, 40001},
					    {IPV4(10, 0, 0, 2), ROCI_UDP_PORT}};

static struct {
	struct roci_cm *far;
	struct roci_listener *listener, *far_listener;
	uint64_t seed;                     /* of the far end's ids */
	unsigned at;                       /* the place that the far end's packets come from */
	uint64_t cookies[PLACES][COOKIES]; /* that went there: the last ones, */
	unsigned challenged[PLACES];       /* and how many different ones did */
	struct roci_conn *ends[ENDS], *far_ends[ENDS];
	struct roci_cq *cq;
	struct roci_qp *qps[QPS];
	struct roci_cm_tx mads[MADS]; /* of either side: the last ones */
	unsigned mad_count;
	uint32_t received_len;   /* of the packet that arrives now; 0: none does */
	unsigned sent, answered; /* since then: packets, CHALLENGEs */
	unsigned stuck;          /* so often, the other processes have no room at their side doors */
	bool ended;              /* they have, just now */
} world;

/* In all runs, to see that the fuzzer gets far enough. */
static unsigned long challenges, proved, moved, made, refused, forwards;

static struct roci_cm *cm(void)
{
	return roci_cm_host_cm(&host.dev);
}

/* ---- what the device sends ---- */

static int place_of(const uint8_t gid[16], uint16_t port)
{
	for (int i = 0; i < PLACES; i++)
		if (!memcmp(places[i].gid, gid, 16) && places[i].port == port)
			return i;
	return -1;
}

static bool was_told(unsigned place, uint64_t cookie)
{
	for (unsigned i = 0; i < COOKIES; i++)
		if (cookie && world.cookies[place][i] == cookie)
			return true;
	return false;
}

static void saw_challenge(const struct roci_frame *frame, const struct roci_packet *pkt, int place)
{
	struct roci_challenge c;

	CHECK(roci_challenge_parse(pkt->payload, pkt->payload_len, &c));
	challenges++;
	if (place >= 0 && !was_told((unsigned)place, c.cookie))
		world.cookies[place][world.challenged[place]++ % COOKIES] = c.cookie;
	if (!world.received_len)
		return;
	world.answered++;
	CHECK(frame->len < world.received_len);
}

static void keep_end(struct roci_conn **ends, struct roci_conn *conn)
{
	for (unsigned i = 0; i < ENDS; i++)
		if (!ends[i]) {
			ends[i] = conn;
			return;
		}
	roci_conn_destroy(conn, host.now);
}

static void hear_far(void)
{
	struct roci_cm_event ev;

	while (roci_cm_next_event(world.far, &ev))
		if (ev.kind == ROCI_CM_REQ_RECEIVED)
			keep_end(world.far_ends, ev.conn);
		else if (ev.kind == ROCI_CM_SIDR_REQ_RECEIVED)
			roci_sidr_destroy(ev.sidr, host.now);
}

static void remember(const struct roci_cm_tx *tx)
{
	world.mads[world.mad_count++ % MADS] = *tx;
}

/* To the far end, where it is there. */
static void carry_to_far(const uint8_t *mad, const uint8_t *src, const uint8_t *dst)
{
	struct roci_cm_tx tx = {.hop_limit = 64};

	memcpy(tx.sgid, src, 16);
	memcpy(tx.dgid, dst, 16);
	memcpy(tx.mad, mad, ROCI_CM_MAD_BYTES);
	remember(&tx);
	if (one_in(8))
		return;
	roci_cm_rx(world.far, host.now, mad, src, dst, 1);
	hear_far();
}

void fake_sent(const struct roci_frame *frame)
{
	uint16_t port = frame->av->nat ? frame->av->nat->port : ROCI_UDP_PORT;
	int place = place_of(frame->av->dgid, port);
	uint8_t bytes[1024];
	struct roci_packet pkt;

	if (frame->len > sizeof(bytes))
		return;
	world.sent++;
	roci_seal_packet(frame, bytes);
	CHECK(roci_packet_parse(&pkt, bytes, frame->len) == ROCI_PARSE_OK);
	if (pkt.op->kind == ROCI_KIND_CHALLENGE)
		saw_challenge(frame, &pkt, place);
	else if (pkt.dest_qpn == ROCI_QPN_GSI && pkt.op->kind == ROCI_KIND_HELLO)
		carry_to_far(pkt.payload + ROCI_HELLO_BYTES, frame->av->sgid, frame->av->dgid);
	else if (roci_gsi_is_mad(&pkt) && pkt.dest_qpn == ROCI_QPN_GSI && place == (int)world.at)
		carry_to_far(pkt.payload, frame->av->sgid, frame->av->nat ? inside : frame->av->dgid);
}

int fake_forwarded(const struct roci_arrival *from)
{
	CHECK(!from->forwarded || from->offered);
	forwards++;
	if (world.ended)
		return -ESRCH;
	return world.stuck && world.stuck-- ? -EAGAIN : 0;
}

/* ---- what must hold ---- */

/* Nothing goes to a place that no CHALLENGE went to. */
static void check_places(void)
{
	for (unsigned i = 0; i < QPS; i++) {
		struct roci_nat_terms terms;
		uint8_t gid[16];
		int place;

		if (!world.qps[i] || !roci_engine_nat_terms(host.dev.engine, world.qps[i]->qpn, &terms, gid) ||
		    !terms.port)
			continue;
		place = place_of(gid, terms.port);
		CHECK(place >= 0 && world.challenged[place]);
	}
	for (unsigned i = 0; i < ENDS; i++) {
		const struct roci_conn_info *info = world.ends[i] ? roci_conn_info(world.ends[i]) : NULL;
		struct roci_nat_terms found;
		int place;

		if (!info || !roci_cm_find_nat(cm(), info->path.dgid, info->remote_qpn, &found) || !found.port)
			continue;
		place = place_of(info->path.dgid, found.port);
		CHECK(place >= 0 && world.challenged[place]);
		proved++;
	}
}

struct way {
	enum fake_way by;
	uint32_t uid;
};

static bool is_believed(const struct way *way)
{
	return way->by == FAKE_UDP || way->uid == getuid();
}

/* A packet arrives from `from`; claim: it says that it comes from elsewhere, with this cookie. */
static void arrive(const struct way *way, unsigned from, const uint8_t *bytes, uint32_t len, bool claims,
		   uint64_t cookie)
{
	struct roci_arrival a = {.hop_limit = 64, .uid = way->uid};
	const struct roci_device_stats *s = host.dev.stats;
	uint64_t refusals = s->door_refused, mads = s->mads_received + s->mads_malformed;
	unsigned objects = cm_object_count(cm());
	bool proves = was_told(from, cookie);

	a.flow = (struct roci_flow){.src_port = places[from].port, .dst_port = ROCI_UDP_PORT};
	memcpy(a.flow.src, places[from].gid, 16);
	memcpy(a.flow.dst, ours[places[from].gid[0] == 0xfd], 16);
	world.received_len = len;
	world.sent = world.answered = 0;
	fake_arrive(way->by, &a, bytes, len);
	CHECK(world.answered <= 1);
	CHECK((s->door_refused == refusals) == is_believed(way));
	refused += s->door_refused != refusals;
	if (s->door_refused != refusals)
		CHECK(!world.sent && s->mads_received + s->mads_malformed == mads);
	if (claims && !proves)
		CHECK(cm_object_count(cm()) <= objects);
	fake_send_out();
	world.received_len = 0;
	check_places();
}

/* ---- packets ---- */

/* A packet whose ICRC covers the addresses src and dst, which may not be those that it comes with. */
static uint32_t seal(const struct roci_packet *pkt, const uint8_t *payload, const uint8_t *src, const uint8_t *dst,
		     uint8_t *bytes)
{
	struct roci_av av = {.src_port = ROCI_UDP_PORT};
	uint8_t header[ROCI_MAX_HEADER_BYTES];
	struct roci_span span = {(void *)(uintptr_t)payload, pkt->payload_len};
	struct roci_frame frame = roci_frame(&av, header, roci_packet_build(pkt, header), &span, 1);

	memcpy(av.sgid, src, 16);
	memcpy(av.dgid, dst, 16);
	roci_seal_packet(&frame, bytes);
	return frame.len;
}

static struct way any_way(void)
{
	static const uint32_t users[] = {1001, 65534, UINT32_MAX};
	struct way way = {FAKE_UDP, 0};

	if (one_in(4)) {
		way.by = one_in(3) ? FAKE_OFFER : FAKE_DOOR;
		way.uid = one_in(2) ? getuid() : users[below(3)];
	}
	return way;
}

/* One that went to this place, or to another one, or none. */
static uint64_t any_cookie(unsigned from)
{
	return one_in(8) ? below(3) : world.cookies[one_in(4) ? below(PLACES) : from][below(COOKIES)];
}

static const uint8_t *own_of(unsigned place)
{
	return ours[places[place].gid[0] == 0xfd];
}

static void send_hello(uint32_t qpn, unsigned from, uint64_t token, uint64_t cookie, const uint8_t *mad)
{
	struct roci_hello h = {.token = token, .cookie = cookie};
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_HELLO,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qpn,
				  .payload_len = ROCI_HELLO_BYTES + (mad ? ROCI_HELLO_MAD_BYTES : 0)};
	uint8_t payload[GIFT], bytes[GIFT + ROCI_MAX_HEADER_BYTES + 8];
	struct way way = any_way();

	memcpy(h.src, one_in(16) ? places[below(PLACES)].gid : inside, 16);
	memcpy(h.dst, own_of(from), 16);
	roci_hello_build(&h, payload);
	if (mad)
		memcpy(payload + ROCI_HELLO_BYTES, mad, ROCI_HELLO_MAD_BYTES);
	if (one_in(40))
		payload[below(pkt.payload_len)] ^= (uint8_t)(1u << below(8));
	arrive(&way, from, bytes, seal(&pkt, payload, h.src, h.dst, bytes), true, cookie);
}

/* Nobody has to prove where it is by a probe: it begins nothing, and is not answered. */
static void send_probe(unsigned from, uint64_t token, const uint8_t *mad)
{
	struct roci_hello h = {.token = token};
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_MTU_PROBE,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = one_in(16) ? FAR_QPN : ROCI_QPN_GSI,
				  .payload_len = roci_mtu_probe_bytes(1 + (unsigned)below(ROCI_MTU_CODE_MAX))};
	uint8_t payload[ROCI_MTU_PROBE_MOST_BYTES] = {0}, bytes[sizeof(payload) + ROCI_MAX_HEADER_BYTES + 8];
	struct way way = any_way();

	memcpy(h.src, one_in(4) ? places[from].gid : inside, 16);
	memcpy(h.dst, own_of(from), 16);
	roci_hello_build(&h, payload);
	memcpy(payload + ROCI_HELLO_BYTES, mad, ROCI_HELLO_MAD_BYTES);
	if (one_in(16))
		pkt.payload_len = (uint32_t)below(sizeof(payload));
	if (one_in(40))
		payload[below(ROCI_MTU_PROBE_LEAST_BYTES)] ^= (uint8_t)(1u << below(8));
	arrive(&way, from, bytes, seal(&pkt, payload, h.src, h.dst, bytes), true, 0);
	CHECK(!world.answered);
}

static void send_challenge(uint32_t qpn, unsigned from, uint32_t id, uint64_t token)
{
	struct roci_challenge c = {.id = id, .token = token, .cookie = 1 + below(3), .seen_port = 4791};
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_CHALLENGE,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qpn,
				  .payload_len = ROCI_CHALLENGE_BYTES};
	uint8_t payload[ROCI_CHALLENGE_BYTES], bytes[GIFT];
	struct way way = any_way();

	roci_challenge_build(&c, payload);
	if (one_in(40))
		payload[below(pkt.payload_len)] ^= (uint8_t)(1u << below(8));
	arrive(&way, from, bytes, seal(&pkt, payload, places[from].gid, own_of(from), bytes), false, 0);
}

/* covers: what its ICRC covers, where that is not the place that it comes from. */
static void send_mad(unsigned from, const uint8_t *mad, const uint8_t *covers)
{
	struct roci_packet pkt = {.opcode = ROCI_TRANSPORT_UD | ROCI_OP_SEND_ONLY,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = ROCI_QPN_GSI,
				  .src_qpn = ROCI_QPN_GSI,
				  .qkey = ROCI_QKEY_GSI,
				  .payload_len = ROCI_CM_MAD_BYTES};
	uint8_t bytes[GIFT + ROCI_MAX_HEADER_BYTES + 8];
	struct way way = any_way();

	if (one_in(40))
		pkt.qkey = 7;
	arrive(&way, from, bytes, seal(&pkt, mad, covers ? covers : places[from].gid, own_of(from), bytes), covers, 0);
}

/* ---- the far end ---- */

static uint32_t draw(void *context)
{
	return (uint32_t)random_next(&world.seed);
}

/* As its device would: behind a NAT in a HELLO once it has a cookie, and until then as if there was none. */
static void far_sends(const struct roci_cm_tx *tx)
{
	if (one_in(4))
		send_probe(world.at, tx->nat.token, tx->mad);
	if (!memcmp(tx->sgid, places[PLACES - 1].gid, 16))
		send_mad(PLACES - 1, tx->mad, NULL);
	else if (tx->nat.cookie)
		send_hello(ROCI_QPN_GSI, world.at, tx->nat.token, tx->nat.cookie, tx->mad);
	else
		send_mad(world.at, tx->mad, inside);
}

/* The CHALLENGE that went to its place reaches it: which one of its exchanges it is about, it finds out. */
static void far_is_challenged(void)
{
	const struct roci_cm_tx *tx = world.mad_count ? &world.mads[(world.mad_count - 1 - below(4)) % MADS] : NULL;
	struct roci_cm_msg msg;

	if (tx && world.challenged[world.at] && roci_cm_msg_parse(&msg, tx->mad) == ROCI_CM_PARSE_OK)
		roci_cm_challenged(world.far, msg.local_id, msg.tid,
				   world.cookies[world.at][(world.challenged[world.at] - 1) % COOKIES], ours[0]);
}

static void far_step(void)
{
	struct roci_cm_tx tx;

	roci_cm_timers(world.far, host.now);
	hear_far();
	for (unsigned n = 0; n < 4 && roci_cm_tx(world.far, host.now, &tx); n++) {
		remember(&tx);
		if (!one_in(8))
			far_sends(&tx);
	}
}

/* ---- consumers of either side ---- */

void fake_cm_event(const struct roci_cm_event *event)
{
	if (event->kind == ROCI_CM_REQ_RECEIVED)
		keep_end(world.ends, event->conn);
	if (event->kind == ROCI_CM_SIDR_REQ_RECEIVED)
		roci_sidr_answer(event->sidr, host.now, &(struct roci_cm_sidr_answer){.qpn = 7});
}

static struct roci_conn *begin(struct roci_cm *from, const uint8_t *src, const uint8_t *dst, uint16_t port)
{
	struct roci_cm_connect params = {
		.service_id = roci_cm_service_id(ROCI_PS_TCP, port),
		.path = {.pkey = 0xffff, .mtu = 3, .packet_life = 16, .hop_limit = 64, .rate = 7},
		.qpn = FAR_QPN,
		.user = &world,
	};
	struct roci_cm_ip ip = {.src_port = 1, .ipv4 = true};
	uint8_t private[ROCI_CM_IP_BYTES];
	struct roci_conn *conn;

	memcpy(params.path.sgid, src, 16);
	memcpy(params.path.dgid, dst, 16);
	memcpy(ip.src, src, 16);
	memcpy(ip.dst, dst, 16);
	roci_cm_ip_build(&ip, private);
	params.private = (struct roci_cm_bytes){private, sizeof(private)};
	return roci_conn_connect(from, host.now, &params, &conn) ? NULL : conn;
}

static void connect_any(void)
{
	uint16_t port = one_in(4) ? (uint16_t)(FAKE_PORT_OURS + below(6)) : FAKE_PORT_OURS;
	struct roci_conn *conn;

	switch (below(3)) {
	case 0:
		conn = begin(cm(), ours[0], places[PLACES - 1].gid, port);
		if (conn)
			keep_end(world.ends, conn);
		break;
	case 1: conn = begin(world.far, places[PLACES - 1].gid, ours[0], port); goto far;
	default:
		conn = begin(world.far, inside, ours[0], port);
	far:
		if (conn)
			keep_end(world.far_ends, conn);
	}
}

/* A QP of a connection, as verbs makes it. */
static void connect_qp(const struct roci_conn_info *info)
{
	unsigned i = (unsigned)below(QPS);
	struct roci_qp_init init = {.qpn = roci_slot_qpn(&host.dev.registry.slot_key, FAKE_SLOT, 100 + i),
				    .type = ROCI_QPT_RC,
				    .pd = PD,
				    .send_cq = world.cq,
				    .recv_cq = world.cq,
				    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct roci_qp_attr a = {.port_num = 1,
				 .path_mtu = 3,
				 .dest_qpn = info->remote_qpn,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 4,
				 .max_dest_rd_atomic = 4,
				 .av = {.mtu = 1024, .src_port = 7, .mad_port = ROCI_UDP_PORT}};

	memcpy(a.av.sgid, info->path.sgid, 16);
	memcpy(a.av.dgid, info->path.dgid, 16);
	if (world.qps[i])
		roci_qp_destroy(world.qps[i]);
	CHECK(!roci_qp_create(host.dev.engine, &init, &world.qps[i]));
	init_rc(world.qps[i], host.now, &a);
	CHECK(!roci_device_cross_nat(&host.dev, world.qps[i], a.av.dgid, a.dest_qpn));
	connect_rc(world.qps[i], host.now, &a);
	made++;
	check_places();
}

static void use(struct roci_conn **end, bool far)
{
	const struct roci_cm_bytes none = {0};
	struct roci_cm_accept accept = {.qpn = FAR_QPN};
	unsigned how = (unsigned)below(12);

	if (how == 0) {
		roci_conn_destroy(*end, host.now);
		*end = NULL;
		return;
	}
	if (how == 1)
		roci_conn_disconnect(*end, host.now, none);
	else if (how == 2)
		roci_conn_reject(*end, host.now, ROCI_REJ_CONSUMER_DEFINED, none, none);
	else if (roci_conn_accept(*end, host.now, &accept) && roci_conn_establish(*end, host.now, none) && how == 3)
		roci_conn_notify(*end, host.now);
	if (!far && how > 6)
		connect_qp(roci_conn_info(*end));
}

static void act(void)
{
	bool far = one_in(2);
	struct roci_conn **ends = far ? world.far_ends : world.ends;
	unsigned i = (unsigned)below(ENDS);

	if (ends[i])
		use(&ends[i], far);
	hear_far();
	roci_cm_host_drive(&host.dev, host.now);
}

/* ---- the attacker ---- */

static void mutate(uint8_t *mad)
{
	for (size_t n = below(4); n > 0; n--) {
		size_t at = below(one_in(2) ? 80 : ROCI_CM_MAD_BYTES);

		if (one_in(2))
			mad[at] = (uint8_t)below(256);
		else
			mad[at] ^= (uint8_t)(1u << below(8));
	}
}

/* A message that somebody has sent, from anywhere, in any form. */
static void replay(void)
{
	struct roci_cm_tx tx = world.mads[below(MADS)];
	unsigned from = one_in(2) ? world.at : (unsigned)below(PLACES);
	struct roci_cm_msg msg;
	bool parsed;

	mutate(tx.mad);
	parsed = roci_cm_msg_parse(&msg, tx.mad) == ROCI_CM_PARSE_OK;
	switch (below(4)) {
	case 0: send_mad(from, tx.mad, NULL); break;
	case 1: send_mad(from, tx.mad, inside); break;
	case 2: send_probe(from, parsed && !one_in(8) ? msg.tid : 5, tx.mad); break;
	default: send_hello(ROCI_QPN_GSI, from, parsed && !one_in(8) ? msg.tid : 5, any_cookie(from), tx.mad);
	}
}

/* A QP's peer says HELLO from anywhere, or challenges it. */
static void to_qp(void)
{
	const struct roci_qp *qp = world.qps[below(QPS)];
	unsigned from = (unsigned)below(PLACES);
	struct roci_nat_terms before = {0}, after;
	uint64_t token, cookie = any_cookie(from);
	uint8_t was[16] = {0}, is[16];
	bool knows;

	if (!qp)
		return;
	roci_engine_nat_terms(host.dev.engine, qp->qpn, &before, was);
	token = one_in(8) ? before.token ^ 1 : before.token;
	if (one_in(4)) {
		send_challenge(qp->qpn, from, 0, token);
		return;
	}
	knows = was_told(from, cookie);
	send_hello(qp->qpn, from, token, cookie, NULL);
	if (!roci_engine_nat_terms(host.dev.engine, qp->qpn, &after, is))
		return;
	if (memcmp(was, is, 16) || before.port != after.port || memcmp(before.src, after.src, 16)) {
		CHECK(knows && token == before.token);
		moved++;
	}
}

static void challenge_any(void)
{
	const struct roci_cm_tx *tx = &world.mads[below(MADS)];
	struct roci_cm_msg msg = {0};

	if (roci_cm_msg_parse(&msg, tx->mad) != ROCI_CM_PARSE_OK)
		msg.local_id = (uint32_t)below(UINT32_MAX);
	send_challenge(ROCI_QPN_GSI, one_in(4) ? (unsigned)below(PLACES) : PLACES - 1, msg.local_id,
		       one_in(8) ? 1 : msg.tid);
}

static void anything(void)
{
	struct way way = any_way();
	uint8_t bytes[ROCI_MAX_HEADER_BYTES + 300];
	size_t len = below(sizeof(bytes)), filled = len < 40 ? len : 40;

	memset(bytes, 0, sizeof(bytes));
	script_fill(bytes, filled);
	if (way.by == FAKE_UDP || is_believed(&way))
		arrive(&way, (unsigned)below(PLACES), bytes, (uint32_t)len, false, 0);
}

/* ---- the story ---- */

static void step(void)
{
	switch (below(22)) {
	case 0:
	case 1: connect_any(); break;
	case 2:
	case 3:
	case 4:
	case 5: act(); break;
	case 6: world.at = (unsigned)below(3); break;
	case 7:
	case 8: far_is_challenged(); break;
	case 9: fake_pass(ONE_OF(1000, 1000000, 600000000, 3000000000, 61000000000)); break;
	case 10:
	case 11: replay(); break;
	case 12:
	case 13: to_qp(); break;
	case 14: challenge_any(); break;
	case 15:
		world.stuck = (unsigned)ONE_OF(0, 0, 20, 300);
		world.ended = one_in(4);
		break;
	case 16:
		if (one_in(4))
			anything();
		break;
	default: far_step();
	}
	drop_events(host.dev.engine);
}

static struct roci_listener *listen_at(struct roci_cm *manager)
{
	struct roci_cm_listen params = {.service_id = roci_cm_service_id(ROCI_PS_TCP, FAKE_PORT_OURS)};
	struct roci_listener *listener;

	CHECK(!roci_cm_listen(manager, &params, &listener));
	return listener;
}

static void finish(void)
{
	for (unsigned i = 0; i < ENDS; i++) {
		if (world.ends[i])
			roci_conn_destroy(world.ends[i], host.now);
		if (world.far_ends[i])
			roci_conn_destroy(world.far_ends[i], host.now);
	}
	roci_cm_destroy(world.far);
	fake_host_close();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct roci_cm_config config = {.id_base = 1u << ROCI_COMM_SLOT_SHIFT, .id_mask = 0xff, .random = draw};

	memset(&world, 0, sizeof(world));
	script_begin(bytes, len);
	fake_host_open(ours, 2, 1 + below(256));
	host.no_port = one_in(16);
	host.dev.receive.trust.tables = "/nowhere";
	world.far = roci_cm_create(&config);
	CHECK(world.far && !roci_cq_create(host.dev.engine, 64, NULL, &world.cq));
	world.listener = listen_at(cm());
	world.far_listener = listen_at(world.far);
	while (!script_ended())
		step();
	finish();
	return 0;
}

#ifndef ROCI_LIBFUZZER

int main(int argc, char **argv)
{
	unsigned long runs = seeded_scripts(argc, argv, 2000, 3000);

	printf("%lu CHALLENGEs, %lu times a proved place, %lu moves, %lu QPs, %lu refused at the door, %lu forwarded\n",
	       challenges, proved, moved, made, refused, forwards);
	CHECK(runs < 1000 || (challenges && proved && moved && made && refused && forwards));
	return 0;
}

#endif
