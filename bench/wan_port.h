/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An end of wan_link: a device of this namespace (the outer one of a veth pair), whose frames come by a ring that the
 * kernel fills, each with the time at which it came. Like an adapter, the kernel leaves it to the device to cut long
 * messages into packets (TSO, USO), and takes several packets of one message together (GRO). So there is one copy and
 * one call for many packets, of TCP and of UDP.
 */
#ifndef BENCH_WAN_PORT_H
#define BENCH_WAN_PORT_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

#define WAN_PACKET_BYTES 1536 /* of a packet of 1,500 bytes and its Ethernet header */

/* A packet on the way. */
struct wan_packet {
	uint64_t at;                /* ns: when it arrives */
	uint32_t message;           /* packets of one message have the same number, */
	uint16_t place;             /* and go in this order */
	uint16_t len;               /* of the frame */
	uint16_t header;            /* bytes in front of its payload; 0: it was no part of a longer message */
	struct virtio_net_hdr vnet; /* of the message */
	uint8_t bytes[WAN_PACKET_BYTES];
};

/* A frame that has come: one packet, or a message that is to be cut. */
struct wan_frame {
	uint64_t came_at; /* ns, CLOCK_REALTIME */
	const struct virtio_net_hdr *vnet;
	const uint8_t *bytes;
	uint32_t len;
	uint32_t message;
};

struct wan_port {
	int fd;
	uint8_t *ring;
	uint32_t next; /* frame of the ring */
	uint32_t messages;
	uint64_t failed; /* frames that could not be delivered */
};

/* Ends the program where that fails. */
void wan_port_open(struct wan_port *port, const char *device);
/* The frame that came next. False: none has. */
bool wan_port_take(struct wan_port *port, struct wan_frame *frame);
/* The frame that was taken is not needed any more. */
void wan_port_taken(struct wan_port *port);
/* Writes packet `place` of the frame. False: it has no such packet, or no packet that a link of 1,500 bytes carries. */
bool wan_frame_cut(const struct wan_frame *frame, unsigned place, struct wan_packet *packet);
/* Delivers packets ring[head], ring[head + 1] and so on before `end`, modulo `slots`, a power of two. */
void wan_port_deliver(struct wan_port *port, struct wan_packet *ring, uint32_t slots, uint32_t head, uint32_t end);
/* How many frames came that the ring had no place for. */
unsigned wan_port_overrun(const struct wan_port *port);

#endif
