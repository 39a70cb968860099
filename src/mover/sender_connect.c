/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's connections: the control connection, to the first address of the host that works, and the data
 * connections. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "mover/clock.h"
#include "mover/sender.h"
#include "mover/wr_id.h"

#define CONNECT_TIMEOUT_MS 8000

struct failure {
	enum mover_status status;
	char text[sizeof(((struct session *)0)->text)];
};

static bool resolved(struct session *s)
{
	return s->control.conn.state == CONNECTION_RESOLVED || s->control.conn.state == CONNECTION_FAILED;
}

static bool control_up(struct session *s)
{
	return s->control.conn.state == CONNECTION_UP || s->control.conn.state == CONNECTION_FAILED;
}

static unsigned connect_timeout_ms(const struct session *s)
{
	return s->stall_timeout_ms < CONNECT_TIMEOUT_MS ? s->stall_timeout_ms : CONNECT_TIMEOUT_MS;
}

static struct addrinfo *look_up(struct sender *x, const char *host, const char *port, int flags)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags}, *list = NULL;
	int err = getaddrinfo(host, port, &hints, &list);

	if (err)
		session_fail(&x->s, MOVER_NO_CONNECT, "%s: %s", host, gai_strerror(err));
	return err ? NULL : list;
}

static void fail_refused(struct sender *x)
{
	const struct connection *conn = &x->s.control.conn;
	const char *host = x->options->host;
	unsigned port = x->options->port;

	x->refused = conn->rejected ? !conn->reject && !connection_is_crowded(conn) : conn->err == -ECONNREFUSED;
	if (conn->rejected && conn->reject == PROTO_REJECT_BUSY)
		session_fail(&x->s, MOVER_NO_CONNECT, "the receiver at %s has as many sessions as it allows; try later",
			     host);
	else if (conn->rejected && conn->reject == PROTO_REJECT_VERSION)
		session_fail(
			&x->s, MOVER_PROTOCOL,
			"%s port %u is not a receiver of this version (%d); install the same roci on both machines",
			host, port, PROTO_VERSION);
	else if (conn->rejected && conn->reject == PROTO_REJECT_TICKET)
		session_fail(&x->s, MOVER_NO_TRUST,
			     x->options->ticket ? "the other side does not know the ticket"
						: "the other side lets nobody in without a ticket");
	else if (connection_is_crowded(conn))
		session_fail(&x->s, MOVER_NO_CONNECT, "%s port %u has too many connection requests; try later", host,
			     port);
	else if (conn->rejected && conn->reject == PROTO_REJECT_DEVICE)
		session_fail(&x->s, MOVER_NO_CONNECT,
			     "the receiver at %s uses another device than the one that has this address", host);
	else if (connection_is_iwarp(conn->id))
		session_fail(&x->s, MOVER_NO_CONNECT,
			     "no iWARP connection to %s port %u (%s); is `roci recv` running there, on an iWARP device "
			     "like %s here?",
			     host, port, strerror(conn->err < 0 ? -conn->err : ETIMEDOUT),
			     conn->id->verbs->device->name);
	else if (conn->rejected)
		session_fail(&x->s, MOVER_NO_CONNECT,
			     "nobody listens at %s port %u by IPv%d; is `roci recv` running there? If it was started "
			     "with --bind, it listens at that address only",
			     host, port, rdma_get_peer_addr(conn->id)->sa_family == AF_INET ? 4 : 6);
	else if (conn->err == -ECONNREFUSED)
		session_fail(
			&x->s, MOVER_NO_CONNECT,
			"no RDMA program runs at %s: nothing listens there on UDP port 4791; start `roci recv` there, "
			"and then send again. If that is the address of a router (NAT) in front of the receiver, let "
			"it "
			"forward UDP port 4791 to the receiver; --port needs no forwarding",
			host);
	else if (conn->err == -EHOSTUNREACH || conn->err == -ENETUNREACH)
		session_fail(&x->s, MOVER_NO_CONNECT, "%s cannot be reached: %s; is it on, and in this network?", host,
			     strerror(-conn->err));
	else
		session_fail(&x->s, MOVER_NO_CONNECT,
			     "no answer from %s port %u; is `roci recv` running there, on a device of the same kind, "
			     "and UDP port 4791 open between the machines? A router (NAT) in front of the receiver "
			     "has to forward UDP port 4791 to it; one in front of the sender does no harm",
			     host, port);
}

static bool resolve(struct sender *x, const struct addrinfo *source, const struct addrinfo *to)
{
	struct session *s = &x->s;
	struct connection *conn = &s->control.conn;
	const char *host = x->options->host;
	int err = connection_resolve(conn, s->channel, source ? source->ai_addr : NULL, to->ai_addr);

	if (!err) {
		enum session_wait result = session_wait(s, resolved, CONNECT_TIMEOUT_MS);

		if (result == SESSION_FAILED)
			return false;
		if (conn->state == CONNECTION_RESOLVED)
			return true;
		err = result == SESSION_TIMED_OUT ? -ETIMEDOUT : conn->err;
	}
	if (err == -ENODEV)
		session_fail(s, MOVER_NO_DEVICE, "no RDMA device leads to %s", host);
	else if (source && err == -EADDRNOTAVAIL)
		session_fail(s, MOVER_NO_DEVICE, "--bind %s: %s", s->common->bind_address, strerror(-err));
	else
		session_fail(s, MOVER_NO_CONNECT, "%s cannot be reached: %s", host, strerror(err < 0 ? -err : EIO));
	return false;
}

