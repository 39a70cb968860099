/* SPDX-License-Identifier: BSD-2-Clause */
/* A UD QP of a device on the loopback interface, which sends to itself or to others. */
#ifndef ROCI_TESTS_DEVICE_UD_H
#define ROCI_TESTS_DEVICE_UD_H

#include <pthread.h>
#include <stdatomic.h>

#include "bench.h" /* IWYU pragma: export */

#include "device/device_state.h" /* IWYU pragma: export */

extern atomic_uint completions; /* completion events that the device reported */

/* Stands for the locks of channels and events in src/verbs, which the device's thread takes. */
extern pthread_mutex_t listeners;
extern atomic_bool in_event, dawdle; /* an event is, or was, being reported; that takes long */

/* For roci_device_get(). */
void on_event(const struct roci_event *ev);
struct roci_device *open_device(void);
uint8_t loopback_index(struct roci_device *dev);

/* With 64 bytes of memory: the first half to send, the other to receive, behind a GRH. */
struct ud {
	struct roci_device *dev;
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_mr *mr;
	struct roci_av self;
	uint32_t qpn, key;
	uint8_t memory[128];
};

void ud_open(struct ud *u, struct roci_device *dev);
void ud_close(struct ud *u);
/* Posts a receive, and a message of one byte to `qpn` of this address (0: to none). */
void ud_post(struct ud *u, uint32_t qpn, uint8_t byte, bool receive);
/* Waits for `want` completions, all good. */
void ud_wait(struct ud *u, unsigned want, bool polling);
/* The body of a thread: a message from and to *arg, a struct ud. */
void *send_to_itself(void *arg);

#endif
