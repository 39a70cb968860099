/* SPDX-License-Identifier: BSD-2-Clause */
/* What `roci perf --json` prints. */
#include <stdlib.h>

#include "json_line.h"
#include "perf.h"
#include "perf/hdr_text.h"
#include "ping.h"

static void put_integer(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

void perf_json_start(const struct perf *perf)
{
	const struct perf_plan *p = &perf->plan;
	const struct perf_near *n = &perf->near;
	json_t *object = json_line("start");

	json_object_set_new(object, "version", json_string(ROCI_VERSION));
	json_object_set_new(object, "op", json_string(tour_op_names[p->op]));
	put_integer(object, "qps", p->qps);
	put_integer(object, "cqs", p->cqs);
	put_integer(object, "depth", p->depth);
	json_object_set_new(object, "bidir", json_boolean(p->bidir));
	json_object_set_new(object, "events", json_boolean(p->events));
	put_integer(object, "time_ms", perf->choices->time_ms);
	put_integer(object, "rate", perf->choices->rate);
	json_object_set_new(object, "address", json_string(n->address));
	json_object_set_new(object, "device", json_string(n->end.port.verbs->device->name));
	json_object_set_new(object, "embedded", json_boolean(perf->device.embedded));
	json_object_set_new(object, "far_device", json_string(n->offer.device));
	json_object_set_new(object, "far_embedded", json_boolean(n->offer.embedded));
	json_object_set_new(object, "same_host", json_boolean(n->same_host));
	put_integer(object, "mtu", perf_mtu(perf));
	json_object_set_new(object, "shared_memory", json_boolean(perf_has_no_packets(perf)));
	json_object_set_new(object, "latency_is", json_string(perf_latency_text(perf)));
	json_line_print(object, stdout);
}

static json_t *of_order(const char *event, const struct perf_order *order)
{
	json_t *object = json_line(event);

	json_object_set_new(object, "phase", json_string(perf_phase_names[order->phase]));
	put_integer(object, "bytes", order->size);
	return object;
}

static void put_latency(json_t *object, const struct run_result *r)
{
	static const struct {
		const char *name;
		double percent;
	} percentiles[] = {{"50", 50}, {"90", 90}, {"99", 99}, {"99.9", 99.9}, {"99.99", 99.99}};
	json_t *values = json_object();
	char *text = hdr_encode(&r->latency);

	put_integer(object, "min_ns", r->latency.min);
	put_integer(object, "max_ns", r->latency.max);
	json_object_set_new(object, "mean_ns", json_real(hdr_mean(&r->latency)));
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++)
		put_integer(values, percentiles[i].name, hdr_percentile(&r->latency, percentiles[i].percent));
	json_object_set_new(object, "percentiles_ns", values);
	json_object_set_new(object, "histogram", text ? json_string(text) : json_null());
	free(text);
}

static json_t *intervals(const struct run_result *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < r->interval_count; i++) {
		const struct run_interval *from = &r->intervals[i];
		json_t *one = json_object();
		put_integer(one, "end_ns", from->end_ns);
		put_integer(one, "messages", from->messages);
		if (r->latency.counts) {
			put_integer(one, "p50_ns", from->p50_ns);
			put_integer(one, "p99_ns", from->p99_ns);
			put_integer(one, "max_ns", from->max_ns);
		}
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *facts(const struct perf_row *row, const struct perf_facts *f)
{
	const struct perf_look *s = &f->spent;
	json_t *object = json_object();

	json_object_set_new(object, "cpu_s", json_real((double)s->cpu_ns / 1e9));
	json_object_set_new(object, "cpu_s_per_gb", json_real(perf_cpu_per_gb(row, f)));
	json_object_set_new(object, "all_cpus_busy_s", json_real((double)s->busy_ns / 1e9));
	json_object_set_new(object, "seconds", json_real((double)s->wall_ns / 1e9));
	put_integer(object, "preempted", s->preempted);
	put_integer(object, "socket_drops", s->udp_overflow);
	put_integer(object, "retransmissions", s->device.retransmissions);
	put_integer(object, "out_of_order", s->device.out_of_order);
	put_integer(object, "rnr_naks", s->device.not_ready);
	return object;
}

json_t *perf_json_result(const struct perf *perf, const struct perf_row *row)
{
	const struct run_result *r = &row->result;
	json_t *object = of_order("result", &row->order);
	double bandwidth = perf_bandwidth(perf, row);

	put_integer(object, "messages", r->messages);
	put_integer(object, "ns", r->ns);
	json_object_set_new(object, "interrupted", json_boolean(r->interrupted));
	if (r->latency.counts) {
		put_latency(object, r);
	} else {
		json_object_set_new(object, "bytes_per_s", json_real(bandwidth));
		json_object_set_new(object, "messages_per_s", json_real(bandwidth / row->order.size));
	}
	json_object_set_new(object, "near", facts(row, &r->near));
	json_object_set_new(object, "far", facts(row, &r->far));
	json_object_set_new(object, "intervals", intervals(r));
	return object;
}

void perf_json_row(const struct perf *perf, const struct perf_row *row)
{
	json_line_print(perf_json_result(perf, row), stdout);
}

void perf_json_progress(const struct perf *perf, const struct run_result *so_far, uint64_t elapsed_ns)
{
	json_t *object = of_order("progress", &perf->order);

	put_integer(object, "elapsed_ns", elapsed_ns);
	put_integer(object, "messages", so_far->messages);
	put_integer(object, "ns", so_far->ns);
	json_line_print(object, stdout);
}

void perf_json_warnings(const struct perf *perf, const struct warnings *warnings)
{
	for (size_t i = 0; i < warnings->count; i++) {
		json_t *object = of_order("warning", &perf->order);
		json_object_set_new(object, "kind", json_string(warnings->list[i].kind));
		json_object_set_new(object, "text", json_string(warnings->list[i].text));
		json_line_print(object, stdout);
	}
}

void perf_json_failure(const struct failure *failure)
{
	json_t *object = json_line("failure");

	ping_put_failure(object, failure);
	json_line_print(object, stdout);
}

void perf_json_end(bool complete)
{
	json_t *object = json_line("end");

	json_object_set_new(object, "complete", json_boolean(complete));
	json_line_print(object, stdout);
}