/* Gives the session its number, and shows the ticket in the connect request. */
static bool prove(struct sender *x, struct proto_request *request)
{
	const struct mover_ticket *ticket = x->options->ticket;

	if (getrandom(&x->number, sizeof(x->number), 0) != sizeof(x->number))
		return false;
	x->number |= 1; /* not zero */
	request->session = x->number;
	return !ticket || mover_secure_proof(ticket->secret, x->number, request->token) == 0;
}

static void fail_secure(struct session *s)
{
	if (mover_secure_try() == -ENOTSUP)
		session_fail(s, MOVER_FAILED, "%s", SECURE_LACKS);
	else
		session_fail_memory(s);
}

/* To the address that has been resolved. */
static bool connect_control(struct sender *x)
{
	struct session *s = &x->s;
	struct connection *conn = &s->control.conn;
	struct proto_request request = {0};
	int err;

	if (!prove(x, &request)) {
		fail_secure(s);
		return false;
	}
	if (s->common->device && strcmp(s->common->device, conn->id->verbs->device->name)) {
		session_fail(s, MOVER_NO_DEVICE, "the way to %s leads over %s, not over %s", x->options->host,
			     conn->id->verbs->device->name, s->common->device);
		return false;
	}
	if (!session_open_device(s))
		return false;
	err = connection_connect(conn, &request);
	if (err) {
		session_fail_errno(s, err, "connecting");
		return false;
	}
	/* before the answer comes, because OpenSSL takes some milliseconds to begin */
	s->control.secure = mover_secure_sender(x->options->ticket ? x->options->ticket->secret : NULL);
	if (!s->control.secure) {
		fail_secure(s);
		return false;
	}
	mover_secure_way(s->control.secure, &s->way);
	if (session_wait(s, control_up, connect_timeout_ms(s)) == SESSION_FAILED)
		return false;
	if (conn->state != CONNECTION_UP) {
		fail_refused(x);
		return false;
	}
	session_step(s, "CONNECT", "QP 0x%x, to %s port %u", conn->id->qp->qp_num, x->options->host,
		     ntohs(rdma_get_dst_port(conn->id)));
	return true;
}

static bool may_retry(struct session *s)
{
	return connection_may_retry(&s->control.conn);
}

/* Connects to an address. A receiver that is flooded with requests drops some, so several may be needed. Returns
 * whether a device leads there; s->status tells the rest. */
static bool reach(struct sender *x, const struct addrinfo *source, const struct addrinfo *to)
{
	struct session *s = &x->s;
	uint64_t deadline = mover_now_ns() + connect_timeout_ms(s) * 1000000ull;

	while (resolve(x, source, to)) {
		if (connect_control(x))
			return true;
		if (!connection_is_crowded(&s->control.conn) || mover_now_ns() > deadline)
			return true;
		s->status = MOVER_OK;
		if (session_wait(s, may_retry, CONNECT_TIMEOUT_MS) != SESSION_DONE)
			return true;
		session_start_over(s);
	}
	return false;
}

/* Whether the receiver may be at another address of the host. */
static bool may_be_elsewhere(const struct session *s)
{
	const struct connection *conn = &s->control.conn;
	bool busy = conn->rejected && conn->reject == PROTO_REJECT_BUSY;

	return s->status == MOVER_NO_DEVICE || (s->status == MOVER_NO_CONNECT && !busy);
}

/* `leading` is the failure at an address to which a device leads. It says more than that no device leads to another
 * address, such as the host's IPv6 address from a network without IPv6. */
static bool try_address(struct sender *x, const struct addrinfo *source, const struct addrinfo *to,
			struct failure *leading)
{
	struct session *s = &x->s;
	bool leads = reach(x, source, to);

	if (leads && s->status == MOVER_OK)
		return true;
	if (s->status == MOVER_LOST) /* a connection that was never up cannot be lost */
		s->status = MOVER_NO_CONNECT;
	if (leads) {
		leading->status = s->status;
		memcpy(leading->text, s->text, sizeof(leading->text));
	} else if (leading->status != MOVER_OK && may_be_elsewhere(s)) {
		s->status = leading->status;
		memcpy(s->text, leading->text, sizeof(s->text));
	}
	return false;
}

