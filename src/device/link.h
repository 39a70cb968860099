/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link carries packets between engines (D3): `udp` speaks RoCEv2, others wrap a link (fault.h, capture.h).
 *
 *     engine -> frames -> roci_frames_seal() -> fault -> capture -> udp -> wire
 *     engine <- parse, ICRC <- datagrams     <- fault <- capture <- udp <- wire
 *
 * A link is driven under the device's lock. It closes what it wraps.
 */
#ifndef ROCI_DEVICE_LINK_H
#define ROCI_DEVICE_LINK_H

#include "engine/engine.h"
#include "wire/icrc.h"

#define ROCI_LINK_SEND_BATCH ROCI_TX_BATCH
#define ROCI_LINK_RECV_BATCH 4096 /* packets that one receive may yield */
#define ROCI_LINK_MAX_RUN    64   /* UDP_MAX_SEGMENTS of Linux before 6.9 */
#define ROCI_LINK_RUN_BYTES  65000

/* A packet on its way out. The engine's part is borrowed until the send returns; len, run, ip_id and trailer are filled
 * by roci_frames_seal(). */
struct roci_frame {
	const struct roci_av *av;
	const uint8_t *header;
	const struct roci_span *spans;
	uint32_t payload_len;
	uint32_t len; /* bytes of UDP payload: header, payload, pad, ICRC */
	uint16_t span_count;
	uint16_t ip_id; /* IPv4 identification that the kernel will write; its place in the run */
	bool soft_roce; /* see struct roci_tx_packet */
	uint8_t header_len;
	uint8_t run; /* packets that go in one message with this one as the first; 0: not a first */
	uint8_t trailer_len;
	uint8_t trailer[7]; /* pad and ICRC */
};

/* Where datagrams came from and went to. */
struct roci_arrival {
	struct roci_flow flow; /* addresses in GID form; dst may be a multicast group */
	uint8_t traffic_class, hop_limit;
	bool congested; /* more than half of the socket's buffer was in use */
	bool forwarded; /* came through the side door: must not be forwarded again */
};

/* A received packet (BTH to ICRC, unchecked). Valid until the next receive of the link. */
struct roci_datagram {
	uint8_t *bytes;
	const struct roci_arrival *from;
	uint32_t len;
};

struct roci_link;

struct roci_link_ops {
	/* How many packets of equal length to `av` may go in one message: 1 or ROCI_LINK_MAX_RUN. */
	unsigned (*max_run)(struct roci_link *link, const struct roci_av *av);
	/* Sends, or loses and counts. `count` <= ROCI_LINK_SEND_BATCH, sealed, runs whole. May reseal. */
	void (*send)(struct roci_link *link, struct roci_frame *frames, unsigned count);
	/* Takes what has arrived, without waiting. Returns how many of the ROCI_LINK_RECV_BATCH places in out[] it
	 * filled. */
	unsigned (*recv)(struct roci_link *link, struct roci_datagram *out);
	void (*close)(struct roci_link *link);
};

struct roci_link {
	const struct roci_link_ops *ops;
};

static inline unsigned roci_link_max_run(struct roci_link *link, const struct roci_av *av)
{
	return link->ops->max_run(link, av);
}

static inline void roci_link_send(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	link->ops->send(link, frames, count);
}

static inline unsigned roci_link_recv(struct roci_link *link, struct roci_datagram *out)
{
	return link->ops->recv(link, out);
}

static inline void roci_link_close(struct roci_link *link)
{
	link->ops->close(link);
}

/* The QPN that a packet is for; `header` holds at least its BTH. */
static inline uint32_t roci_dest_qpn(const uint8_t *header)
{
	return (uint32_t)header[5] << 16 | (uint32_t)header[6] << 8 | header[7];
}

#endif
