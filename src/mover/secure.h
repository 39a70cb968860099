/* SPDX-License-Identifier: BSD-2-Clause */
/* Trust between two movers: TLS 1.3 with an external PSK (RFC 8446 s.2.2, psk_dhe_ke) through memory BIOs. The ticket's
 * secret is the PSK. A finished handshake proves that both sides know it, and a recording stays secret even from
 * someone who learns the ticket later. There are no certificates. Bytes in, bytes out: no socket and no RDMA here.
 *
 * The receiver is the TLS client: its ClientHello fits into its answer to the connect request, so the handshake begins
 * half a round trip before the sender's first message. The sender seals messages right behind its Finished, before the
 * receiver's Finished has come (RFC 8446 s.4.4.4). Only someone who knows the secret can read them.
 *
 * Without a ticket ("open") the PSK is all zeros: the same code, but no proof of who is there. */
#ifndef ROCI_MOVER_SECURE_H
#define ROCI_MOVER_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mover/ticket.h"

#define SECURE_TOKEN_BYTES 16
#define SECURE_HELLO_BYTES 196 /* the most for a ClientHello: the private data of an answer (rdma_accept()) */

struct mover_secure;
struct give_way;

/* For each side; `secret` NULL: open. NULL: no memory. Destroy with mover_secure_destroy(). */
struct mover_secure *mover_secure_sender(const uint8_t secret[MOVER_SECRET_BYTES]);
struct mover_secure *mover_secure_receiver(const uint8_t secret[MOVER_SECRET_BYTES]);
void mover_secure_destroy(struct mover_secure *s);

/* Makes a handshake with itself: OpenSSL takes some milliseconds for its first one, which no sender has to wait for.
 * 0; -ENOTSUP: OpenSSL cannot do it as it is configured, and SECURE_LACKS tells the user why; or -ENOMEM. */
int mover_secure_try(void);

#define SECURE_LACKS                                                                                                   \
	"OpenSSL is configured without TLS 1.3, X25519, ChaCha20-Poly1305 or SHA-256 (a FIPS mode has not "            \
	"all of them); `openssl list -providers` and `openssl version -d` tell how it is configured"

/* A ticket's name, which does not reveal it: the first 8 bytes of SHA-256("roci ticket" || secret) as hex, and NUL. */
void mover_secure_identity(const uint8_t secret[MOVER_SECRET_BYTES], char identity[17]);

/* Proves in a connect request, before anything is kept of the connection, that the sender knows the secret: the first
 * bytes of HMAC-SHA256(secret, "roci connect" || number). An eavesdropper may repeat it, so it only spares the receiver
 * the strangers; trust comes from the handshake. 0 or -ENOMEM. */
int mover_secure_proof(const uint8_t secret[MOVER_SECRET_BYTES], uint64_t number, uint8_t proof[SECURE_TOKEN_BYTES]);

/* Takes the next step of the handshake with `in` from the peer. The receiver begins, with nothing: its first step
 * writes the ClientHello, of at most SECURE_HELLO_BYTES. Writes to `out` what the peer has to get, also after an error:
 * an alert. *out_len is the room in `out` (16 KiB is enough), then the bytes written. Returns 1 when the handshake has
 * finished, 0 when the peer's next bytes are needed, -EACCES if the peer does not know the secret, -EPROTO if it does
 * not speak TLS 1.3 with a PSK, -EMSGSIZE for too little room, or -ENOMEM. */
int mover_secure_handshake(struct mover_secure *s, const void *in, size_t in_len, void *out, size_t *out_len);

/* Whether messages can be sealed, and the token made: after the handshake, and at the sender after its first step. */
bool mover_secure_can_seal(const struct mover_secure *s);

/* One message of at most 64 KiB; none can be opened before the end of the handshake. *out_len is the room in `out`,
 * then the length; seal needs room for len + 512. open takes the sealed bytes of exactly one message, and messages in
 * the order in which they were sealed. Return 0; -EMSGSIZE for too little room; -EBADMSG if the message was not sealed
 * by the peer, or was changed, repeated or left out, or if the peer changes its keys (RFC 8446 s.4.6.3). */
int mover_secure_seal(struct mover_secure *s, const void *message, size_t len, void *out, size_t *out_len);
int mover_secure_open(struct mover_secure *s, const void *sealed, size_t len, void *out, size_t *out_len);

/* From now on a message is padded to at least `bytes` when it is sealed (RFC 8446 s.5.4; at most 16 KiB). Whoever opens
 * it does not see that. seal needs room for the padding, too. */
void mover_secure_pad(struct mover_secure *s, size_t bytes);

/* The token that proves that a data connection belongs to this session: bytes from the TLS exporter (RFC 8446 s.7.5).
 */
int mover_secure_token(struct mover_secure *s, uint8_t token[SECURE_TOKEN_BYTES]);

/* Protects the content of a window in place (chunk_cipher.h) under a key from the exporter: it is authenticated, and
 * with `encrypt`, which is the same for all of a session, encrypted too. `number` is the nonce; the sender never uses
 * one twice in a session. The 16-byte tag follows the data. 0 or -errno; open_chunk: -EBADMSG if the content was
 * changed.
 */
int mover_secure_seal_chunk(struct mover_secure *s, bool encrypt, uint64_t number, uint8_t *data, size_t len);
int mover_secure_open_chunk(struct mover_secure *s, bool encrypt, uint64_t number, uint8_t *data, size_t len);

/* Both ask `way` between two pieces (give_way.h), which lives as long as `s`. NULL, as at first: they do not. */
void mover_secure_way(struct mover_secure *s, struct give_way *way);

bool mover_secure_is_open(const struct mover_secure *s);
/* The name of the ticket, or "open". Lives as long as `s`. */
const char *mover_secure_ticket_identity(const struct mover_secure *s);

/* For tests: the TLS connection (SSL *), for peers that misuse it. */
struct ssl_st *mover_secure_tls(struct mover_secure *s);

#endif
