/* SPDX-License-Identifier: BSD-2-Clause */
/* What `roci perf` prints for people. */
#include <stdio.h>
#include <string.h>

#include "explain_say.h"
#include "perf.h"
#include "stats_find.h"
#include "units.h"
#include "wire/plural.h"

const char *perf_print_time(char buf[UNITS_CHARS], uint64_t ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = (double)ns;
	unsigned unit = 0;

	while (value >= 999.5 && unit < 3) {
		value /= 1000;
		unit++;
	}
	snprintf(buf, UNITS_CHARS, "%.*f %s", !unit || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, units[unit]);
	return buf;
}

/* "241 k/s". */
static const char *print_count_rate(char buf[UNITS_CHARS], double per_s)
{
	const char *unit = per_s >= 999.5e3 ? " M/s" : per_s >= 999.5 ? " k/s" : " /s";
	double value = per_s >= 999.5e3 ? per_s / 1e6 : per_s >= 999.5 ? per_s / 1e3 : per_s;

	snprintf(buf, UNITS_CHARS, "%.*f%s", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, unit);
	return buf;
}

const char *perf_print_size(char buf[UNITS_CHARS], uint32_t size)
{
	if (size >= 1u << 20 && size % (1u << 20) == 0)
		snprintf(buf, UNITS_CHARS, "%u MiB", size >> 20);
	else if (size >= 1u << 10 && size % (1u << 10) == 0)
		snprintf(buf, UNITS_CHARS, "%u KiB", size >> 10);
	else
		snprintf(buf, UNITS_CHARS, "%u B", size);
	return buf;
}

/* ---- start ---- */

static void print_device(const char *before, const char *name, bool embedded, const char *reason)
{
	printf("%s%s", before, name);
	if (embedded)
		printf(" (embedded%s%s)", *reason ? ": " : "", reason);
}

bool perf_has_no_packets(const struct perf *perf)
{
	return perf->device.embedded && stats_own_local_path();
}

const char *perf_print_packets(char buf[PERF_PACKETS_CHARS], const struct perf *perf)
{
	if (perf_has_no_packets(perf))
		snprintf(buf, PERF_PACKETS_CHARS, "over shared memory: no packets");
	else
		snprintf(buf, PERF_PACKETS_CHARS, "packets of %u bytes", perf_mtu(perf));
	return buf;
}

void perf_show_start(struct perf *perf)
{
	const struct perf_plan *p = &perf->plan;
	const struct perf_near *n = &perf->near;
	char packets[PERF_PACKETS_CHARS];

	if (perf->choices->json) {
		perf_json_start(perf);
		return;
	}
	if (perf->choices->quiet)
		return;
	printf("PERF %s: %s, %u queue pair%s, %u completion queue%s, %u deep%s%s\n", n->address, tour_op_title(p->op),
	       p->qps, roci_plural(p->qps), p->cqs, roci_plural(p->cqs), p->depth, p->bidir ? ", both directions" : "",
	       p->events ? ", events" : "");
	print_device("from device ", n->end.port.verbs->device->name, perf->device.embedded, perf->device.reason);
	print_device(" to device ", n->offer.device, n->offer.embedded, "");
	printf(", %s\n", perf_print_packets(packets, perf));
	fflush(stdout);
}

/* ---- tables ---- */

static bool is_tcp(enum perf_phase phase)
{
	return phase == PERF_TCP_BANDWIDTH || phase == PERF_TCP_LATENCY;
}

static void print_heading(struct perf *perf, bool latency)
{
	bool *printed = &perf->heading[latency ? PERF_LATENCY : PERF_BANDWIDTH];

	if (*printed)
		return;
	*printed = true;
	if (latency)
		printf("\nlatency: %s\n%10s %9s %9s %9s %9s %9s %9s %9s\n", perf_latency_text(perf), "size", "min",
		       "median", "90 %", "99 %", "99.9 %", "99.99 %", "max");
	else
		printf("\nbandwidth%s%*s\n%10s %13s %12s %12s %11s%s\n",
		       perf->plan.bidir ? ", sum of both directions" : "", perf->plan.bidir ? 27 : 50,
		       "CPU seconds per GB", "size", "bandwidth", "messages", "here", "there",
		       perf->choices->tcp ? "   compared" : "");
}

