/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two ends of the tour tell each other, as bytes. All numbers are in network byte order.
 *
 * The near end sends a request, the far end an offer. By rdma_cm they are the private data of the connection (REQ and
 * REP; of UD, SIDR_REQ and SIDR_REP); by socket they go through TCP, request first. Then the near end does operations.
 * The far end's program answers those of which it learns. Controls ask for what the API does not tell the far end. Both
 * are SENDs on the QP.
 */
#ifndef ROCI_TOUR_HELLO_H
#define ROCI_TOUR_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tour/tour.h"

#define HELLO_VERSION       1
#define HELLO_REQUEST_BYTES 56u /* as much as a REQ of rdma_cm has room for */
#define HELLO_OFFER_BYTES   88u
#define HELLO_CONTROL_BYTES 20u
#define HELLO_ANSWER_BYTES  100u

struct hello_request {
	enum tour_op op;
	enum tour_qp qp;
	bool verify, steps;
	uint32_t size; /* bytes of an operation */
	uint32_t seed; /* of the content; also marks controls */
	uint32_t caps; /* of the near device: bits of enum tour_cap */
	uint32_t host; /* a digest of the boot's ID: whether both ends have the same clock */
	/* By socket only; zeros else. */
	uint8_t mtu; /* enum ibv_mtu */
	uint16_t lid;
	uint32_t qpn, psn; /* 24 bits */
	uint8_t gid[16];
};

enum hello_status {
	HELLO_OK,
	HELLO_BAD_VERSION,
	HELLO_BAD_REQUEST,
	HELLO_BUSY,     /* as many clients as it takes */
	HELLO_REFUSED,  /* the far device cannot; its caps say what it can */
	HELLO_TOO_LONG, /* for the far device: size_max says how long */
	HELLO_FAILED,   /* a verbs call failed there */
	HELLO_STATUSES
};

struct hello_offer {
	enum hello_status status; /* unless HELLO_OK: only caps, size_max and device count */
	uint32_t caps;
	uint32_t size_max; /* bytes */
	uint32_t host;
	uint64_t addr; /* of the memory for RDMA and atomics: `size` bytes */
	uint32_t rkey;
	bool embedded;
	char device[24]; /* ends with 0; printable */
	/* By socket only; zeros else. */
	uint8_t mtu; /* enum ibv_mtu, of the port */
	uint16_t lid;
	uint32_t qpn, psn, qkey;
	uint8_t gid[16];
	uint8_t gid_type;    /* enum tour_gid_type */
	uint8_t prefix;      /* struct tour_network. Older builds leave this and the next one 0 */
	uint8_t network_mtu; /* enum ibv_mtu */
};

enum control_kind {
	CONTROL_ALIVE,   /* nothing to do */
	CONTROL_PREPARE, /* bind a memory window, and answer with its rkey */
	CONTROL_CHECK,   /* check what was written to the memory, and answer */
	CONTROL_TELL,    /* answer with the times of the last operation */
	CONTROL_BYE,
	CONTROL_KINDS
};

struct control {
	enum control_kind kind;
	uint32_t seed, seq;
};

enum verdict {
	VERDICT_GOOD,
	VERDICT_WRONG_CONTENT,
	VERDICT_WRONG_LENGTH,
	VERDICT_WRONG_IMM,
	VERDICT_WRONG_INVALIDATE,
	VERDICT_FAILED, /* a verbs call failed there */
	VERDICTS
};

/* When something happened at the far end: ns of its CLOCK_REALTIME; 0: it did not, or nothing tells. */
enum far_time {
	FAR_REGISTERED,
	FAR_RECEIVE_POSTED,
	FAR_PACKET_IN,
	FAR_WOKEN, /* by the completion channel */
	FAR_POLLED,
	FAR_RESPONSE_OUT, /* acknowledgement or response, of the device */
	FAR_ANSWERED,     /* the program posted its answer */
	FAR_TAKEN,        /* the device took the receive, or had executed the request. Older builds leave it and the
			     next one 0 */
	FAR_CQE,          /* the completion entered the CQ */
	FAR_TIMES
};

struct answer {
	enum control_kind to; /* CONTROL_ALIVE: to an operation */
	enum verdict verdict;
	uint32_t seq;
	uint32_t len;      /* bytes that came */
	uint32_t inv_rkey; /* to CONTROL_PREPARE */
	uint32_t wrong_at; /* the first wrong byte */
	bool recorded;     /* the far device has a record: FAR_PACKET_IN and what else the device tells counts */
	uint64_t times[FAR_TIMES];
};

/* The hello_get_*() are the edge where bytes of strangers come in: what they accept is within its bounds. */
void hello_put_request(uint8_t bytes[HELLO_REQUEST_BYTES], const struct hello_request *r);
/* Whether these bytes may be the beginning of a request. */
bool hello_is_incomplete(const void *bytes, size_t len);
/* HELLO_OK, HELLO_BAD_VERSION or HELLO_BAD_REQUEST. There may be more bytes than the request has. */
enum hello_status hello_get_request(const void *bytes, size_t len, struct hello_request *r);

void hello_put_offer(uint8_t bytes[HELLO_OFFER_BYTES], const struct hello_offer *o);
/* 0, -EPROTO (no offer), or -EPROTONOSUPPORT (of another version). */
int hello_get_offer(const void *bytes, size_t len, struct hello_offer *o);

void hello_put_control(uint8_t bytes[HELLO_CONTROL_BYTES], const struct control *c);
/* Whether the bytes are a control of the session with this seed. Else they are an operation's content. */
bool hello_get_control(const void *bytes, size_t len, uint32_t seed, struct control *c);

void hello_put_answer(uint8_t bytes[HELLO_ANSWER_BYTES], const struct answer *a);
/* 0 or -EPROTO. */
int hello_get_answer(const void *bytes, size_t len, struct answer *a);

/* "holds as many clients as it can serve": follows "HOST". */
const char *hello_status_str(enum hello_status status);
/* "the content is wrong". */
const char *hello_verdict_str(enum verdict verdict);

#endif
