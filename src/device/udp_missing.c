/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports 4791 that others have: who, and whether he sends us by our side door what is for us. He is asked when the port
 * is first missing, and when it has passed on to another socket: a stranger may have taken it.
 */
#include <errno.h>
#include <string.h>

#include "device/port_holder.h"
#include "device/say.h"
#include "device/udp_socket.h"

#define INQUIRY_NS 10000000000u /* between two inquiries: each may take half a second, in which we do nothing else */
#define INQUIRIES  2            /* about one socket: its process may have been busy, or has just begun */

/* ---- who ---- */

/* Of several sockets that fit an address, the closest has its port. */
static bool see_holder(void *context, const struct roci_port_holder *holder)
{
	struct udp_survey *survey = context;

	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++) {
		const struct udp_socket *s = &survey->udp->sockets[i];
		unsigned fit = roci_udp_is_missing(s)
				       ? roci_port_fit(holder->gid, survey->udp->config.gids->entries[i].gid)
				       : 0;

		if (!fit || fit < survey->fits[i])
			continue;
		if (fit > survey->fits[i])
			survey->same &= ~(1u << i);
		survey->fits[i] = fit;
		survey->holders[i] = holder->inode;
		if (holder->inode == s->holder)
			survey->same |= 1u << i;
	}
	return true;
}

void roci_udp_survey(struct roci_udp *udp, struct udp_survey *survey)
{
	*survey = (struct udp_survey){.udp = udp};
	roci_all_port_holders(ROCI_PORT_TABLES, see_holder, survey);
}

/* ---- what it means ---- */

void roci_udp_warn(struct udp_socket *s, const uint8_t gid[16], int err)
{
	char text[ROCI_GID_TEXT];

	if (s->warned)
		return;
	s->warned = true;
	roci_gid_text(gid, text);
	if (err == -EADDRINUSE)
		roci_device_say(
			"roci: UDP port %d of %s is taken, by another program or the kernel's rdma_rxe module: "
			"other hosts cannot reach this process there, your processes on this host can. "
			"`ss -ulnp sport = :%d` shows who; where it names no process, `modprobe -r rdma_rxe` frees "
			"it.\n",
			ROCI_UDP_PORT, text, ROCI_UDP_PORT);
	else
		roci_device_say(
			"roci: cannot listen on UDP port %d of %s: %s; only your processes on this host can reach "
			"this process there.\n",
			ROCI_UDP_PORT, text, strerror(-err));
}

/* Returns whether he answered. */
static bool inquire(struct roci_udp *udp, unsigned index, uint32_t holder, uint64_t now)
{
	const struct roci_gid_entry *entry = &udp->config.gids->entries[index];
	struct udp_inquiry *q = &udp->sockets[index].inquiry;
	bool same = q->holder == holder;

	*q = (struct udp_inquiry){.holder = holder, .at = now, .unanswered = same ? q->unanswered : 0};
	if (!roci_udp_is_relayed(&udp->config.registry->slot_key, entry->gid, entry->ifindex)) {
		q->unanswered++;
		return false;
	}
	udp->sockets[index].error = 0;
	udp->sockets[index].warned = false;
	q->unanswered = 0;
	return true;
}

void roci_udp_inquire(struct roci_udp *udp, unsigned index, uint64_t now)
{
	struct udp_survey survey;

	roci_udp_survey(udp, &survey);
	(void)inquire(udp, index, survey.holders[index], now);
}

/* Each address has its turn, however many there are and whoever wants us to ask all the time. */
static uint64_t interval(const struct roci_udp *udp)
{
	unsigned missing = 0;

	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++)
		missing += roci_udp_is_missing(&udp->sockets[i]);
	return missing * (uint64_t)INQUIRY_NS;
}

void roci_udp_inquire_again(struct roci_udp *udp, unsigned index, uint32_t holder, uint64_t now)
{
	const struct roci_gid_entry *entry = &udp->config.gids->entries[index];
	struct udp_socket *s = &udp->sockets[index];
	const struct udp_inquiry *q = &s->inquiry;
	bool settled = q->holder == holder && (!q->unanswered || q->unanswered >= INQUIRIES);

	if (!holder || settled || now - q->at < interval(udp))
		return;
	if (inquire(udp, index, holder, now) || q->unanswered < INQUIRIES)
		return;
	s->error = -EADDRINUSE;
	roci_udp_warn(s, entry->gid, s->error);
}