static bool try_all(struct sender *x, const struct addrinfo *source, const struct addrinfo *list)
{
	struct failure leading = {.status = MOVER_OK};
	bool tried = false, refused = false, up = false;

	for (const struct addrinfo *to = list; to && !up; to = to->ai_next) {
		if (source && source->ai_family != to->ai_family)
			continue;
		if (tried && !may_be_elsewhere(&x->s))
			break;
		if (tried)
			session_start_over(&x->s);
		tried = true;
		x->refused = false;
		up = try_address(x, source, to, &leading);
		if (up)
			x->met = to;
		else if (!x->met || x->met == to)
			refused = x->refused;
	}
	x->refused = refused;
	if (!tried)
		session_fail(&x->s, MOVER_NO_CONNECT, "%s has no IPv%d address, which --bind %s needs",
			     x->options->host, source->ai_family == AF_INET ? 4 : 6, x->s.common->bind_address);
	return up;
}

bool sender_connect(struct sender *x)
{
	const char *bind = x->s.common->bind_address;
	char port[8];
	struct addrinfo *source = NULL;
	bool up;

	snprintf(port, sizeof(port), "%u", x->options->port ? x->options->port : MOVER_DEFAULT_PORT);
	/* once: without a network, a name server does not answer for long, and that cannot be stopped */
	if (!x->addresses)
		x->addresses = look_up(x, x->options->host, port, 0);
	if (x->addresses && bind)
		source = look_up(x, bind, NULL, AI_NUMERICHOST);
	up = x->addresses && (source || !bind) && try_all(x, source, x->addresses);
	if (source)
		freeaddrinfo(source);
	return up;
}

/* Data connections */

static void fail_lane(struct session *s, int err)
{
	session_fail(s, MOVER_LOST, "a data connection could not be made: %s", strerror(err < 0 ? -err : EIO));
}

/* Between the two addresses of the control connection. False after session_fail(). */
static bool resolve_lane(struct session *s, struct connection *conn)
{
	struct rdma_cm_id *control = s->control.conn.id;
	struct sockaddr_storage source;
	int err;

	connection_destroy(conn);
	memcpy(&source, rdma_get_local_addr(control), sizeof(source));
	((struct sockaddr_in *)&source)->sin_port = 0; /* the port of an IPv6 address is in the same place */
	err = connection_resolve(conn, s->channel, (struct sockaddr *)&source, rdma_get_peer_addr(control));
	if (err)
		fail_lane(s, err);
	return !err;
}

/* A receiver that was not ready yet may have refused it, so it is made again after the answer to the terms. */
static void lane_failed(struct sender *x, unsigned lane)
{
	struct connection *conn = &x->s.lanes.conns[lane];
	uint64_t bit = UINT64_C(1) << lane;

	if (!x->s.ready) {
		x->lanes_early |= bit;
	} else if (x->lanes_early & bit) {
		x->lanes_early &= ~bit;
		resolve_lane(&x->s, conn);
	} else if (conn->rejected) {
		session_fail(&x->s, MOVER_LOST, "a data connection could not be made: the receiver refused it");
	} else {
		fail_lane(&x->s, conn->err);
	}
}

/* Takes a data connection one step further. Returns whether it is up. */
static bool lane_up(struct sender *x, unsigned lane)
{
	struct session *s = &x->s;
	struct connection *conn = &s->lanes.conns[lane];
	struct proto_request request = {.data = true, .session = x->number, .index = (uint16_t)lane};
	int err;

	if (connection_may_retry(conn))
		resolve_lane(s, conn);
	else if (conn->state == CONNECTION_FAILED && !connection_is_crowded(conn))
		lane_failed(x, lane);
	if (conn->state != CONNECTION_RESOLVED)
		return conn->state == CONNECTION_UP;
	if (mover_secure_token(s->control.secure, request.token)) {
		session_fail(s, MOVER_FAILED, "the handshake gave no token");
		return false;
	}
	if (!session_lane_create_qp(s, lane))
		return false;
	err = connection_connect(conn, &request);
	if (err)
		fail_lane(s, err);
	return false;
}

bool sender_begin_lanes(struct sender *x)
{
	struct session *s = &x->s;

	x->lanes_begun = true;
	for (unsigned i = 0; i < s->lanes.count; i++)
		if (!resolve_lane(s, &s->lanes.conns[i]))
			return false;
	return true;
}

/* Each that is up gets a greeting, because in iWARP the side that connects has to send first (RFC 5044 s.7.1). */
bool sender_lanes_pump(struct sender *x)
{
	struct session *s = &x->s;
	unsigned up = 0, greetings = 0;

	if (x->lanes_up || !x->lanes_begun)
		return false;
	for (unsigned i = 0; i < s->lanes.count && s->status == MOVER_OK; i++) {
		struct connection *conn = &s->lanes.conns[i];

		if (!lane_up(x, i))
			continue;
		up++;
		if (conn->greeted)
			continue;
		conn->greeted = session_lane_send(s, i, 0, wr_id_make(WR_LANE_SEND, i, 0), UINT64_MAX, PROTO_NO_WINDOW);
		greetings++;
	}
	x->lanes_up = up == s->lanes.count;
	if (s->ready && !x->lanes_deadline_ns)
		x->lanes_deadline_ns = mover_now_ns() + CONNECT_TIMEOUT_MS * 1000000ull;
	if (!x->lanes_up && s->ready && mover_now_ns() > x->lanes_deadline_ns)
		session_fail(s, MOVER_LOST, "making the data connections took too long");
	return greetings;
}
