/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors that need a peer which breaks the rules, forgets, or is silent: this command plays it (provoke_peer.h). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "provoke.h"
#include "provoke_ends.h"
#include "provoke_peer.h"
#include "wire/bytes.h"
#include "wire/gid.h"

#define READ_BYTES  100u
#define SHORT_BYTES 60u

/* ---- requests ---- */

/* A queue pair in RTS whose peer is the played one. NULL: it cannot be made. */
static struct ibv_qp *connect_qp(struct provoke *p)
{
	struct ibv_qp *qp = provoke_qp(p, 4, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	const uint32_t own = htonl(INADDR_LOOPBACK), peer = htonl(PEER_ADDRESS);
	union ibv_gid sgid, dgid, gid;
	int index = 0;

	roci_gid_from_ipv4(sgid.raw, &own);
	roci_gid_from_ipv4(dgid.raw, &peer);
	while (!ibv_query_gid(p->context, 1, index, &gid) && memcmp(&gid, &sgid, sizeof(gid)))
		index++;
	if (qp && !provoke_rtr_to(p, qp, PEER_QPN, (uint8_t)index, &dgid) && !provoke_rts(qp, 1, PROVOKE_LONG))
		return qp;
	if (qp)
		provoke_qp_destroy(qp);
	return NULL;
}

static bool post_read(struct provoke *p, struct ibv_qp *qp)
{
	struct ibv_sge sge = {(uintptr_t)p->bytes, READ_BYTES, p->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_READ,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = (uintptr_t)p->bytes, .rkey = p->mr->rkey},
				 };

	return !ibv_post_send(qp, &wr, &bad);
}

/* A posts an RDMA READ, and the peer gives this answer to it. */
static bool answered(struct provoke *p, int fd, struct roci_packet *answer)
{
	struct ibv_qp *qp = connect_qp(p);
	struct peer_packet got;
	bool came = qp && post_read(p, qp) && peer_receive(fd, ROCI_KIND_READ_REQUEST, &got);

	if (came) {
		printf("  peer: got an RDMA READ Request for %u bytes\n", got.packet.dma_len);
		answer->pkey = ROCI_PKEY_DEFAULT;
		answer->dest_qpn = qp->qp_num;
		answer->psn = got.packet.psn;
		came = peer_send(fd, &got.from, answer) && provoke_completes("A", qp, IBV_WC_BAD_RESP_ERR);
	}
	if (qp)
		provoke_qp_destroy(qp);
	return came;
}

static bool short_response(struct provoke *p, int fd)
{
	const uint8_t payload[SHORT_BYTES] = {0};
	struct roci_packet answer = {
		.opcode = ROCI_OP_READ_RESPONSE_ONLY,
		.syndrome = ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS,
		.payload = payload,
		.payload_len = sizeof(payload),
	};

	return answered(p, fd, &answer);
}

static bool invalid_rd(struct provoke *p, int fd)
{
	struct roci_packet answer = {.opcode = ROCI_OP_ACKNOWLEDGE,
				     .syndrome = ROCI_AETH_NAK | ROCI_NAK_INVALID_RD_REQUEST};

	return answered(p, fd, &answer);
}

/* The peer's first packet is not the one that A expects. */
static bool psn_gap(struct provoke *p, int fd)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(ROCI_UDP_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct roci_packet send = {.opcode = ROCI_OP_SEND_ONLY, .pkey = ROCI_PKEY_DEFAULT, .psn = 5, .ack_req = true};
	struct ibv_qp *qp = connect_qp(p);
	struct peer_packet got;
	bool came = false;

	/* A binds its port when it sends. */
	if (qp && post_read(p, qp) && peer_receive(fd, ROCI_KIND_READ_REQUEST, &got)) {
		send.dest_qpn = qp->qp_num;
		came = peer_send(fd, &to, &send) && peer_receive(fd, ROCI_KIND_ACK, &got) &&
		       got.packet.syndrome == (ROCI_AETH_NAK | ROCI_NAK_PSN_SEQUENCE);
		if (came)
			printf("  peer: got a NAK with syndrome 0x%02x, PSN %u\n", got.packet.syndrome, got.packet.psn);
	}
	if (qp)
		provoke_qp_destroy(qp);
	return came;
}

/* ---- connections ---- */

