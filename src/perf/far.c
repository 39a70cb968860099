/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/far.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf/run.h"
#include "perf/talk.h"

#define HELLO_MS 5000
#define IDLE_MS  60000 /* between two orders: the near end has nothing else to do */

struct client {
	struct perf_far *far;
	pthread_t thread;
	bool used, ended; /* ended: the thread is about to return */
	unsigned number;
	char address[64];
	struct perf_control control;
	uint8_t bytes[TALK_HELLO_BYTES];
	size_t len; /* of bytes that were read */
	struct talk_hello hello;
	struct perf_end end;
};

struct perf_far {
	struct perf_far_options options;
	pthread_mutex_t lock;
	int end_fd;
	struct client clients[PERF_FAR_CLIENTS];
};

bool perf_far_wants(const void *bytes, size_t len)
{
	return talk_is_hello(bytes, len);
}

static void report(const struct client *c, enum perf_far_event event, const char *text)
{
	const struct perf_far_options *o = &c->far->options;

	if (o->report)
		o->report(o->context, event, c->number, c->address, c->hello.plan.qps ? &c->hello.plan : NULL, text);
}

/* How many others are served. */
static uint32_t others(struct client *c)
{
	uint32_t count = 0;

	pthread_mutex_lock(&c->far->lock);
	for (unsigned i = 0; i < PERF_FAR_CLIENTS; i++)
		count += c->far->clients[i].used && !c->far->clients[i].ended && &c->far->clients[i] != c;
	pthread_mutex_unlock(&c->far->lock);
	return count;
}

/* ---- connecting ---- */

/* Texts that go to the near end are short and printable; the long ones lose their end. */
static void set_text(char text[TALK_TEXT], const char *from)
{
	snprintf(text, TALK_TEXT, "%.*s", TALK_TEXT - 1, from);
	for (char *at = text; *at; at++)
		*at = *at < ' ' || *at > '~' ? '?' : *at;
}

static int send_offer(struct client *c, const char *text)
{
	struct talk_offer offer = {.host = device_host(), .embedded = c->far->options.embedded};
	const struct tour_port *port = &c->end.port;
	uint8_t bytes[TALK_OFFER_BYTES];
	struct failure ignored;

	set_text(offer.text, text);
	if (port->verbs) {
		snprintf(offer.device, sizeof(offer.device), "%s", ibv_get_device_name(port->verbs->device));
		offer.caps = device_caps(port->verbs);
		offer.mtu = (uint8_t)port->mtu;
		offer.lid = port->lid;
		offer.rd_atomic = (uint8_t)c->end.rd_atomic;
		memcpy(offer.gid, port->gid.raw, sizeof(offer.gid));
	}
	talk_put_offer(bytes, &offer);
	return control_write(&c->control, bytes, sizeof(bytes), &ignored);
}

static int refuse(struct client *c, const char *text)
{
	send_offer(c, text);
	report(c, PERF_FAR_REFUSED, text);
	return -EPERM;
}

static int open_end(struct client *c)
{
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	struct tour_refusal refusal;
	struct failure f;
	int err;

	if (getsockname(c->control.fd, (struct sockaddr *)&own, &len))
		return refuse(c, strerror(errno));
	err = perf_end_open(&c->end, &c->hello.plan, c->far->options.device, (struct sockaddr *)&own, &f);
	if (err)
		return refuse(c, f.text);
	refusal = tour_refuse(c->hello.plan.op, TOUR_RC, TOUR_SOCKET, c->hello.caps, device_caps(c->end.port.verbs));
	if (refusal.reason)
		return refuse(c, refusal.reason);
	return send_offer(c, "");
}

static int connect_qps(struct client *c, struct failure *f)
{
	struct endpoint_peer peer = {.lid = c->hello.lid, .mtu = (enum ibv_mtu)c->hello.mtu};
	uint8_t bytes[TALK_QP_BYTES];
	int err = 0;

	memcpy(peer.gid.raw, c->hello.gid, sizeof(peer.gid.raw));
	for (unsigned i = 0; i < c->hello.plan.qps && !err; i++) {
		struct talk_qp own;
		perf_end_describe(&c->end, i, &own);
		talk_put_qp(bytes, &own);
		err = control_write(&c->control, bytes, sizeof(bytes), f);
	}
	for (unsigned i = 0; i < c->hello.plan.qps && !err; i++) {
		struct talk_qp remote;
		err = control_read(&c->control, bytes, sizeof(bytes), CONTROL_TIMEOUT_MS, f);
		if (!err && talk_get_qp(bytes, &remote))
			err = fail(f, -EPROTO, "it sent something else than its queue pairs");
		if (!err)
			err = perf_end_connect(&c->end, i, &remote, peer, c->hello.rd_atomic, f);
	}
	return err;
}

/* The near end learns why, if it still listens. */
static void send_failure(struct client *c, const char *text)
{
	struct talk_report r = {.text = ""};
	uint8_t bytes[TALK_REPORT_BYTES];
	struct failure ignored;

	set_text(r.text, text);
	talk_put_report(bytes, &r);
	control_write(&c->control, bytes, sizeof(bytes), &ignored);
}

