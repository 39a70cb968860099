/* SPDX-License-Identifier: BSD-2-Clause */
/* The mover's messages: bytes <-> structs. Pure. docs/MOVER.md has their bytes.
 *
 * Bytes from a peer are checked here, once: counts, lengths, ranges, kinds, names. Checks against a session's state (is
 * this entry open, is this window granted) are up to the part of the session that owns that state. */
#ifndef ROCI_MOVER_PROTO_H
#define ROCI_MOVER_PROTO_H

#include <errno.h>

#include "mover/cursor.h"
#include "mover/entry.h"
#include "mover/mover.h"
#include "mover/secure.h"

#define PROTO_MAGIC            0x524f4d56u /* "ROMV" */
#define PROTO_VERSION          5
#define PROTO_MESSAGE_BYTES    65536 /* the longest message with its header */
#define PROTO_HEADER_BYTES     12
#define PROTO_BODY_BYTES       (PROTO_MESSAGE_BYTES - PROTO_HEADER_BYTES)
#define PROTO_PREFIX_BYTES     4 /* of a sealed body: its type again, credits, and how many descriptors it takes */
#define PROTO_PAYLOAD_BYTES    (PROTO_BODY_BYTES - PROTO_PREFIX_BYTES - 512)
#define PROTO_CREDITS          16 /* receives that each side posts at first */
#define PROTO_DESCRIPTORS      64 /* may be sent and not yet acknowledged by an ACK, unless a peer says more */
#define PROTO_MIN_CHUNK        (64u << 10)
#define PROTO_MAX_CHUNK        (16u << 20)
#define PROTO_MAX_SEGMENTS     1024
#define PROTO_MAX_WINDOWS      256
#define PROTO_MAX_ENTRIES      4096 /* offered and not finished */
#define PROTO_MAX_TEXT         255
#define PROTO_STAYS            "stays" /* in END, where nothing failed at the end: nobody waits for BYE */
#define PROTO_NO_WINDOW        0xffff
#define PROTO_PRIVATE_BYTES    32                 /* private data of a connect request */
#define PROTO_ANSWER_BYTES     SECURE_HELLO_BYTES /* ... of the answer to that of the control connection, at most */
#define PROTO_REJECT_BYTES     8
#define PROTO_DONE_BYTES       16
#define PROTO_GRANT_BYTES      20
#define PROTO_DESCRIPTOR_BYTES 18
#define PROTO_TRANSFER_BYTES   MOVER_TRANSFER_BYTES

enum proto_type {
	PROTO_HELLO = 1, /* a flight of the handshake, in the clear */
	PROTO_TERMS,     /* sender: what it proposes; receiver: what it accepts */
	PROTO_OFFER,     /* sender: entries */
	PROTO_HAVE,      /* receiver: digests of the chunks that it has of an entry */
	PROTO_VERDICT,   /* receiver: which of the offered entries it wants */
	PROTO_GRANT,     /* the key of a window, for one use */
	PROTO_FIN,       /* what is in a filled window; receiver in mode READ: the window has been read */
	PROTO_ACK,       /* receiver: windows that are done, and results of entries */
	PROTO_END,       /* receiver: all of it is on the disk */
	PROTO_ERROR,     /* the last message of a side that gives up */
	PROTO_PING,      /* keepalive, and credits; it says how soon its sender gives up a silent peer */
	PROTO_BYE,       /* sender: it has the receiver's END */
	PROTO_TYPES,
};

struct proto_header {
	enum proto_type type;
	bool sealed;
	uint32_t body_len;
};

/* Why a connect request was rejected. */
enum proto_reject {
	PROTO_REJECT_BUSY = 1,
	PROTO_REJECT_VERSION,
	PROTO_REJECT_UNKNOWN, /* a data connection for no session */
	PROTO_REJECT_DEVICE,  /* it came by another device than the receiver uses */
	PROTO_REJECT_TICKET,  /* it did not prove that it knows the ticket */
};

/* Private data of a connect request. That of the control connection gives the session its number, a random one; `token`
 * is mover_secure_proof() of it, or zeros for a sender without a ticket. Those of data connections have the same
 * number, and mover_secure_token(). */
struct proto_request {
	bool data;
	uint16_t index; /* of the data connection */
	uint64_t session;
	uint8_t token[SECURE_TOKEN_BYTES];
};

struct proto_terms {
	enum mover_mode mode;
	bool encrypt, checksum, dry_run;
	uint16_t qps;
	uint16_t windows;
	uint16_t max_entries; /* offered and not finished */
	uint32_t chunk_bytes;
	uint64_t session; /* receiver's answer: the session's number */
	uint64_t entries, bytes;
	/* Sender: random; the same in a session that continues one that broke. The answer repeats it; zeros: no session
	 * can continue this one, it goes to standard output. */
	uint8_t transfer[PROTO_TRANSFER_BYTES];
};

enum proto_verdict {
	PROTO_WANT = 1,
	PROTO_DONE,      /* a folder or link: made */
	PROTO_UNCHANGED, /* existed already */
	PROTO_WOULD,     /* dry run */
	PROTO_REFUSED,   /* text */
	PROTO_VERDICTS,
};

struct proto_text {
	const uint8_t *bytes;
	uint8_t len;
};

