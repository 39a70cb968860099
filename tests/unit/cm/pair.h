/* SPDX-License-Identifier: BSD-2-Clause */
/* Two managers and the wire between them, led by a test. */
#ifndef ROCI_TESTS_CM_PAIR_H
#define ROCI_TESTS_CM_PAIR_H

#include "test.h"

#include <string.h>

#include "../test.h"

#include "cm_inspect.h"
#include "random.h"

#define MS      1000000ull
#define SECOND  (1000 * MS)
#define PENDING (400 * MS) /* roci_cm_config.pending_ns, when 0 */
#define SERVICE 0x01060000 + 22222

struct pair {
	uint64_t now, seed;
	struct roci_cm *a, *b;
	struct roci_listener *listener; /* of b */
	bool lose;                      /* every MAD */
	uint16_t lose_only;             /* the next MAD with this attribute */
	unsigned sent[0x20];            /* by attribute */
	struct roci_cm_tx last;
	struct roci_cm_event events[64]; /* since pair_clear() */
	unsigned event_count;
};

static const uint8_t pair_gid_a[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
static const uint8_t pair_gid_b[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};

static inline uint32_t pair_random(void *context)
{
	return (uint32_t)random_next(context);
}

static inline void pair_drain(struct pair *p, struct roci_cm *cm)
{
	while (roci_cm_next_event(cm, &p->events[p->event_count])) {
		assert_true(p->event_count < 63);
		p->event_count++;
	}
}

/* Carries MADs in both directions until there are none. */
static inline void pair_carry(struct pair *p)
{
	struct roci_cm_tx tx;
	bool any = true;

	pair_drain(p, p->a);
	pair_drain(p, p->b);
	while (any) {
		any = false;
		for (unsigned side = 0; side < 2; side++) {
			while (roci_cm_tx(side ? p->b : p->a, p->now, &tx)) {
				struct roci_cm *to = memcmp(tx.dgid, pair_gid_a, 16) ? p->b : p->a;
				uint16_t attribute = tx.mad[17];

				any = true;
				p->sent[attribute]++;
				p->last = tx;
				if (p->lose || p->lose_only == attribute) {
					p->lose_only = 0;
					continue;
				}
				roci_cm_rx(to, p->now, tx.mad, tx.sgid, tx.dgid, 7);
				pair_drain(p, to);
			}
		}
	}
}

/* Lets time pass, deadline by deadline. */
static inline void pair_wait(struct pair *p, uint64_t ns)
{
	uint64_t end = p->now + ns;

	pair_carry(p);
	for (;;) {
		uint64_t a = roci_cm_deadline(p->a), b = roci_cm_deadline(p->b), next = a < b ? a : b;

		if (next > end)
			break;
		p->now = next > p->now ? next : p->now;
		roci_cm_timers(p->a, p->now);
		pair_drain(p, p->a);
		roci_cm_timers(p->b, p->now);
		pair_drain(p, p->b);
		pair_carry(p);
	}
	p->now = end;
}

static inline void pair_clear(struct pair *p)
{
	p->event_count = 0;
	memset(p->sent, 0, sizeof(p->sent));
}

static inline void pair_listen(struct pair *p, unsigned backlog)
{
	struct roci_cm_listen listen = {.service_id = SERVICE, .backlog = backlog, .user = p};

	assert_int_equal(roci_cm_listen(p->b, &listen, &p->listener), 0);
}

static inline void pair_stop_listening(struct pair *p)
{
	roci_listener_destroy(p->listener, p->now);
	p->listener = NULL;
}

static inline void pair_open(struct pair *p, unsigned backlog)
{
	struct roci_cm_config config = {
		.id_base = 5u << 22, .id_mask = (1u << 22) - 1, .random = pair_random, .pace_ns = 20 * MS};

	memset(p, 0, sizeof(*p));
	p->now = SECOND;
	p->seed = 11;
	config.context = &p->seed;
	config.ca_guid = 0xa00;
	p->a = roci_cm_create(&config);
	config.id_base = 6u << 22;
	config.ca_guid = 0xb00;
	p->b = roci_cm_create(&config);
	pair_listen(p, backlog);
}

/* Once the consumers have let go, everything ends by itself. */
static inline void pair_close(struct pair *p)
{
	if (p->listener)
		roci_listener_destroy(p->listener, p->now);
	pair_wait(p, 200 * SECOND);
	assert_int_equal(cm_object_count(p->a), 0);
	assert_int_equal(cm_object_count(p->b), 0);
	assert_true(roci_cm_deadline(p->a) == ROCI_CM_NEVER && roci_cm_deadline(p->b) == ROCI_CM_NEVER);
	roci_cm_destroy(p->a);
	roci_cm_destroy(p->b);
}

static inline struct roci_cm_path pair_path(void)
{
	struct roci_cm_path path = {.pkey = 0xffff, .mtu = 3, .packet_life = 16, .hop_limit = 64, .rate = 7};

	memcpy(path.sgid, pair_gid_a, 16);
	memcpy(path.dgid, pair_gid_b, 16);
	return path;
}

static inline struct roci_conn *pair_connect(struct pair *p, uint32_t qpn)
{
	static const char hello[] = "hello";
	struct roci_cm_connect connect = {
		.service_id = SERVICE,
		.path = pair_path(),
		.qpn = qpn,
		.starting_psn = 0x111111,
		.transport = ROCI_CM_RC,
		.responder_resources = 5,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.flow_control = true,
		.ece = {0xabcdef, 0x11223344},
		.private = {NULL, 0},
	};
	struct roci_cm_ip ip = {.src_port = 40000, .ipv4 = true};
	uint8_t data[ROCI_CM_IP_BYTES + sizeof(hello)];
	struct roci_conn *conn;

	memcpy(ip.src, pair_gid_a, 16);
	memcpy(ip.dst, pair_gid_b, 16);
	roci_cm_ip_build(&ip, data);
	memcpy(data + ROCI_CM_IP_BYTES, hello, sizeof(hello));
	connect.private = (struct roci_cm_bytes){data, sizeof(data)};
	assert_int_equal(roci_conn_connect(p->a, p->now, &connect, &conn), 0);
	return conn;
}

static inline struct roci_sidr *pair_resolve(struct pair *p)
{
	struct roci_cm_resolve ask = {.service_id = SERVICE, .path = pair_path()};
	struct roci_cm_ip ip = {.src_port = 1, .ipv4 = true};
	uint8_t data[ROCI_CM_IP_BYTES];
	struct roci_sidr *sidr;

	memcpy(ip.dst, pair_gid_b, 16);
	memcpy(ip.src, pair_gid_a, 16);
	roci_cm_ip_build(&ip, data);
	ask.private = (struct roci_cm_bytes){data, sizeof(data)};
	assert_int_equal(roci_sidr_resolve(p->a, p->now, &ask, &sidr), 0);
	return sidr;
}

static inline int pair_accept(struct pair *p, struct roci_conn *conn, uint32_t qpn)
{
	struct roci_cm_accept accept = {
		.qpn = qpn,
		.starting_psn = 0x222222,
		.responder_resources = 3,
		.initiator_depth = 2,
		.rnr_retry_count = 5,
		.target_ack_delay = 9,
		.ece = {0xfedcba, 5},
		.private = {"welcome", 8},
	};

	return roci_conn_accept(conn, p->now, &accept);
}

static inline const struct roci_cm_event *pair_only_event(struct pair *p, enum roci_cm_event_kind kind)
{
	assert_int_equal(p->event_count, 1);
	assert_string_equal(cm_event_name(p->events[0].kind), cm_event_name(kind));
	return &p->events[0];
}

/* A connection whose REQ has arrived. The event stays. */
static inline void pair_request(struct pair *p, uint32_t qpn, struct roci_conn **active, struct roci_conn **passive)
{
	*active = pair_connect(p, qpn);
	pair_carry(p);
	*passive = pair_only_event(p, ROCI_CM_REQ_RECEIVED)->conn;
}

/* A connection, established on both sides. */
static inline void pair_establish(struct pair *p, uint32_t qpn, struct roci_conn **active, struct roci_conn **passive)
{
	pair_request(p, qpn, active, passive);
	pair_clear(p);
	assert_int_equal(pair_accept(p, *passive, qpn + 1), 0);
	pair_carry(p);
	pair_only_event(p, ROCI_CM_REP_RECEIVED);
	pair_clear(p);
	assert_int_equal(roci_conn_establish(*active, p->now, (struct roci_cm_bytes){"go", 3}), 0);
	pair_carry(p);
	pair_only_event(p, ROCI_CM_ESTABLISHED);
	pair_clear(p);
}

#endif