/* Places in the body of a message, in bytes: IBTA 12.6.5 (REQ), 12.6.7 (REJ), 12.6.8 (REP). */
enum {
	LOCAL_ID_AT = 0,
	REMOTE_ID_AT = 4,
	REJ_INFO_AT = 8, /* 2 bits: 0 of a REQ, 1 of a REP */
	REJ_REASON_AT = 10,
	REP_QPN_AT = 12,
	REQ_SERVICE_AT = 8,
	REQ_QPN_AT = 32,
	REQ_TRANSPORT_AT = 43, /* 5 bits time, 2 bits transport service */
	REQ_PKEY_AT = 48,
	REQ_MTU_AT = 50, /* 4 bits */
	REQ_RETRIES_AT = 51,
	REQ_LIDS_AT = 52,
	REQ_LOCAL_GID_AT = 56,
	REQ_REMOTE_GID_AT = 72,
	REQ_HOP_LIMIT_AT = 93,
	REQ_IP_AT = 140, /* the IP CM header, IBTA A11.3.2 */
};

#define IP_SERVICE    (UINT64_C(1) << 24 | UINT64_C(0x06) << 16) /* RDMA_PS_TCP */
#define TRANSPORT_RD  (2 << 1)
#define MTU_1024      (3 << 4)
#define TWO_RETRIES   (2 << 4)
#define RESPONSE_TIME (16 << 3) /* 4.096 us x 2^16: 0.27 s */

/* A correct REQ to the listener: for RC, from a queue pair PEER_QPN. */
static void make_req(struct peer_mad *req, const struct ends *e, uint32_t id)
{
	const uint32_t peer = htonl(PEER_ADDRESS);
	uint8_t *b = req->body;

	*req = (struct peer_mad){.message = PEER_REQ, .tid = UINT64_C(0x100) + id};
	roci_put_be32(b + LOCAL_ID_AT, id);
	roci_put_be64(b + REQ_SERVICE_AT, IP_SERVICE | ntohs(e->address.sin_port));
	roci_put_be24(b + REQ_QPN_AT, PEER_QPN);
	b[REQ_TRANSPORT_AT] = RESPONSE_TIME;
	roci_put_be16(b + REQ_PKEY_AT, ROCI_PKEY_DEFAULT);
	b[REQ_MTU_AT] = MTU_1024;
	b[REQ_RETRIES_AT] = TWO_RETRIES;
	roci_put_be32(b + REQ_LIDS_AT, 0xffffffff);
	roci_gid_from_ipv4(b + REQ_LOCAL_GID_AT, &peer);
	roci_gid_from_ipv4(b + REQ_REMOTE_GID_AT, &e->address.sin_addr);
	b[REQ_HOP_LIMIT_AT] = 64;
	b[REQ_IP_AT + 1] = 4 << 4; /* IPv4 */
	memcpy(b + REQ_IP_AT + 16, &peer, sizeof(peer));
	memcpy(b + REQ_IP_AT + 32, &e->address.sin_addr, sizeof(peer));
}

static bool send_to_listener(int fd, const struct ends *e, const struct peer_mad *mad)
{
	struct sockaddr_in to = e->address;

	to.sin_port = htons(ROCI_UDP_PORT);
	return peer_send_mad(fd, &to, mad);
}

/* Whether the next REJ that the peer gets has this reason. */
static bool gets_reject(int fd, int reason)
{
	struct sockaddr_in from;
	struct peer_mad rej;
	int got;

	if (!peer_receive_mad(fd, PEER_REJ, &rej, &from))
		return false;
	got = roci_get_be16(rej.body + REJ_REASON_AT);
	printf("  peer: got a REJ with reason %d\n", got);
	return got == reason;
}

/* The client connects to the peer. *req is its REQ. */
static bool client_asks(int fd, struct ends *e, struct peer_mad *req, struct sockaddr_in *from)
{
	e->address.sin_addr.s_addr = htonl(PEER_ADDRESS);
	return !ends_connect(e) && peer_receive_mad(fd, PEER_REQ, req, from);
}

/* The peer rejects the client's request for this reason. */
static bool reject_client(int fd, struct ends *e, int reason)
{
	struct peer_mad req, rej = {.message = PEER_REJ};
	struct sockaddr_in from;
	int status;

	if (!client_asks(fd, e, &req, &from))
		return false;
	rej.tid = req.tid;
	memcpy(rej.body + REMOTE_ID_AT, req.body + LOCAL_ID_AT, 4);
	rej.body[LOCAL_ID_AT + 3] = 1;
	roci_put_be16(rej.body + REJ_REASON_AT, (uint16_t)reason);
	return peer_send_mad(fd, &from, &rej) &&
	       ends_next("client", e->client_events, &status, NULL) == RDMA_CM_EVENT_REJECTED && status == reason;
}

