/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/near.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int take_offer(struct perf_near *n, struct failure *f)
{
	uint8_t bytes[TALK_OFFER_BYTES];
	int err = control_read(&n->control, bytes, 4, CONTROL_TIMEOUT_MS, f);

	if (!err && !memcmp(bytes, "ROT2", 4)) /* its offer to `roci ping` */
		return fail(f, -EPROTONOSUPPORT, "the `roci serve` at %s is older, and cannot measure: update it there",
			    n->address);
	if (err == -ECONNRESET)
		return fail(f, err, "%s closed the connection at once: is that `roci serve`?", n->address);
	if (!err)
		err = control_read(&n->control, bytes + 4, sizeof(bytes) - 4, CONTROL_TIMEOUT_MS, f);
	if (err)
		return err;
	err = talk_get_offer(bytes, &n->offer);
	if (err == -EPROTONOSUPPORT)
		return fail(f, err, "the `roci serve` at %s is of another version: use the same one at both ends",
			    n->address);
	if (err)
		return fail(f, err, "%s sent something else than an offer: is that `roci serve`?", n->address);
	return *n->offer.text ? fail(f, -EREMOTEIO, "%s: %s", n->address, n->offer.text) : 0;
}

static int greet(struct perf_near *n, struct failure *f)
{
	const struct perf_end *e = &n->end;
	uint8_t bytes[TALK_HELLO_BYTES];
	struct talk_hello hello = {
		.plan = e->plan,
		.caps = device_caps(e->port.verbs),
		.host = device_host(),
		.mtu = (uint8_t)e->port.mtu,
		.rd_atomic = (uint8_t)e->rd_atomic,
		.lid = e->port.lid,
	};
	struct tour_refusal refusal = tour_refuse(e->plan.op, TOUR_RC, TOUR_SOCKET, hello.caps, TOUR_CAPS_ALL);
	int err;

	if (refusal.reason)
		return fail(f, -EOPNOTSUPP, "%s %s", e->port.verbs->device->name, refusal.reason);
	memcpy(hello.gid, e->port.gid.raw, sizeof(hello.gid));
	talk_put_hello(bytes, &hello);
	err = control_write(&n->control, bytes, sizeof(bytes), f);
	if (!err)
		err = take_offer(n, f);
	n->same_host = !err && n->offer.host == hello.host;
	return err;
}

/* Tells where the QPs are, learns where the others are, and connects them. */
static int connect_qps(struct perf_near *n, struct failure *f)
{
	struct perf_end *e = &n->end;
	struct endpoint_peer peer = {.lid = n->offer.lid, .mtu = (enum ibv_mtu)n->offer.mtu};
	uint8_t bytes[TALK_REPORT_BYTES];
	struct talk_report report;
	int err = 0;

	memcpy(peer.gid.raw, n->offer.gid, sizeof(peer.gid.raw));
	for (unsigned i = 0; i < e->plan.qps && !err; i++) {
		struct talk_qp own;
		perf_end_describe(e, i, &own);
		talk_put_qp(bytes, &own);
		err = control_write(&n->control, bytes, TALK_QP_BYTES, f);
	}
	for (unsigned i = 0; i < e->plan.qps && !err; i++) {
		struct talk_qp remote;
		err = control_read(&n->control, bytes, TALK_QP_BYTES, CONTROL_TIMEOUT_MS, f);
		if (!err && talk_get_qp(bytes, &remote))
			err = fail(f, -EPROTO, "%s sent something else than its queue pairs", n->address);
		if (!err)
			err = perf_end_connect(e, i, &remote, peer, n->offer.rd_atomic, f);
	}
	if (!err)
		err = control_read(&n->control, bytes, TALK_REPORT_BYTES, CONTROL_TIMEOUT_MS, f);
	if (err)
		return err;
	if (talk_get_report(bytes, &report))
		return fail(f, -EPROTO, "%s sent no report that can be read", n->address);
	return *report.text ? fail(f, -EREMOTEIO, "%s: %s", n->address, report.text) : 0;
}

int perf_near_open(struct perf_near *n, const struct dial_target *target, const struct perf_plan *plan,
		   struct failure *f)
{
	struct dial dial = {.fd = -1};
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	int err;

	*n = (struct perf_near){.control = {.fd = -1, .end_fd = -1, .heeds_stop = true, .address = n->address}};
	err = dial_tcp(&dial, target, f);
	n->control.fd = dial.fd;
	memcpy(n->address, dial.address, sizeof(n->address));
	if (err)
		return err;
	if (getsockname(n->control.fd, (struct sockaddr *)&own, &len))
		return fail_call(f, "getsockname", errno);
	err = perf_end_open(&n->end, plan, target->device, (struct sockaddr *)&own, f);
	if (!err)
		err = greet(n, f);
	return err ? err : connect_qps(n, f);
}

void perf_near_close(struct perf_near *n)
{
	perf_end_close(&n->end);
	if (n->control.fd >= 0)
		close(n->control.fd);
	n->control.fd = -1;
}
