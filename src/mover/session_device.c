/* SPDX-License-Identifier: BSD-2-Clause */
/* A session's objects on the RDMA device. */
#include <errno.h>
#include <fcntl.h>

#include "mover/session.h"

static int open_queues(struct session *s)
{
	struct session_device *dev = &s->dev;
	unsigned lanes = s->common->qps ? s->common->qps : MOVER_MAX_QPS;
	unsigned entries;

	dev->pd = ibv_alloc_pd(dev->verbs);
	if (!dev->pd)
		return errno ? -errno : -ENOMEM;
	dev->comp = ibv_create_comp_channel(dev->verbs);
	if (!dev->comp)
		return errno ? -errno : -ENOMEM;
	fcntl(dev->comp->fd, F_SETFL, fcntl(dev->comp->fd, F_GETFL) | O_NONBLOCK);
	dev->cq_count = s->common->cqs ? s->common->cqs : 1;
	if (dev->cq_count > lanes)
		dev->cq_count = lanes;
	/* each CQ has room for everything at once: windows, short messages and control messages */
	entries = 3 * PROTO_MAX_WINDOWS + 4 * MOVER_MAX_QPS + 4 * PROTO_CREDITS;
	for (unsigned i = 0; i < dev->cq_count; i++) {
		dev->cqs[i] = ibv_create_cq(dev->verbs, (int)entries, NULL, dev->comp, 0);
		if (!dev->cqs[i])
			return errno ? -errno : -ENOMEM;
	}
	return 0;
}

bool session_open_device(struct session *s)
{
	struct connection_size size = control_connection_size();
	int err;

	s->dev.verbs = s->control.conn.id->verbs;
	s->dev.iwarp = connection_is_iwarp(s->control.conn.id);
	s->dev.rxe = connection_is_rxe(s->dev.verbs->device);
	err = open_queues(s);
	if (!err)
		err = control_create(&s->control, s->dev.pd);
	if (!err)
		err = connection_create_qp(&s->control.conn, s->dev.pd, s->dev.cqs[0], &size);
	if (!err)
		err = control_start(&s->control);
	if (err)
		session_fail_errno(s, err,
				   err == -ENOMEM ? "setting up the RDMA device (is `ulimit -l` too small?)"
						  : "setting up the RDMA device");
	return !err;
}

void session_close_device(struct session *s)
{
	struct session_device *dev = &s->dev;

	connection_destroy(&s->control.conn);
	control_destroy(&s->control);
	for (unsigned i = 0; i < dev->cq_count; i++) {
		if (!dev->cqs[i])
			continue;
		if (dev->cq_events[i])
			ibv_ack_cq_events(dev->cqs[i], dev->cq_events[i]);
		ibv_destroy_cq(dev->cqs[i]);
	}
	if (dev->comp)
		ibv_destroy_comp_channel(dev->comp);
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	*dev = (struct session_device){0};
}
