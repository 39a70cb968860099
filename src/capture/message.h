/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of a conversation: which packets belong together, and which place each has. */
#ifndef CAPTURE_MESSAGE_H
#define CAPTURE_MESSAGE_H

#include "capture/conversation.h"

/* Whether a request of an old PSN is a probe of roci0: a WRITE of nothing, which its receiver takes for a duplicate and
 * acknowledges. No post belongs to it. A program's own WRITE of nothing that is sent again is none. */
bool capture_message_is_probe(struct capture_half *half, const struct roci_packet *pkt);

/* Finds or begins the message of a request that `half` sent, and fills *out. *next_id is the number of the last
 * message; a new one gets the next. `mtu` is that of the conversation, 0: not known. Returns the message, or NULL where
 * the packet's beginning is not in the capture. */
struct capture_tracked *capture_message_request(struct capture_half *half, const struct roci_packet *pkt, uint32_t mtu,
						uint64_t *next_id, struct capture_message *out);

/* The request of `half` that the peer's answer is about. NULL: it is not known. */
struct capture_tracked *capture_message_response(struct capture_half *half, const struct roci_packet *pkt, uint32_t mtu,
						 struct capture_message *out);

/* Marks what an acknowledgement up to `psn` completes, in one view. Returns how many requests. */
uint32_t capture_message_acknowledge(struct capture_half *half, uint32_t psn, enum capture_view view);

/* Packets of a message of so many bytes; 0: not known. */
uint32_t capture_message_packets(uint64_t bytes, uint32_t mtu);

#endif
