/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "device/fault.h"

/* A link that keeps the bytes of what it is sent, and delivers them. */
#define KEPT 1024
struct loop {
	struct roci_link link;
	struct roci_arrival from;
	unsigned count;
	struct {
		uint8_t bytes[256];
		unsigned len;
	} kept[KEPT];
};

static unsigned loop_max_run(struct roci_link *link, const struct roci_av *av)
{
	return ROCI_LINK_MAX_RUN;
}

static void loop_send(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	struct loop *l = (struct loop *)link;

	for (unsigned i = 0; i < count; i++) {
		uint8_t *at = l->kept[l->count].bytes;

		memcpy(at, frames[i].header, frames[i].header_len);
		at += frames[i].header_len;
		for (unsigned k = 0; k < frames[i].span_count; k++) {
			memcpy(at, frames[i].spans[k].base, frames[i].spans[k].len);
			at += frames[i].spans[k].len;
		}
		memcpy(at, frames[i].trailer, frames[i].trailer_len);
		l->kept[l->count++].len = frames[i].len;
		roci_av_flow(frames[i].av, &l->from.flow);
	}
}

static unsigned loop_recv(struct roci_link *link, struct roci_datagram *out)
{
	struct loop *l = (struct loop *)link;

	for (unsigned i = 0; i < l->count; i++)
		out[i] = (struct roci_datagram){.bytes = l->kept[i].bytes, .len = l->kept[i].len, .from = &l->from};
	return l->count;
}

static void loop_close(struct roci_link *link)
{
}

static const struct roci_link_ops loop_ops = {loop_max_run, loop_send, loop_recv, loop_close};

static struct roci_datagram in[ROCI_LINK_RECV_BATCH];
static struct outgoing out;
static struct station nowhere;
static struct roci_device_stats stats;

struct outcome {
	unsigned count, bad, backwards, repeated;
	uint32_t psns[KEPT];
};

static void judge(struct roci_link *link, struct outcome *o)
{
	struct roci_packet packet;
	bool seen[KEPT] = {false};

	memset(o, 0, sizeof(*o));
	o->count = roci_link_recv(link, in);
	for (unsigned i = 0; i < o->count; i++) {
		bool bad =
			roci_packet_parse(&packet, in[i].bytes, in[i].len) != ROCI_PARSE_OK || !icrc_is_right(&in[i]);

		o->bad += bad;
		o->psns[i] = bad ? KEPT : packet.psn;
		if (bad)
			continue;
		o->repeated += seen[packet.psn];
		o->backwards += i && o->psns[i - 1] != KEPT && packet.psn < o->psns[i - 1];
		seen[packet.psn] = true;
	}
}

/* Sends 640 packets through a fault link to the loop, and judges what is there. */
static void send_through(const char *plan_text, struct outcome *o)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	struct roci_fault_plan plan;
	struct roci_link *link, *seal;
	char why[160];

	memset(&stats, 0, sizeof(stats));
	loop->link.ops = &loop_ops;
	assert_int_equal(roci_fault_parse(plan_text, &plan, why, sizeof(why)), 0);
	assert_int_equal(roci_seal_open(&loop->link, &seal), 0);
	assert_int_equal(roci_fault_open(seal, &plan, &stats, NULL, &link), 0);
	for (unsigned i = 0; i < 10; i++) {
		outgoing_start(&out, &nowhere, "127.77.0.2");
		for (unsigned k = 0; k < ROCI_LINK_SEND_BATCH; k++)
			outgoing_add(&out, 0x12345, i * ROCI_LINK_SEND_BATCH + k, k);
		outgoing_send(&out, link);
	}
	judge(&loop->link, o);
	roci_link_close(link);
	free(loop);
}

/* Receives 640 packets through a fault link. */
static void receive_through(const char *plan_text, struct outcome *o)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	struct roci_fault_plan plan;
	struct roci_link *link, *seal;
	char why[160];

	memset(&stats, 0, sizeof(stats));
	loop->link.ops = &loop_ops;
	assert_int_equal(roci_fault_parse(plan_text, &plan, why, sizeof(why)), 0);
	assert_int_equal(roci_seal_open(&loop->link, &seal), 0);
	assert_int_equal(roci_fault_open(seal, &plan, &stats, NULL, &link), 0);
	for (unsigned i = 0; i < 10; i++) {
		outgoing_start(&out, &nowhere, "127.77.0.2");
		for (unsigned k = 0; k < ROCI_LINK_SEND_BATCH; k++)
			outgoing_add(&out, 0x12345, i * ROCI_LINK_SEND_BATCH + k, k);
		outgoing_send(&out, seal);
	}
	judge(link, o);
	roci_link_close(link);
	free(loop);
}

static void (*const ways[])(const char *, struct outcome *) = {send_through, receive_through};

static void nothing_asked_nothing_done(void **state)
{
	struct outcome o;

	for (unsigned w = 0; w < 2; w++) {
		ways[w]("", &o);
		assert_int_equal(o.count, 640);
		assert_int_equal(o.bad + o.backwards + o.repeated, 0);
	}
}

