/* SPDX-License-Identifier: BSD-2-Clause */
/* Trust between two movers: TLS 1.3 with an external PSK (RFC 8446 s.2.2, psk_dhe_ke) through memory BIOs. The ticket's
 * secret is the PSK, so that a finished handshake is the proof of both sides, and a recording is worth nothing later
 * even to one who learns the secret. No certificates. Knows no socket and no RDMA: bytes in, bytes out.
 *
 * Without a ticket ("open") the PSK is all zeros: the same code, no proof of who is there. */
#ifndef ROCI_MOVER_SECURE_H
#define ROCI_MOVER_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ticket.h"

#define SECURE_CHUNK_TAG_BYTES 16 /* what mover_secure_seal_chunk() adds to a chunk */
#define SECURE_TOKEN_BYTES     16

struct mover_secure;

/* A receiver's question during the handshake: may the holder of this secret come in? Tickets are named in the clear by
 * the first 8 bytes of SHA-256("roci ticket" || secret) as hex, open ones by "open". Fills `secret` and returns true.
 */
typedef bool mover_secure_lookup_fn(void *context, const char *identity, uint8_t secret[MOVER_SECRET_BYTES]);

/* The sender's end; `ticket` NULL for open. The receiver's end. Destroy with mover_secure_destroy(). NULL: no memory.
 */
struct mover_secure *mover_secure_client(const struct mover_ticket *ticket);
struct mover_secure *mover_secure_server(mover_secure_lookup_fn *lookup, void *context);
void mover_secure_destroy(struct mover_secure *s);

/* The name by which a ticket is known in the clear: 16 hex digits and NUL. */
void mover_secure_identity(const uint8_t secret[MOVER_SECRET_BYTES], char identity[17]);

/* Goes on with the handshake: takes `in` (may be empty at first), and hands out what has to go to the peer. *out_len is
 * the room in `out` (16 KiB is enough) and then the bytes written. Returns 1 when finished (there may still be bytes to
 * send), 0 when the peer's next bytes are needed, -EACCES when the peer does not know the secret, -EPROTO when it does
 * not speak TLS 1.3 with a PSK, -ENOMEM. After an error there may be an alert in `out` that the peer should get. */
int mover_secure_handshake(struct mover_secure *s, const void *in, size_t in_len, void *out, size_t *out_len);

/* One message of at most 64 KiB each, after the handshake. seal: *out_len is room, then length (room for len + 512 is
 * enough). open: the sealed bytes of exactly one message; messages come in the order they were sealed. Return 0, or
 * -EBADMSG for what the peer did not seal, has changed, repeated or left out, and for a peer that changes its keys
 * (RFC 8446 s.4.6.3); -EMSGSIZE for too little room. */
int mover_secure_seal(struct mover_secure *s, const void *message, size_t len, void *out, size_t *out_len);
int mover_secure_open(struct mover_secure *s, const void *sealed, size_t len, void *out, size_t *out_len);

/* What proves that a data connection belongs to this session: bytes from the TLS exporter (RFC 8446 s.7.5). */
int mover_secure_token(struct mover_secure *s, uint8_t token[SECURE_TOKEN_BYTES]);

/* AES-256-GCM of a chunk's bytes in place, under a key from the exporter. `number` is the nonce, never used twice in a
 * session by the sender; the 16-byte tag follows the data (data[len .. len + 15]). open_chunk returns 0, or -EBADMSG.
 */
int mover_secure_seal_chunk(struct mover_secure *s, uint64_t number, uint8_t *data, size_t len);
int mover_secure_open_chunk(struct mover_secure *s, uint64_t number, uint8_t *data, size_t len);

/* Whether the peer came in without a ticket. After the handshake. */
bool mover_secure_is_open(const struct mover_secure *s);
/* The identity the peer came in with. After the handshake; lives as long as `s`. */
const char *mover_secure_peer_identity(const struct mover_secure *s);

/* For tests: the TLS connection itself (SSL *), for peers that do with it what no mover does. */
struct ssl_st *mover_secure_tls(struct mover_secure *s);

#endif