struct proto_result { /* in ACK: PROTO_DONE or PROTO_REFUSED. In VERDICT: any, and without `entry`, which counts up */
	uint32_t entry;
	enum proto_verdict verdict;
	enum mover_status status; /* REFUSED: the kind of failure, as the receiver sees it */
	struct proto_text text;   /* REFUSED */
};

struct proto_grant {
	uint16_t window;
	uint16_t lane; /* SEND: the data connection on which the window is posted */
	uint32_t len;
	uint64_t addr;
	uint32_t rkey;
};

enum proto_segment_kind {
	PROTO_DATA = 1, /* the next `len` bytes of the window are chunk `chunk` */
	PROTO_KEEP,     /* chunk `chunk` is the one that the receiver has: it has this digest */
	PROTO_HOLE,     /* `count` chunks from `chunk` on are a hole */
	PROTO_GIVEN_UP, /* the sender gives up this entry: text */
	PROTO_SEGMENT_KINDS,
};

struct proto_segment {
	enum proto_segment_kind kind;
	bool last;   /* of its entry: `size` and `whole` are set. GIVEN_UP is always the last, without them */
	bool sparse; /* DATA: it has a hole; blocks of zeros need not be written */
	uint32_t entry;
	uint64_t chunk, count;
	uint32_t len;
	struct mover_digest digest; /* DATA, KEEP */
	struct proto_text text;     /* GIVEN_UP */
	uint64_t size;
	struct mover_digest whole;
};

/* What is in a window. In FIN, and in mode READ in GRANT, after the grant. Segments follow it, and then the next. */
struct proto_descriptor {
	uint64_t seq;    /* counts from 0 without gaps; the nonce of its window */
	uint16_t window; /* PROTO_NO_WINDOW where nothing moved */
	uint16_t lane;
	uint32_t bytes; /* of the window, without the tag; the sum of its DATA segments */
	uint16_t count;
};

struct proto_end {
	enum mover_status status;
	struct proto_text text;
	uint64_t entries, failed;
};

const char *proto_type_name(enum proto_type type);

void proto_put_header(struct cursor_out *out, enum proto_type type, bool sealed, uint32_t body_len);
void proto_put_request(uint8_t bytes[PROTO_PRIVATE_BYTES], const struct proto_request *request);
void proto_put_reject(uint8_t bytes[PROTO_REJECT_BYTES], enum proto_reject reason);
void proto_put_done(uint8_t bytes[PROTO_DONE_BYTES], uint64_t seq, uint16_t window);
void proto_put_terms(struct cursor_out *out, const struct proto_terms *terms);
void proto_put_entry(struct cursor_out *out, const struct mover_entry *entry);
void proto_put_result(struct cursor_out *out, const struct proto_result *result, bool with_entry);
void proto_put_grant(struct cursor_out *out, const struct proto_grant *grant);
void proto_put_descriptor(struct cursor_out *out, const struct proto_descriptor *descriptor);
void proto_put_segment(struct cursor_out *out, const struct proto_segment *segment);
void proto_put_end(struct cursor_out *out, const struct proto_end *end);
void proto_put_ping(struct cursor_out *out, uint32_t timeout_ms);
struct proto_text proto_text(const char *text);

/* All return 0, or -EPROTO if the bytes are wrong. After an element of a list the cursor is at the next one. */
int proto_get_header(const uint8_t *bytes, size_t len, struct proto_header *header);
int proto_get_request(const void *bytes, size_t len, struct proto_request *request);
/* The length of the ClientHello in the answer: a TLS record, which says how long it is (RFC 8446 s.5.1). 0: none. */
size_t proto_get_answer(const uint8_t *bytes, size_t len);
enum proto_reject proto_get_reject(const void *bytes, size_t len);
int proto_get_done(const uint8_t *bytes, size_t len, uint64_t *seq, uint16_t *window);
int proto_get_terms(struct cursor_in *in, struct proto_terms *terms);
int proto_get_entry(struct cursor_in *in, struct mover_entry *entry);
int proto_get_result(struct cursor_in *in, struct proto_result *result, bool with_entry);
int proto_get_grant(struct cursor_in *in, struct proto_grant *grant);
int proto_get_descriptor(struct cursor_in *in, struct proto_descriptor *descriptor);
int proto_get_segment(struct cursor_in *in, struct proto_segment *segment);
int proto_get_end(struct cursor_in *in, struct proto_end *end);
/* A peer of an older version 5 does not say it: 0. */
int proto_get_ping(struct cursor_in *in, uint32_t *timeout_ms);

/* The head of a list (OFFER, VERDICT): number of the first entry, and count, 1 .. max. */
int proto_get_list(struct cursor_in *in, uint32_t *first, uint16_t *count, uint16_t max);

/* Checks a descriptor's segments: each can be parsed, and their bytes add up to descriptor->bytes. `segments`: they. */
int proto_get_segments(struct cursor_in *in, const struct proto_descriptor *descriptor, struct cursor_in *segments);

/* Checks that nothing follows. */
static inline int proto_get_nothing(const struct cursor_in *in)
{
	return in->bad || in->at != in->end ? -EPROTO : 0;
}

/* Copies text from a peer for a terminal: what is not printable ASCII becomes '?'. */
void proto_text_copy(char *to, size_t room, const struct proto_text *text);

#endif
