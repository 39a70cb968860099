/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop of a session whose completion queue is made up here: how it ends, and what it says. */
#include "../test.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "mover/clock.h"
#include "mover/session.h"
#include "mover/wr_id.h"

static struct {
	struct ibv_context verbs;
	struct ibv_cq cq;
	struct rdma_event_channel channel; /* without events */
	struct mover_common common;
	struct events events;
	struct session s;
	struct ibv_wc completions[4];
	unsigned count;
} it;

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	int n = (int)it.count;

	assert_true(n <= room);
	memcpy(wc, it.completions, it.count * sizeof(*wc));
	it.count = 0;
	return n;
}

static bool pump(struct session *s)
{
	return false;
}

static unsigned no_fds(struct session *s, struct pollfd *fds)
{
	return 0;
}

static bool never(struct session *s)
{
	return false;
}

static void event(void *context, const struct mover_event *e)
{
}

static int setup(void **state)
{
	static const struct session_role role = {.pump = pump, .poll_fds = no_fds};

	memset(&it, 0, sizeof(it));
	it.channel.fd = -1;
	it.common.poll = true;
	it.verbs.ops.poll_cq = poll_cq;
	it.cq.context = &it.verbs;
	it.s.role = &role;
	it.s.common = &it.common;
	events_init(&it.events, event, NULL);
	it.s.report.events = &it.events;
	it.s.stall_timeout_ms = 60000;
	it.s.dev.cqs[0] = &it.cq;
	it.s.dev.cq_count = 1;
	it.s.control.memory = calloc(1, control_bytes());
	it.s.channel = &it.channel;
	assert_non_null(it.s.control.memory);
	return 0;
}

static int teardown(void **state)
{
	events_destroy(&it.events);
	free(it.s.control.memory);
	return 0;
}

static void completes(enum ibv_wc_status status, uint64_t wr_id, size_t len)
{
	it.completions[it.count++] = (struct ibv_wc){.wr_id = wr_id, .status = status, .byte_len = (uint32_t)len};
}

/* The peer stops before the handshake has ended: its ERROR is not sealed. */
static void error_comes(enum mover_status status)
{
	struct cursor_out payload, head = cursor_out(it.s.control.memory, PROTO_HEADER_BYTES);
	struct proto_end end = {.status = status};

	payload = cursor_out(it.s.control.memory + PROTO_HEADER_BYTES, PROTO_PAYLOAD_BYTES);
	proto_put_end(&payload, &end);
	proto_put_header(&head, PROTO_ERROR, false, (uint32_t)cursor_written(&payload));
	completes(IBV_WC_SUCCESS, wr_id_make(WR_CONTROL_RECV, 0, 0), PROTO_HEADER_BYTES + cursor_written(&payload));
}

static void ends(enum mover_status status, const char *text)
{
	assert_true(session_wait(&it.s, never, 0) == SESSION_FAILED);
	assert_true(it.s.status == status);
	assert_string_equal(it.s.text, text);
}

static void a_connection_that_ends_is_lost(void **state)
{
	completes(IBV_WC_WR_FLUSH_ERR, wr_id_make(WR_CONTROL_RECV, 0, 0), 0);
	ends(MOVER_LOST, "the connection was closed by the other side");
}

static void a_peer_that_gave_up_and_went_has_said_why(void **state)
{
	error_comes(MOVER_INTERRUPTED);
	completes(IBV_WC_WR_FLUSH_ERR, wr_id_make(WR_CONTROL_RECV, 0, 1), 0);
	ends(MOVER_INTERRUPTED, "the other side gave up: interrupted");
}

/* An acknowledgement is missed before what the peer sent is read. */
static void it_has_said_why_if_it_answers_no_more(void **state)
{
	completes(IBV_WC_RETRY_EXC_ERR, wr_id_make(WR_CONTROL_SEND, 0, PROTO_CREDITS), 0);
	error_comes(MOVER_INTERRUPTED);
	ends(MOVER_INTERRUPTED, "the other side gave up: interrupted");
}

static void it_has_said_why_if_its_messages_are_held(void **state)
{
	it.s.holding = true;
	error_comes(MOVER_INTERRUPTED);
	completes(IBV_WC_WR_FLUSH_ERR, wr_id_make(WR_CONTROL_RECV, 0, 1), 0);
	ends(MOVER_INTERRUPTED, "the other side gave up: interrupted");
	assert_true(!it.s.holding && !it.s.held_count);
}

static void a_silent_peer_is_lost_after_its_time(void **state)
{
	it.s.control.conn.state = CONNECTION_UP;
	it.s.stall_timeout_ms = 1500;
	it.s.received_ns = mover_now_ns() - 1500000001;
	ends(MOVER_LOST, "nothing received from the other side for 1.5 seconds");
}

static int notify(struct ibv_cq *cq, int solicited_only)
{
	return 0;
}

static bool has_slept(struct session *s)
{
	return s->way.slept_ns > 0;
}

static void its_sleep_is_counted(void **state)
{
	it.common.poll = false;
	it.verbs.ops.req_notify_cq = notify;
	assert_int_equal(session_wait(&it.s, has_slept, 10000), SESSION_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_connection_that_ends_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(a_peer_that_gave_up_and_went_has_said_why, setup, teardown),
		cmocka_unit_test_setup_teardown(it_has_said_why_if_it_answers_no_more, setup, teardown),
		cmocka_unit_test_setup_teardown(it_has_said_why_if_its_messages_are_held, setup, teardown),
		cmocka_unit_test_setup_teardown(a_silent_peer_is_lost_after_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(its_sleep_is_counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
