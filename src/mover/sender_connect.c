/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's way to the receiver: the control connection, by the first of the host's addresses that leads there. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>

#include "mover/sender.h"

struct failure {
	enum mover_status status;
	char text[sizeof(((struct session *)0)->text)];
};

static bool resolved(struct session *s)
{
	return s->control.link.state == LINK_RESOLVED || s->control.link.state == LINK_FAILED;
}

static bool control_up(struct session *s)
{
	return s->control.link.state == LINK_UP || s->control.link.state == LINK_FAILED;
}

static unsigned connect_timeout_ms(const struct session *s)
{
	return s->stall_timeout_ms < SENDER_CONNECT_TIMEOUT_MS ? s->stall_timeout_ms : SENDER_CONNECT_TIMEOUT_MS;
}

static struct addrinfo *find(struct sender *x, const char *host, const char *port, int flags)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags}, *list = NULL;
	int err = getaddrinfo(host, port, &hints, &list);

	if (err)
		session_fail(&x->s, MOVER_NO_CONNECT, "%s: %s", host, gai_strerror(err));
	return err ? NULL : list;
}

static void tell_refusal(struct sender *x)
{
	const struct link *link = &x->s.control.link;
	const char *host = x->options->host;
	unsigned port = x->options->port;

	if (link->rejected && link->reject == PROTO_REJECT_BUSY)
		session_fail(&x->s, MOVER_NO_CONNECT, "the receiver at %s has as many sessions as it allows; try later",
			     host);
	else if (link->rejected && link->reject == PROTO_REJECT_VERSION)
		session_fail(&x->s, MOVER_PROTOCOL, "%s port %u is no receiver of this version", host, port);
	else if (link->rejected && link->reject == PROTO_REJECT_DEVICE)
		session_fail(&x->s, MOVER_NO_CONNECT,
			     "the receiver at %s uses another device than the one of this "
			     "address",
			     host);
	else if (link_is_iwarp(link->id))
		session_fail(&x->s, MOVER_NO_CONNECT,
			     "no iWARP connection to %s port %u (%s); is `roci recv` running there, on an iWARP device "
			     "like %s here?",
			     host, port, strerror(link->err < 0 ? -link->err : ETIMEDOUT),
			     link->id->verbs->device->name);
	else if (link->rejected)
		session_fail(&x->s, MOVER_NO_CONNECT, "nobody listens at %s port %u; is `roci recv` running there?",
			     host, port);
	else
		session_fail(&x->s, MOVER_NO_CONNECT,
			     "no answer from %s port %u; is `roci recv` running there, on a device of the same kind, "
			     "and UDP port 4791 open between the machines?",
			     host, port);
}

static bool resolve(struct sender *x, const struct addrinfo *source, const struct addrinfo *to)
{
	struct session *s = &x->s;
	struct link *link = &s->control.link;
	const char *host = x->options->host;
	int err = link_resolve(link, s->channel, source ? source->ai_addr : NULL, to->ai_addr);

	if (!err && !session_run(s, resolved, SENDER_CONNECT_TIMEOUT_MS, "resolving the address"))
		return false;
	if (!err && link->state == LINK_RESOLVED)
		return true;
	if (!err)
		err = link->err;
	if (err == -ENODEV)
		session_fail(s, MOVER_NO_DEVICE, "no RDMA device leads to %s", host);
	else
		session_fail(s, MOVER_NO_CONNECT, "%s cannot be reached: %s", host, strerror(err < 0 ? -err : EIO));
	return false;
}

/* To the address that has been resolved. */
static bool connect_control(struct sender *x)
{
	struct session *s = &x->s;
	struct proto_request request = {0};
	int err;

	if (s->common->device && strcmp(s->common->device, s->control.link.id->verbs->device->name)) {
		session_fail(s, MOVER_NO_DEVICE, "the way to %s leads over %s, not over %s", x->options->host,
			     s->control.link.id->verbs->device->name, s->common->device);
		return false;
	}
	if (!session_open_device(s))
		return false;
	err = link_connect(&s->control.link, &request);
	if (err) {
		session_fail_errno(s, err, "connecting");
		return false;
	}
	session_run(s, control_up, connect_timeout_ms(s), "connecting");
	if (s->status == MOVER_LOST &&
	    s->control.link.state == LINK_CONNECTING) /* in time; nothing was there to be lost */
		s->status = MOVER_OK;
	if (s->status == MOVER_OK && s->control.link.state != LINK_UP)
		tell_refusal(x);
	else if (s->status == MOVER_OK)
		session_step(s, "CONNECT", "QP 0x%x, to %s port %u", s->control.link.id->qp->qp_num, x->options->host,
			     ntohs(rdma_get_dst_port(s->control.link.id)));
	return s->status == MOVER_OK;
}

/* Whether the receiver may be at another address of the host. */
static bool may_be_elsewhere(const struct session *s)
{
	const struct link *link = &s->control.link;
	bool busy = link->rejected && link->reject == PROTO_REJECT_BUSY;

	return s->status == MOVER_NO_DEVICE || (s->status == MOVER_NO_CONNECT && !busy);
}

/* `leading` is how it failed at an address to which a device leads: that says more than that there is no way to another
 * one, such as the host's IPv6 address from a network without IPv6. */
static bool try_address(struct sender *x, const struct addrinfo *source, const struct addrinfo *to,
			struct failure *leading)
{
	struct session *s = &x->s;
	bool leads = resolve(x, source, to);

	if (leads && connect_control(x))
		return true;
	if (s->status == MOVER_LOST) /* nothing was there to be lost */
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
	bool tried = false, up = false;

	for (const struct addrinfo *to = list; to && !up; to = to->ai_next) {
		if (source && source->ai_family != to->ai_family)
			continue;
		if (tried && !may_be_elsewhere(&x->s))
			break;
		if (tried)
			session_start_over(&x->s);
		tried = true;
		up = try_address(x, source, to, &leading);
	}
	if (!tried)
		session_fail(&x->s, MOVER_NO_CONNECT, "%s has no IPv%d address, which --bind %s needs",
			     x->options->host, source->ai_family == AF_INET ? 4 : 6, x->s.common->bind_address);
	return up;
}

bool sender_connect(struct sender *x)
{
	const char *bind = x->s.common->bind_address;
	char port[8];
	struct addrinfo *to, *source = NULL;
	bool up;

	snprintf(port, sizeof(port), "%u", x->options->port ? x->options->port : MOVER_DEFAULT_PORT);
	to = find(x, x->options->host, port, 0);
	if (to && bind)
		source = find(x, bind, NULL, AI_NUMERICHOST);
	up = to && (source || !bind) && try_all(x, source, to);
	if (to)
		freeaddrinfo(to);
	if (source)
		freeaddrinfo(source);
	return up;
}
