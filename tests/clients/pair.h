/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the test programs of this directory: one open device, functions that make and connect queue pairs, and a
 * TCP connection to a peer program. Public verbs only. A failure prints a line and ends the program with status 1.
 * Every wait has a timeout.
 */
#ifndef ROCI_TESTS_PAIR_H
#define ROCI_TESTS_PAIR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAIR_WAIT_S 60 /* timeout of every wait, in seconds */

struct endpoint {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int gid_index;
	union ibv_gid gid;
	enum ibv_mtu mtu;
	uint32_t mtu_bytes;
};

/* What a queue pair must know of its peer. Sent over TCP as it is, between programs of one build. */
struct address {
	union ibv_gid gid;
	uint32_t qpn, psn, mtu;
	uint32_t rkey;
	uint64_t addr;
};

/* Timeouts and retry counts of a queue pair. */
struct retries {
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
};
extern const struct retries pair_retries;

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* die() with errno's text, unless ok. */
void need(bool ok, const char *what);

/* Opens the first device. */
void endpoint_open(struct endpoint *ep, int gid_index);
void endpoint_close(struct endpoint *ep);

/* An RC, UC or UD queue pair in INIT with one CQ for both queues, every remote right and a random first PSN in *psn.
 * wr: depth of both queues; sge: of both. RC queue pairs take ibv_wr_atomic_write() and ibv_wr_flush() as well,
 * where the device has them. */
struct ibv_qp *qp_make(struct endpoint *ep, enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq, uint32_t wr,
		       uint32_t sge);
/* To RTS, sending from PSN `psn`. */
void qp_connect(struct endpoint *ep, struct ibv_qp *qp, uint32_t psn, const struct address *peer,
		const struct retries *retries);
uint32_t qp_random_psn(void);

/* A memory window of type 2 on the first `len` bytes of a region, which the queue pair's peer may write. The CQ must
 * be empty. */
struct ibv_mw *mw_bind(struct ibv_qp *qp, struct ibv_mr *mr, size_t len);

/* Posts a signaled SEND, or a receive, of `len` bytes. */
void post_message(struct ibv_qp *qp, const struct ibv_mr *mr, void *at, uint32_t len, uint64_t wr_id, bool receive);

/* The next completion of a polled CQ. */
void cq_next(struct ibv_cq *cq, struct ibv_wc *wc);
/* The next completion, which must be this one, with success. */
void cq_expect(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t wr_id);

int tcp_serve(const char *port);
int tcp_connect(const char *host, const char *port);
/* Sends mine, receives theirs. With len 0 it only waits for the peer. */
void tcp_swap(int fd, const void *mine, void *theirs, size_t len);

/* Fills or checks a buffer with bytes that depend on seed and place. */
void pattern_fill(uint8_t *p, size_t len, uint32_t seed);
bool pattern_holds(const uint8_t *p, size_t len, uint32_t seed);

#endif
