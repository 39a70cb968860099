/* SPDX-License-Identifier: BSD-2-Clause */
/* What an honest sender does, one step at a time, for hostile senders up to the point where they lie. A step that fails
 * ends the program. */
#ifndef HONEST_SENDER_H
#define HONEST_SENDER_H

#include "hostile.h"

extern struct hostile hostile;
extern struct proto_grant honest_grants[64];
extern const char *honest_host;
extern unsigned honest_port;

/* Connects the control connection. */
void honest_connect(void);
/* ... and does the handshake. */
void honest_enter(void);

struct proto_terms honest_terms(enum mover_mode mode);
void honest_propose(const struct proto_terms *terms);
/* Enters, proposes honest_terms(), and gets the answer. */
void honest_agree(enum mover_mode mode);
/* Connects a data connection. */
void honest_connect_lane(void);
/* Agrees, and connects it. */
void honest_lanes_with(const struct proto_terms *terms);
void honest_lanes(enum mover_mode mode);
/* Waits for a GRANT, and fills honest_grants. Returns of how many windows. */
unsigned honest_take_grants(void);

struct mover_entry honest_file(const char *name, uint64_t size);
struct mover_entry honest_symlink(const char *name, const char *target);
struct cursor_out *honest_begin_offer(uint32_t first, uint16_t count);
void honest_offer(uint32_t first, const struct mover_entry *entry);
/* Offers one entry and returns the verdict on it; or waits for the first GRANT, too. */
enum proto_verdict honest_verdict(uint32_t index, const struct mover_entry *entry);
enum proto_verdict honest_verdict_and_grants(uint32_t index, const struct mover_entry *entry);

/* All of an entry, from the beginning of hostile.memory. */
struct proto_segment honest_segment(uint32_t entry, uint32_t len);
/* Seals the `len` bytes with the first descriptor's number, and writes them into the first window. */
void honest_write(uint32_t len);
void honest_fin(const struct proto_descriptor *d, const struct proto_segment *segments);
/* Writes ten bytes into the first window, the content of "file". Or offers that first: it is wanted. */
struct proto_descriptor honest_write_file(struct proto_segment *segment);
struct proto_descriptor honest_content(struct proto_segment *segment);
/* The result of entry 0, from the next ACK that has one. */
struct proto_result honest_result(void);
/* Makes the bytes of a sealed message without a payload. Returns their length. */
size_t honest_sealed(uint8_t *to, enum proto_type outer, enum proto_type inner, uint8_t credits);

#endif
