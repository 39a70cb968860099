/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two ends of a measurement tell each other, as bytes, through the TCP connection that the near end opens. All
 * numbers are in network byte order. Each message has a fixed length, and begins with the mark of its kind.
 *
 * near: hello.  far: offer.  If that is good, both: their QPs, as many as the hello says.  far: report (are the QPs
 * connected?).  Then for each phase: near: order.  far: report (is it ready?).  They measure.  near: stop.  far:
 * report. The connection's end is the end. A report with a text says why the far end cannot go on.
 */
#ifndef ROCI_PERF_TALK_H
#define ROCI_PERF_TALK_H

#include <stddef.h>
#include <stdint.h>

#include "perf/facts.h"
#include "perf/perf.h"

#define TALK_VERSION      1
#define TALK_HELLO_BYTES  56u
#define TALK_OFFER_BYTES  244u
#define TALK_QP_BYTES     24u
#define TALK_ORDER_BYTES  24u
#define TALK_STOP_BYTES   12u
#define TALK_REPORT_BYTES 320u
#define TALK_TEXT         160u

struct talk_hello {
	struct perf_plan plan;
	uint32_t caps; /* of the near device: bits of enum tour_cap */
	uint32_t host; /* as in tour/hello.h */
	uint8_t mtu;   /* enum ibv_mtu */
	uint8_t rd_atomic;
	uint16_t lid;
	uint8_t gid[16];
};

struct talk_offer {
	char text[TALK_TEXT]; /* "": it is ready. Else why not, printable */
	uint32_t caps, host;
	bool embedded;
	uint8_t mtu, rd_atomic;
	uint16_t lid;
	uint8_t gid[16];
	char device[24];
};

struct talk_qp {
	uint32_t qpn, psn;
	uint64_t addr; /* of the memory for RDMA */
	uint32_t rkey;
};

struct talk_report {
	char text[TALK_TEXT];
	uint64_t sent;     /* messages in all */
	uint64_t received; /* messages that used up a receive; of TCP, bytes */
	uint64_t measured; /* messages of `measured_ns` */
	uint64_t measured_ns;
	struct perf_facts facts;
};

/* Whether these bytes begin a hello. */
bool talk_is_hello(const void *bytes, size_t len);

void talk_put_hello(uint8_t bytes[TALK_HELLO_BYTES], const struct talk_hello *h);
void talk_put_offer(uint8_t bytes[TALK_OFFER_BYTES], const struct talk_offer *o);
void talk_put_qp(uint8_t bytes[TALK_QP_BYTES], const struct talk_qp *q);
void talk_put_order(uint8_t bytes[TALK_ORDER_BYTES], const struct perf_order *o);
void talk_put_stop(uint8_t bytes[TALK_STOP_BYTES], uint64_t sent);
void talk_put_report(uint8_t bytes[TALK_REPORT_BYTES], const struct talk_report *r);

/* The talk_get_*() are the edge where bytes of strangers come in: what they accept is within its bounds.
 * 0; -EPROTO; -EPROTONOSUPPORT: of another version. */
int talk_get_hello(const uint8_t bytes[TALK_HELLO_BYTES], struct talk_hello *h);
int talk_get_offer(const uint8_t bytes[TALK_OFFER_BYTES], struct talk_offer *o);
int talk_get_qp(const uint8_t bytes[TALK_QP_BYTES], struct talk_qp *q);
int talk_get_order(const uint8_t bytes[TALK_ORDER_BYTES], uint32_t size_max, struct perf_order *o);
int talk_get_stop(const uint8_t bytes[TALK_STOP_BYTES], uint64_t *sent);
int talk_get_report(const uint8_t bytes[TALK_REPORT_BYTES], struct talk_report *r);

#endif