/* The client asks, and the peer's REP names a connection that the client does not have. */
static bool unknown_id(int fd, struct ends *e, int reason)
{
	struct peer_mad req, rep = {.message = PEER_REP};
	struct sockaddr_in from;

	if (!client_asks(fd, e, &req, &from))
		return false;
	rep.tid = req.tid;
	rep.body[LOCAL_ID_AT + 3] = 1;
	memcpy(rep.body + REMOTE_ID_AT, req.body + LOCAL_ID_AT, 4);
	rep.body[REMOTE_ID_AT + 3] ^= 1;
	roci_put_be24(rep.body + REP_QPN_AT, PEER_QPN);
	return peer_send_mad(fd, &from, &rep) && gets_reject(fd, reason);
}

/* The server accepts, and the peer stays silent. */
static bool silent_client(int fd, struct ends *e, int reason)
{
	struct peer_mad req;

	make_req(&req, e, 1);
	return send_to_listener(fd, e, &req) && ends_requested(e) && ends_accept(e) &&
	       ends_expect("server", e->server_events, RDMA_CM_EVENT_UNREACHABLE, NULL) && gets_reject(fd, reason);
}

/* The same queue pair asks twice, as after a restart. */
static bool stale(int fd, struct ends *e, int reason)
{
	struct peer_mad first, second;

	make_req(&first, e, 1);
	make_req(&second, e, 2);
	return send_to_listener(fd, e, &first) && ends_requested(e) && ends_accept(e) &&
	       send_to_listener(fd, e, &second) && gets_reject(fd, reason);
}

static bool bad_req(int fd, struct ends *e, int reason)
{
	struct peer_mad req;

	make_req(&req, e, 1);
	if (reason == 9)
		req.body[REQ_TRANSPORT_AT] = RESPONSE_TIME | TRANSPORT_RD;
	else if (reason == 12)
		req.body[REQ_LOCAL_GID_AT + 15] ^= 1;
	else
		req.body[REQ_MTU_AT] = 0;
	return send_to_listener(fd, e, &req) && gets_reject(fd, reason);
}

/* ---- the table ---- */

static const struct {
	enum explain_kind kind;
	int code;
	const char *story;
	bool (*request)(struct provoke *p, int fd);
	bool (*connection)(int fd, struct ends *e, int reason);
} cases[] = {
	{EXPLAIN_WC_STATUS, IBV_WC_BAD_RESP_ERR, "A reads 100 bytes, and the peer answers with 60.", short_response,
	 NULL},
	{EXPLAIN_NAK, 0x60, "The peer sends a SEND with PSN 5, and A expects PSN 0.", psn_gap, NULL},
	{EXPLAIN_NAK, 0x64, "A reads 100 bytes, and the peer answers with NAK invalid RD request.", invalid_rd, NULL},
	{EXPLAIN_CM_REJECT, 4, "The peer connects, the server accepts, and the peer never answers.", NULL,
	 silent_client},
	{EXPLAIN_CM_REJECT, 6, "The client connects, and the peer's REP is for a connection that nobody has.", NULL,
	 unknown_id},
	{EXPLAIN_CM_REJECT, 9, "The peer asks the server for a connection of the Reliable Datagram service.", NULL,
	 bad_req},
	{EXPLAIN_CM_REJECT, 10, "The peer connects, the server accepts, and the same queue pair connects once more.",
	 NULL, stale},
	{EXPLAIN_CM_REJECT, 12, "The peer's request names another GID than that where it comes from.", NULL, bad_req},
	{EXPLAIN_CM_REJECT, 26, "The peer's request has path MTU 0, which is none.", NULL, bad_req},
};

static bool run_connection(const struct explanation *row, bool (*run)(int, struct ends *, int), int fd)
{
	struct ends e = {NULL};
	bool came = ends_open(&e) && run(fd, &e, row->code);

	ends_close(&e);
	return came;
}

bool provoke_played(struct provoke *p, const struct explanation *row, bool *known)
{
	bool (*request)(struct provoke *, int) = NULL, (*connection)(int, struct ends *, int) = NULL, came;
	const char *story = NULL;
	int fd;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (cases[i].kind != row->kind || cases[i].code != row->code)
			continue;
		story = cases[i].story;
		request = cases[i].request;
		connection = cases[i].connection;
	}
	if (!story && row->kind == EXPLAIN_CM_REJECT && row->foreign) {
		story = "The client connects, and the peer rejects it for this reason.";
		connection = reject_client;
	}
	*known = story;
	if (!story || !p)
		return false;
	printf("The peer is this command itself: a UDP socket at 127.0.0.2, which %s.\n%s\n",
	       row->foreign ? "does what roci0 never does" : "sends its packets by hand", story);
	fd = peer_open();
	if (fd < 0)
		return false;
	came = request ? request(p, fd) : run_connection(row, connection, fd);
	close(fd);
	return came;
}
