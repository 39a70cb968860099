/* SPDX-License-Identifier: BSD-2-Clause */
/* What `roci ping` prints, beside the steps and the table. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "explain_say.h"
#include "json_line.h"
#include "ping.h"
#include "wire/gid.h"
#include "wire/plural.h"

#define TIME_CHARS 24

/* "85.3 us", "1.25 ms". */
static const char *print_time(char buf[TIME_CHARS], uint64_t ns)
{
	double us = (double)ns / 1e3;

	if (us < 1000)
		snprintf(buf, TIME_CHARS, "%.1f us", us);
	else if (us < 1e6)
		snprintf(buf, TIME_CHARS, "%.2f ms", us / 1e3);
	else
		snprintf(buf, TIME_CHARS, "%.2f s", us / 1e6);
	return buf;
}

static json_t *plan_json(const char *event, const struct tour_plan *plan)
{
	json_t *object = json_line(event);

	json_object_set_new(object, "op", json_string(tour_op_names[plan->op]));
	json_object_set_new(object, "qp", json_string(tour_qp_names[plan->qp]));
	json_object_set_new(object, "connect", json_string(tour_way_names[plan->way]));
	json_object_set_new(object, "wait", json_string(tour_wait_names[plan->wait]));
	json_object_set_new(object, "bytes", json_integer(plan->size));
	return object;
}

static void print_device(const char *before, const char *name, const char *reason)
{
	printf("%s%s", before, name);
	if (reason)
		printf(" (embedded%s%s)", *reason ? ": " : "", reason);
}

/* One end, as bare verbs need to know it. */
static json_t *end_json(const uint8_t gid[16], unsigned gid_type, unsigned mtu, struct tour_network network)
{
	static const char *const types[TOUR_GID_TYPES] = {"unknown", "InfiniBand", "RoCE v1", "RoCE v2"};
	json_t *end = json_object();
	char text[INET6_ADDRSTRLEN];

	if (roci_gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid + ROCI_GID_IPV4_AT, text, sizeof(text));
	else
		inet_ntop(AF_INET6, gid, text, sizeof(text));
	json_object_set_new(end, "gid", json_string(text));
	json_object_set_new(end, "gid_type", json_string(types[gid_type]));
	json_object_set_new(end, "prefix", json_integer(network.prefix));
	json_object_set_new(end, "port_mtu", json_integer(device_mtu_bytes(mtu)));
	json_object_set_new(end, "network_mtu", json_integer(device_mtu_bytes(network.mtu)));
	return end;
}

void ping_show_start(const struct ping *ping, const struct tour_plan *plan, const struct dial *dial)
{
	static const char *const types[] = {"RC", "UC", "UD"}, *const ways[] = {"rdma_cm", "a TCP socket"};

	if (ping->choices->json) {
		json_t *object = plan_json("start", plan);
		json_object_set_new(object, "address", json_string(dial->address));
		json_object_set_new(object, "device", json_string(dial->device));
		json_object_set_new(object, "embedded", json_boolean(ping->device.embedded));
		json_object_set_new(object, "far_device", json_string(dial->offer.device));
		json_object_set_new(object, "far_embedded", json_boolean(dial->offer.embedded));
		if (plan->way == TOUR_SOCKET) {
			const struct tour_network far = {dial->offer.prefix, dial->offer.network_mtu};

			json_object_set_new(object, "near_end",
					    end_json(dial->port.gid.raw, dial->port.gid_type, dial->port.mtu,
						     device_network(&dial->port.gid)));
			json_object_set_new(object, "far_end",
					    end_json(dial->offer.gid, dial->offer.gid_type, dial->offer.mtu, far));
		}
		json_line_print(object, stdout);
		return;
	}
	if (ping->choices->quiet)
		return;
	printf("PING %s: %s of %u byte%s on %s, connected by %s\n", dial->address, tour_op_title(plan->op), plan->size,
	       roci_plural(plan->size), types[plan->qp], ways[plan->way]);
	print_device("from device ", dial->device, ping->device.embedded ? ping->device.reason : NULL);
	print_device(" to device ", dial->offer.device, dial->offer.embedded ? "" : NULL);
	putchar('\n');
	fflush(stdout);
}

void ping_put_failure(json_t *object, const struct failure *failure)
{
	json_object_set_new(object, "text", json_string(failure->text));
	explain_say_json(object, explain_of_failure(failure));
	if (failure->completed)
		json_object_set_new(object, "wc_status", json_integer(failure->status));
	else if (failure->err)
		json_object_set_new(object, "errno", json_integer(-failure->err));
}

void ping_show_operation(const struct ping *ping, const struct tour_plan *plan, uint32_t seq,
			 const struct near_result *result)
{
	char time[TIME_CHARS];

	if (ping->choices->json) {
		json_t *object = plan_json("operation", plan);
		json_object_set_new(object, "seq", json_integer(seq));
		json_object_set_new(object, "good", json_boolean(result->good));
		if (result->good)
			json_object_set_new(object, "ns", json_integer((json_int_t)result->ns));
		else
			ping_put_failure(object, &result->failure);
		json_line_print(object, stdout);
	} else if (!result->good) {
		printf("%s: seq=%u failed: %s\n", tour_op_names[plan->op], seq, result->failure.text);
		explain_say(stdout, explain_of_failure(&result->failure));
	} else if (!ping->choices->quiet) {
		printf("%u byte%s: %s seq=%u time=%s\n", plan->size, roci_plural(plan->size), tour_op_names[plan->op],
		       seq, print_time(time, result->ns));
	}
	fflush(stdout);
}

void ping_show_summary(const struct ping *ping, const struct summary *summary)
{
	struct summary_times t = summary_times(summary);
	char min[TIME_CHARS], median[TIME_CHARS], p99[TIME_CHARS], max[TIME_CHARS];

	if (ping->choices->json) {
		json_t *object = json_line("summary");
		json_object_set_new(object, "operations", json_integer((json_int_t)summary->tried));
		json_object_set_new(object, "failed", json_integer((json_int_t)summary->failed));
		json_object_set_new(object, "min_ns", json_integer((json_int_t)t.min_ns));
		json_object_set_new(object, "median_ns", json_integer((json_int_t)t.median_ns));
		json_object_set_new(object, "p99_ns", json_integer((json_int_t)t.p99_ns));
		json_object_set_new(object, "max_ns", json_integer((json_int_t)t.max_ns));
		json_line_print(object, stdout);
		return;
	}
	/* an empty line after what is printed of operations; steps end with one, but a failure does not */
	if (!ping->choices->quiet && (!ping->choices->steps || summary->failed))
		putchar('\n');
	printf("%llu operation%s, %llu failed\n", (unsigned long long)summary->tried, roci_plural(summary->tried),
	       (unsigned long long)summary->failed);
	if (summary->tried > summary->failed)
		printf("min %s, median %s, p99 %s, max %s\n", print_time(min, t.min_ns),
		       print_time(median, t.median_ns), print_time(p99, t.p99_ns), print_time(max, t.max_ns));
}

void ping_show_failure(const struct ping *ping, const struct failure *failure)
{
	if (ping->choices->json) {
		json_t *object = json_line("failure");
		ping_put_failure(object, failure);
		json_line_print(object, stdout);
	}
	complain(ping->command, "%s", failure->text);
	explain_say(stderr, explain_of_failure(failure));
}
