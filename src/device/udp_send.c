/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "device/gid.h"
#include "device/say.h"
#include "device/sys.h"
#include "device/udp_socket.h"
#include "wire/gid.h"
#include "wire/mtu.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define WAIT_NS    10000000u  /* for room in the sockets, at most, for each call */
#define SIBLING_NS 100000000u /* so long a process of this registry counts as alive */

unsigned roci_udp_max_run(struct roci_link *link, const struct roci_av *av)
{
	struct roci_udp *udp = (struct roci_udp *)link;
	const struct udp_socket *source = roci_udp_source_of(udp, av);

	/* Without a socket packets to this host go through the side door, where a run goes in one message, or by the
	 * loopback interface, which cuts. */
	if (udp->sockets[av->sgid_index].fd < 0 && source->gso != UDP_GSO_REFUSED &&
	    roci_gids_find(udp->config.gids, av->dgid, 0) >= 0)
		return ROCI_LINK_MAX_RUN;
	return source->gso == UDP_GSO_WORKS ? ROCI_LINK_MAX_RUN : 1;
}

static void put_control(struct msghdr *msg, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((uint8_t *)msg->msg_control + msg->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	msg->msg_controllen += CMSG_SPACE(len);
}

/* Programs that leave the hop limit at 0 or 1 do not mean it: the kernel's default is taken, as Soft-RoCE does. The
 * kernel's default for multicast is 1. */
static void set_control(struct msghdr *msg, const struct udp_socket *s, const struct roci_frame *first,
			uint8_t *control)
{
	const struct roci_av *av = first->av;
	int tclass = av->traffic_class, hops = av->hop_limit;
	uint16_t segment = (uint16_t)first->len;

	msg->msg_control = control;
	if (first->run > 1 || (s->gso == UDP_GSO_UNTRIED && roci_frame_fits(first)))
		put_control(msg, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	if (tclass)
		put_control(msg, s->ipv4 ? IPPROTO_IP : IPPROTO_IPV6, s->ipv4 ? IP_TOS : IPV6_TCLASS, &tclass,
			    sizeof(tclass));
	if (hops > 1)
		put_control(msg, s->ipv4 ? IPPROTO_IP : IPPROTO_IPV6, s->ipv4 ? IP_TTL : IPV6_HOPLIMIT, &hops,
			    sizeof(hops));
	if (!msg->msg_controllen)
		msg->msg_control = NULL;
}

/* The trailer of a packet and the header of the next one, as one piece: each costs the kernel 20 ns and more. */
static struct iovec join(const struct roci_frame *f, struct udp_joint *joint)
{
	memcpy(joint->bytes, f[0].trailer, f[0].trailer_len);
	memcpy(joint->bytes + f[0].trailer_len, f[1].header, f[1].header_len);
	return (struct iovec){joint->bytes, (size_t)f[0].trailer_len + f[1].header_len};
}

/* Writes the pieces of `count` packets to iov, with one of `joints` for each. Returns the number of pieces. */
static unsigned gather(const struct roci_frame *frames, unsigned count, struct iovec *iov, struct udp_joint *joints)
{
	unsigned n = 0;

	iov[n++] = (struct iovec){(void *)frames[0].header, frames[0].header_len};
	for (unsigned i = 0; i < count; i++) {
		const struct roci_frame *f = &frames[i];

		for (unsigned k = 0; k < f->span_count; k++)
			iov[n++] = (struct iovec){f->spans[k].base, f->spans[k].len};
		iov[n++] = i + 1 < count ? join(f, &joints[i]) : (struct iovec){(void *)f->trailer, f->trailer_len};
	}
	return n;
}

static uint8_t *append(uint8_t *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return to + len;
}

/* Writes the packets of a run to `to`, one behind the other: where they are short, the kernel copies one piece much
 * faster than many. Returns their end. */
static uint8_t *pack(const struct roci_frame *frames, unsigned count, uint8_t *to)
{
	for (unsigned i = 0; i < count; i++) {
		const struct roci_frame *f = &frames[i];

		to = append(to, f->header, f->header_len);
		for (unsigned k = 0; k < f->span_count; k++)
			to = append(to, f->spans[k].base, f->spans[k].len);
		to = append(to, f->trailer, f->trailer_len);
	}
	return to;
}

static socklen_t name_of(union udp_name *name, const struct roci_av *av, uint32_t ifindex)
{
	socklen_t len = roci_udp_name(name, av->dgid, ifindex);

	if (av->nat)
		roci_udp_name_set_port(name, av->nat->port);
	return len;
}

/* Makes messages of the frames from `at` on, as far as they leave by one socket, and all fit or none does. Returns how
 * many messages; *end: the first frame that is not in them. */
static unsigned build(struct roci_udp *udp, const struct udp_socket *s, const struct roci_frame *frames, unsigned at,
		      unsigned count, unsigned *end)
{
	struct udp_send_area *out = &udp->out;
	unsigned n = 0, pieces = 0;
	uint8_t *room = out->packed;
	bool fit = roci_frame_fits(&frames[at]);

	while (at < count && roci_udp_source_of(udp, frames[at].av) == s && roci_frame_fits(&frames[at]) == fit) {
		const struct roci_frame *first = &frames[at];
		struct msghdr *msg = &out->msgs[n].msg_hdr;

		*msg = (struct msghdr){.msg_name = &out->names[n], .msg_iov = out->iov + pieces};
		msg->msg_namelen = name_of(&out->names[n], first->av, s->ifindex);
		set_control(msg, s, first, out->control[n]);
		if (first->run > 1 && first->len <= UDP_PACKED_BYTES) {
			uint8_t *end_of_run = pack(first, first->run, room);

			*msg->msg_iov = (struct iovec){room, (size_t)(end_of_run - room)};
			msg->msg_iovlen = 1;
			room = end_of_run;
		} else {
			msg->msg_iovlen = gather(first, first->run, msg->msg_iov, out->joints + at);
		}
		pieces += (unsigned)msg->msg_iovlen;
		out->first[n++] = at;
		at += first->run;
	}
	*end = at;
	return n;
}

/* Counts a lost run. Each kind of error is reported once: a line for each packet would be too much. */
static void lose(struct roci_udp *udp, const struct roci_frame *first, unsigned packets, int err)
{
	uint64_t bit = 1ull << (err & 63);

	udp->config.stats->send_dropped += packets;
	if (udp->errors_reported & bit)
		return;
	udp->errors_reported |= bit;
	roci_device_say("roci: a packet of %u bytes was not sent: %s\n", first->len, strerror(err));
}

/* Nanoseconds until the deadline, which the first call sets. */
static uint64_t time_left(uint64_t *deadline)
{
	uint64_t now = roci_now();

	if (!*deadline)
		*deadline = now + WAIT_NS;
	return now < *deadline ? *deadline - now : 0;
}

static bool wait_for_room(int fd, uint64_t *deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	uint64_t left = time_left(deadline);

	return left && roci_sys_poll(&p, 1, (int)((left + 999999) / 1000000)) > 0;
}

/* True: the call failed because of an earlier packet, which ICMP told of. It may be tried again. */
static bool is_late(struct roci_udp *udp, const struct udp_socket *s, int err, uint64_t *deadline)
{
	return (err == EMSGSIZE || err == ECONNREFUSED || err == EHOSTUNREACH || err == ENETUNREACH || err == EACCES ||
		err == ENOPROTOOPT || err == EPROTO) &&
	       time_left(deadline) && roci_udp_take_errors(udp, s);
}

/* Sends one packet, also one of a run, without GSO. Returns 0 or an errno. */
static int send_one(struct roci_udp *udp, struct udp_socket *s, const struct roci_frame *frame)
{
	struct roci_frame one = *frame;
	enum udp_gso gso = s->gso;
	unsigned end;

	one.run = 1;
	s->gso = UDP_GSO_REFUSED;
	build(udp, s, &one, 0, 1, &end);
	s->gso = gso;
	if (roci_sys_sendmsg(s->fd, &udp->out.msgs[0].msg_hdr, 0) < 0)
		return errno;
	udp->config.stats->sent_messages++;
	udp->config.stats->sent_packets++;
	return 0;
}

/* UDP payload that one packet takes, as the kernel knows by now; 0: it does not. */
static uint32_t route_carries(struct roci_udp *udp, const struct roci_av *av)
{
	uint32_t carries = 0;

	return roci_udp_route_afresh(udp, roci_now(), av->sgid_index, av->dgid, &carries) ? 0 : carries;
}

/* A packet that should fit was refused: the kernel has heard that the path bears less now. The engine hears it, too. */
static void note_path(struct roci_udp *udp, const struct roci_frame *first)
{
	struct roci_udp_error e = {.err = -EMSGSIZE, .carries = route_carries(udp, first->av)};

	memcpy(e.dgid, first->av->dgid, 16);
	if (e.carries && e.carries < first->len && udp->error_count < UDP_ERRORS)
		udp->errors[udp->error_count++] = e;
}

/* Where no router says what it bears, Linux cuts nothing, and neither do routers over IPv6. (To a Rocinante, pieces go
 * there: pieces.h.) */
static void report_fragments(struct roci_udp *udp, const struct roci_frame *first)
{
	const struct roci_av *av = first->av;
	uint32_t route = route_carries(udp, av), carries = av->max_datagram;
	bool cut = roci_gid_is_ipv4(av->dgid) || first->len > route;
	char text[ROCI_GID_TEXT];

	if (!carries || (route && route < carries))
		carries = route;
	roci_gid_text(av->dgid, text);
	roci_device_say(
		"roci: packets of %u bytes %s %s. %s Use a path MTU of at most %u (rdma_cm finds it by itself), or "
		"raise the MTU of the links on the way.\n",
		first->len, cut ? "do not fit the MTU of the way to" : "do not arrive at", text,
		cut ? "They go in IP fragments: that is slow, one lost fragment loses the packet, and over IPv4 only "
		      "Rocinante takes them."
		    : "A router on the way has a smaller MTU and does not say so, and IPv6 packets cannot be cut "
		      "there.",
		roci_mtu_bytes(roci_mtu_code_of_datagram(carries)));
}

/* The first one says what it costs. */
static void count_fragmented(struct roci_udp *udp, const struct roci_frame *first, unsigned packets)
{
	udp->config.stats->sent_fragmented += packets;
	if (udp->fragments_reported)
		return;
	udp->fragments_reported = true;
	report_fragments(udp, first);
}

/* The packets of frames[0] do not fit. Their identification, which the kernel draws, is not what their ICRC was made
 * for: a Rocinante does not check it (roci_icrc_ipv4_id()). */
static void send_fragments(struct roci_udp *udp, struct udp_socket *s, const struct roci_frame *frames)
{
	unsigned run = frames[0].run;

	roci_udp_allow_fragments(s, true);
	for (unsigned i = 0; i < run; i++) {
		int err = send_one(udp, s, &frames[i]);

		if (err)
			lose(udp, &frames[i], 1, err);
		else
			count_fragmented(udp, &frames[i], 1);
	}
}

/* The first message of frames[] was refused. Either GSO is refused, or the packets are too long for the path: a single
 * packet that does not ask for GSO shows which. Where GSO worked and another interface refuses it, a run is lost,
 * because its packets have the identifications of a run. */
static void take_refusal(struct roci_udp *udp, struct udp_socket *s, const struct roci_frame *frames, int err)
{
	bool run = frames[0].run > 1;

	if (!run && s->gso == UDP_GSO_UNTRIED && (err == EIO || err == EINVAL || err == EMSGSIZE)) {
		err = send_one(udp, s, &frames[0]);
		if (!err)
			s->gso = UDP_GSO_REFUSED;
	} else if (run && err == EIO) {
		s->gso = UDP_GSO_REFUSED;
	}
	if (roci_frame_fits(&frames[0]) && (err == EMSGSIZE || (run && err == EINVAL)))
		note_path(udp, &frames[0]);
	if (err == EMSGSIZE && frames[0].whole)
		return;
	if (err == EMSGSIZE || (run && err == EINVAL))
		send_fragments(udp, s, frames);
	else if (err)
		lose(udp, &frames[0], frames[0].run, err);
}

/* Sends the frames from `at` on, as far as they leave by one socket. Returns the frame to go on with. */
static unsigned send_some(struct roci_udp *udp, struct udp_socket *s, const struct roci_frame *frames, unsigned at,
			  unsigned count, uint64_t *deadline)
{
	unsigned end, messages = build(udp, s, frames, at, count, &end), next;
	bool fit = roci_frame_fits(&frames[at]);
	int sent, err;

	roci_udp_allow_fragments(s, !fit);
	sent = roci_sys_sendmmsg(s->fd, udp->out.msgs, messages, 0);
	err = errno;
	if (sent > 0) {
		if (s->gso == UDP_GSO_UNTRIED && fit)
			s->gso = UDP_GSO_WORKS;
		next = (unsigned)sent == messages ? end : udp->out.first[sent];
		if (!fit)
			count_fragmented(udp, &frames[at], (unsigned)sent);
		udp->config.stats->sent_messages += (unsigned)sent;
		udp->config.stats->sent_packets += next - at;
		return next;
	}
	if (err == EINTR || (err == EAGAIN && wait_for_room(s->fd, deadline)) || is_late(udp, s, err, deadline))
		return at;
	take_refusal(udp, s, frames + at, err);
	return at + frames[at].run;
}

/* Whether a process of this registry has the slot. The answer is good for a while: it is a system call. */
static bool is_sibling(struct roci_udp *udp, uint64_t now, unsigned slot)
{
	if (slot < ROCI_SLOTS && udp->sibling_at[slot] && now - udp->sibling_at[slot] < SIBLING_NS)
		return true;
	if (!roci_registry_alive(udp->config.registry, slot))
		return false;
	udp->sibling_at[slot] = now;
	return true;
}

/* Ends the run frames[0].run where packets for another process follow, which begin a run of their own. */
static void cut_run(const struct roci_slot_key *key, struct roci_frame *frames, unsigned slot)
{
	unsigned run = frames[0].run, n = 1;

	while (n < run && roci_slot_of(key, roci_dest_qpn(frames[n].header)) == slot)
		n++;
	if (n == run)
		return;
	frames[0].run = (uint8_t)n;
	frames[n].run = (uint8_t)(run - n);
}

/* UDP port 4791 is not ours: what is for a process of this registry goes to its side door. Returns false where it is
 * not. */
static bool send_by_door(struct roci_udp *udp, uint64_t now, struct roci_frame *frames)
{
	const struct roci_av *av = frames[0].av;
	struct roci_arrival from = {.traffic_class = av->traffic_class,
				    .hop_limit = av->hop_limit > 1 ? av->hop_limit : 64};
	uint32_t qpn = roci_dest_qpn(frames[0].header);
	unsigned slot = roci_slot_of(&udp->config.registry->slot_key, qpn), pieces;
	int err;

	/* QPN 1 is everybody's (gsi.h), whatever slot it would tell. */
	if (qpn <= 1 || qpn == ROCI_QPN_MULTICAST || roci_gids_find(udp->config.gids, av->dgid, 0) < 0 ||
	    !is_sibling(udp, now, slot))
		return false;
	cut_run(&udp->config.registry->slot_key, frames, slot);
	roci_av_flow(av, &from.flow);
	pieces = 1 + gather(frames, frames[0].run, udp->out.iov + 1, udp->out.joints);
	err = roci_door_queue_send(udp->config.door, slot, &from, frames[0].len, udp->out.iov, pieces);
	if (err)
		udp->config.stats->send_dropped += frames[0].run;
	else
		udp->config.stats->door_sent += frames[0].run;
	if (err == -ESRCH)
		udp->sibling_at[slot] = 0;
	return true;
}

/* More often than that nobody needs to know that packets are sent. */
static void note_use(struct roci_udp *udp, uint64_t now)
{
	udp->used_at = now;
	if (udp->retry_at != UINT64_MAX && udp->retry_at > now + udp->retry_soon_ns)
		udp->retry_at = now + udp->retry_soon_ns;
}

void roci_udp_send(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	struct roci_udp *udp = (struct roci_udp *)link;
	uint64_t deadline = 0, now = 0;
	unsigned at = 0;

	while (at < count) {
		struct udp_socket *s = roci_udp_source_of(udp, frames[at].av);
		bool without_port = udp->sockets[frames[at].av->sgid_index].fd < 0;

		if (without_port)
			note_use(udp, now = roci_now());
		if (without_port && send_by_door(udp, now, &frames[at])) {
			at += frames[at].run;
		} else if (s->fd < 0) {
			udp->config.stats->send_dropped += frames[at].run;
			at += frames[at].run;
		} else {
			at = send_some(udp, s, frames, at, count, &deadline);
		}
	}
}