static void each_fault_does_its_own(void **state)
{
	struct outcome o;

	for (unsigned w = 0; w < 2; w++) {
		ways[w]("loss=0.25,seed=3", &o);
		assert_in_range(o.count, 430, 530);
		assert_int_equal(o.bad + o.backwards + o.repeated, 0);
		ways[w]("dup=0.25,seed=3", &o);
		assert_in_range(o.count, 750, 850);
		assert_int_equal(o.count, 640 + o.repeated);
		assert_int_equal(o.bad, 0);
		ways[w]("reorder=0.25,seed=3", &o);
		assert_int_equal(o.count, 640);
		assert_int_equal(o.bad + o.repeated, 0);
		assert_in_range(o.backwards, 80, 200);
		ways[w]("corrupt=0.25,seed=3", &o);
		assert_int_equal(o.count, 640);
		assert_in_range(o.bad, 110, 210);
		assert_int_equal(o.backwards + o.repeated, 0);
	}
	send_through("loss=1", &o);
	assert_int_equal(o.count, 0);
}

static void a_seed_replays(void **state)
{
	static struct outcome a, b, c;

	for (unsigned w = 0; w < 2; w++) {
		ways[w]("loss=0.1,dup=0.1,reorder=0.1,corrupt=0.1,seed=42", &a);
		ways[w]("loss=0.1,dup=0.1,reorder=0.1,corrupt=0.1,seed=42", &b);
		ways[w]("loss=0.1,dup=0.1,reorder=0.1,corrupt=0.1,seed=43", &c);
		assert_memory_equal(&a, &b, sizeof(a));
		assert_memory_not_equal(&a, &c, sizeof(a));
	}
}

static void plans_are_read_or_refused(void **state)
{
	static const char *const bad[] = {"loss",
					  "loss=",
					  "loss=x",
					  "loss=1.5",
					  "loss=-1",
					  "los=0.1",
					  "loss=0.1;dup=0.1",
					  "seed=",
					  "seed=-1",
					  "seed= 1",
					  "seed=18446744073709551616",
					  "loss=nan",
					  "=1",
					  "delay=20",
					  "delay=ms",
					  "delay=-1ms",
					  "delay=11s",
					  "jitter=1m",
					  "delay=1msx",
					  "delay=nans"};
	struct roci_fault_plan plan;
	char why[160];

	assert_int_equal(roci_fault_parse("loss=0.5,seed=9,corrupt=1", &plan, why, sizeof(why)), 0);
	assert_true(plan.loss == 0.5 && plan.corrupt == 1 && plan.dup == 0 && plan.seed == 9);
	assert_int_equal(roci_fault_parse("delay=1.5ms,loss=0.5,jitter=200us", &plan, why, sizeof(why)), 0);
	assert_true(plan.delay_ns == 1500000 && plan.jitter_ns == 200000 && plan.loss == 0.5);
	assert_int_equal(roci_fault_parse("delay=10s,jitter=0s", &plan, why, sizeof(why)), 0);
	assert_true(plan.delay_ns == 10000000000 && plan.jitter_ns == 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(roci_fault_parse(bad[i], &plan, why, sizeof(why)), -EINVAL);
	roci_fault_parse("dup=0.1,los=0.2,seed=1", &plan, why, sizeof(why));
	assert_string_equal(why,
			    "\"los=0.2\": its name is not one of loss, dup, reorder, corrupt, delay, jitter, seed");
	roci_fault_parse("delay=20,seed=1", &plan, why, sizeof(why));
	assert_string_equal(why, "\"delay=20\": a time is a number with us, ms or s, at most 10s, like delay=20ms");
	roci_fault_parse("loss=2,seed=1", &plan, why, sizeof(why));
	assert_string_equal(why, "\"loss=2\": a probability is a number from 0 to 1, like loss=0.01");
}

/* Corruption is where the counter may differ: damage that the ICRC does not show is undone. */
static void what_is_done_is_counted(void **state)
{
	struct outcome o;

	send_through("loss=0.25,seed=3", &o);
	assert_int_equal(stats.fault_send_lost, 640 - o.count);
	receive_through("loss=0.25,seed=3", &o);
	assert_int_equal(stats.fault_receive_lost, 640 - o.count);
	send_through("dup=0.25,seed=3", &o);
	assert_int_equal(stats.fault_send_duplicated, o.repeated);
	receive_through("dup=0.25,seed=3", &o);
	assert_int_equal(stats.fault_receive_duplicated, o.repeated);
	send_through("corrupt=0.25,seed=3", &o);
	assert_int_equal(stats.fault_send_corrupted, o.bad);
	receive_through("corrupt=0.25,seed=3", &o);
	assert_int_equal(stats.fault_receive_corrupted, o.bad);
	send_through("reorder=0.25,seed=3", &o);
	assert_in_range(stats.fault_send_reordered, o.backwards, 200);
	receive_through("reorder=0.25,seed=3", &o);
	assert_in_range(stats.fault_receive_reordered, o.backwards, 200);
	assert_int_equal(stats.fault_send_reordered + stats.fault_receive_lost, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_asked_nothing_done),
		cmocka_unit_test(each_fault_does_its_own),
		cmocka_unit_test(a_seed_replays),
		cmocka_unit_test(what_is_done_is_counted),
		cmocka_unit_test(plans_are_read_or_refused),
	};

	gid_of("127.77.0.1", nowhere.gids.entries[0].gid);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