static int greet(struct client *c)
{
	uint8_t bytes[TALK_REPORT_BYTES];
	struct talk_report good = {.text = ""};
	struct failure f;
	int err = control_read(&c->control, c->bytes + c->len, TALK_HELLO_BYTES - c->len, HELLO_MS, &f);

	if (err) {
		report(c, PERF_FAR_REFUSED, f.text);
		return err;
	}
	err = talk_get_hello(c->bytes, &c->hello);
	if (err)
		return refuse(c, err == -EPROTONOSUPPORT ? "is of another version: use the same one at both ends"
							 : "did not understand the request");
	err = open_end(c);
	if (err)
		return err;
	err = connect_qps(c, &f);
	if (!err) {
		talk_put_report(bytes, &good);
		err = control_write(&c->control, bytes, sizeof(bytes), &f);
	}
	if (err) {
		send_failure(c, f.text);
		report(c, PERF_FAR_PROBLEM, f.text);
	}
	return err;
}

/* ---- measuring ---- */

/* Serves orders until the near end closes the connection: 0. Negative, with *f. */
static int serve(struct client *c, struct failure *f)
{
	const struct perf_far_options *o = &c->far->options;
	struct run run = {.end = &c->end,
			  .control = &c->control,
			  .device = ibv_get_device_name(c->end.port.verbs->device),
			  .counters = o->counters};

	for (;;) {
		uint8_t bytes[TALK_ORDER_BYTES];
		int err = control_read(&c->control, bytes, sizeof(bytes), IDLE_MS, f);
		if (err == -ECONNRESET)
			return 0;
		if (!err && talk_get_order(bytes, c->hello.plan.size_max, &run.order))
			err = fail(f, -EPROTO, "it ordered something that cannot be measured");
		run.others = others(c);
		if (!err)
			err = run_far(&run, f);
		if (err)
			return err;
	}
}

static void *client_thread(void *argument)
{
	struct client *c = argument;
	struct failure f = {.text = ""};

	if (!greet(c)) {
		report(c, PERF_FAR_CONNECTED, NULL);
		if (serve(c, &f)) {
			send_failure(c, f.text);
			report(c, PERF_FAR_PROBLEM, f.text);
		}
		report(c, PERF_FAR_DISCONNECTED, NULL);
	}
	perf_end_close(&c->end);
	close(c->control.fd);
	pthread_mutex_lock(&c->far->lock);
	c->ended = true;
	pthread_mutex_unlock(&c->far->lock);
	return NULL;
}

/* ---- clients ---- */

struct perf_far *perf_far_create(const struct perf_far_options *options)
{
	struct perf_far *far = calloc(1, sizeof(*far));

	if (!far)
		return NULL;
	far->options = *options;
	far->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&far->lock, NULL);
	return far;
}

void perf_far_destroy(struct perf_far *far)
{
	uint64_t one = 1;
	ssize_t n = write(far->end_fd, &one, sizeof(one));

	(void)n; /* it is readable already */
	for (unsigned i = 0; i < PERF_FAR_CLIENTS; i++) {
		if (far->clients[i].used)
			pthread_join(far->clients[i].thread, NULL);
	}
	pthread_mutex_destroy(&far->lock);
	close(far->end_fd);
	free(far);
}

/* A free place, or NULL. Joins a thread that has ended. Only perf_far_adopt()'s thread uses it. */
static struct client *find_place(struct perf_far *far)
{
	for (unsigned i = 0; i < PERF_FAR_CLIENTS; i++) {
		struct client *c = &far->clients[i];
		bool ended;
		if (!c->used)
			return c;
		pthread_mutex_lock(&far->lock);
		ended = c->ended;
		pthread_mutex_unlock(&far->lock);
		if (!ended)
			continue;
		pthread_join(c->thread, NULL);
		pthread_mutex_lock(&far->lock);
		c->used = false;
		pthread_mutex_unlock(&far->lock);
		return c;
	}
	return NULL;
}

static void send_away(struct perf_far *far, int fd, unsigned number, const char *address, const char *text)
{
	struct client c = {.far = far, .number = number, .control = {.fd = fd, .end_fd = -1, .address = address}};

	snprintf(c.address, sizeof(c.address), "%s", address);
	refuse(&c, text);
	close(fd);
}

void perf_far_adopt(struct perf_far *far, int fd, unsigned number, const char *address, const void *bytes, size_t len)
{
	struct client *c = find_place(far);

	if (!c) {
		send_away(far, fd, number, address,
			  "measures for as many clients as it takes at once; try again later");
		return;
	}
	pthread_mutex_lock(&far->lock);
	*c = (struct client){.far = far, .number = number, .used = true, .len = len};
	pthread_mutex_unlock(&far->lock);
	snprintf(c->address, sizeof(c->address), "%s", address);
	c->control = (struct perf_control){.fd = fd, .end_fd = far->end_fd, .heeds_stop = true, .address = c->address};
	memcpy(c->bytes, bytes, len);
	if (!pthread_create(&c->thread, NULL, client_thread, c))
		return;
	pthread_mutex_lock(&far->lock);
	c->used = false;
	pthread_mutex_unlock(&far->lock);
	send_away(far, fd, number, address, "cannot start a thread");
}