static void print_bandwidth(const struct perf *perf, const struct perf_row *row)
{
	const struct perf_row *tcp = is_tcp(row->order.phase) ? NULL : perf_other(perf, row, PERF_TCP_BANDWIDTH);
	char size[UNITS_CHARS], bits[UNITS_CHARS], messages[UNITS_CHARS];
	double bandwidth = perf_bandwidth(perf, row);

	printf("%10s %13s %12s %12.3g %11.3g", perf_print_size(size, row->order.size), units_bits(bits, bandwidth),
	       print_count_rate(messages, bandwidth / row->order.size), perf_cpu_per_gb(row, &row->result.near),
	       perf_cpu_per_gb(row, &row->result.far));
	if (is_tcp(row->order.phase))
		printf("   TCP");
	else if (tcp)
		printf("   %.3g x TCP", bandwidth / perf_bandwidth(perf, tcp));
	putchar('\n');
}

static void print_latency(const struct perf *perf, const struct perf_row *row)
{
	static const double percents[] = {50, 90, 99, 99.9, 99.99};
	const struct perf_row *tcp = is_tcp(row->order.phase) ? NULL : perf_other(perf, row, PERF_TCP_LATENCY);
	const struct hdr *h = &row->result.latency;
	char size[UNITS_CHARS], time[UNITS_CHARS];

	printf("%10s %9s", perf_print_size(size, row->order.size), perf_print_time(time, h->min));
	for (unsigned i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		printf(" %9s", perf_print_time(time, hdr_percentile(h, percents[i])));
	printf(" %9s", perf_print_time(time, h->max));
	if (is_tcp(row->order.phase))
		printf("   TCP");
	else if (tcp)
		printf("   median %.3g x TCP",
		       (double)hdr_percentile(h, 50) / (double)hdr_percentile(&tcp->result.latency, 50));
	putchar('\n');
}

void perf_show_row(struct perf *perf, const struct perf_row *row)
{
	bool latency = row->order.phase == PERF_LATENCY || row->order.phase == PERF_TCP_LATENCY;

	if (perf->choices->json) {
		perf_json_row(perf, row);
		return;
	}
	print_heading(perf, latency);
	(latency ? print_latency : print_bandwidth)(perf, row);
	fflush(stdout);
}

void perf_show_progress(struct perf *perf, const struct run_result *so_far, uint64_t elapsed_ns)
{
	uint64_t total_ns = perf->order.time_ms * UINT64_C(1100000);
	double part = elapsed_ns < total_ns ? (double)elapsed_ns / (double)total_ns : 1;
	struct perf_row row = {.order = perf->order, .result = *so_far};
	char size[UNITS_CHARS], figure[UNITS_CHARS] = "", text[160];

	if (perf->choices->json)
		perf_json_progress(perf, so_far, elapsed_ns);
	if (so_far->ns && so_far->latency.counts)
		perf_print_time(figure, hdr_percentile(&so_far->latency, 50));
	else if (so_far->ns)
		units_bits(figure, perf_bandwidth(perf, &row));
	snprintf(text, sizeof(text), "%u of %u  %s of %s%s%s", perf->row_count + 1, perf->rows_planned,
		 perf_phase_names[perf->order.phase], perf_print_size(size, perf->order.size), *figure ? "  " : "",
		 figure);
	bar_draw_text(&perf->bar, (perf->row_count + part) / perf->rows_planned, text);
}

/* ---- warnings and failures ---- */

/* Each kind once; of what is at one end and at the other, both. */
static bool is_new(struct perf *perf, const struct warning *warning)
{
	struct warnings *warned = &perf->warned;

	for (size_t i = 0; i < warned->count; i++) {
		if (!strcmp(warned->list[i].kind, warning->kind))
			return false;
	}
	if (warned->count < WARNINGS_MAX)
		warned->list[warned->count++] = *warning;
	return true;
}

void perf_show_warnings(struct perf *perf, const struct warnings *warnings)
{
	if (perf->choices->json)
		perf_json_warnings(perf, warnings);
	for (size_t i = 0; i < warnings->count; i++) {
		bool fresh = is_new(perf, &warnings->list[i]); /* --plot prints it, too */
		if (fresh && !perf->choices->json && !perf->choices->quiet)
			printf("           ! %s\n", warnings->list[i].text);
	}
	fflush(stdout);
}

void perf_show_failure(struct perf *perf, const struct failure *failure)
{
	complain(perf->command, "%s", failure->text);
	explain_say(stderr, explain_of_failure(failure));
	if (perf->choices->json)
		perf_json_failure(failure);
}
