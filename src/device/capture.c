/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/pcapng.h"
#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/ip.h"

struct capture {
	struct roci_link link;
	struct roci_trace trace;
	struct roci_link *inner;
	uint32_t pid;
	struct roci_pcapng file;
};

static uint64_t wall_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* What is known of a packet beside its UDP payload. */
struct around {
	struct roci_flow flow;
	uint8_t traffic_class, hop_limit;
	uint16_t ip_id;
	bool made_up;
	uint32_t missing; /* bytes at its end that are not captured */
};

/* IPv6 forbids a checksum of 0. In IPv4, 0 means that there is none, and all RNICs send that. */
static void put_udp6_checksum(const struct around *a, uint8_t *udp, uint32_t udp_len)
{
	uint32_t sum = roci_ip_sum(roci_ip_sum(0, a->flow.src, 16), a->flow.dst, 16) + udp_len + ROCI_IP_PROTO_UDP;
	uint16_t check = roci_ip_sum_end(roci_ip_sum(sum, udp, udp_len));

	check = htons(check ? check : 0xffff);
	memcpy(udp + offsetof(struct udphdr, uh_sum), &check, sizeof(check));
}

/* The length of an IP or UDP header for so many bytes. 0: it has no room for the number (RFC 2675 s.4; the kernel's own
 * captures of large segments are alike). */
static uint16_t header_length(uint64_t bytes)
{
	return bytes > UINT16_MAX ? 0 : (uint16_t)bytes;
}

static void put_ipv4_length(uint8_t *ip, uint64_t bytes)
{
	roci_put_be16(ip + 2, header_length(bytes));
	roci_ipv4_put_checksum(ip);
}

/* Adds a packet whose UDP payload begins with the `pieces` of iov, `len` bytes together. */
static void add(struct capture *c, uint64_t now, unsigned direction, const struct around *a,
		const struct roci_span *iov, unsigned pieces, uint32_t len)
{
	bool ipv4 = roci_gid_is_ipv4(a->flow.src);
	uint32_t udp_len = ROCI_UDP_BYTES + len, ip_len = ipv4 ? ROCI_IPV4_BYTES : ROCI_IPV6_BYTES;
	const uint64_t whole = (uint64_t)udp_len + a->missing;
	const struct roci_pcapng_about about = {.time_ns = now,
						.pid = c->pid,
						.direction = direction,
						.original_len = (uint32_t)(ip_len + whole),
						.made_up = a->made_up};
	const struct roci_ip ip = {.src = a->flow.src,
				   .dst = a->flow.dst,
				   .traffic_class = a->traffic_class,
				   .hop_limit = a->hop_limit,
				   .id = a->ip_id,
				   .udp_len = header_length(whole)};
	struct udphdr head = {.uh_sport = htons(a->flow.src_port),
			      .uh_dport = htons(a->flow.dst_port),
			      .uh_ulen = htons(header_length(whole))};
	uint8_t *udp, *at;

	if (udp_len + ip_len > UINT16_MAX || c->file.fd < 0)
		return;
	at = roci_pcapng_packet(&c->file, &about, ip_len + udp_len);
	udp = at + roci_ip_build(&ip, at);
	if (ipv4)
		put_ipv4_length(at, ip_len + whole);
	memcpy(udp, &head, sizeof(head));
	at = udp + sizeof(head);
	for (unsigned i = 0; i < pieces; i++) {
		memcpy(at, iov[i].base, iov[i].len);
		at += iov[i].len;
	}
	if (!ipv4 && !a->missing)
		put_udp6_checksum(a, udp, udp_len);
}

static void add_frame(struct capture *c, uint64_t now, const struct roci_frame *f)
{
	struct around a = {.traffic_class = f->av->traffic_class, .hop_limit = f->av->hop_limit, .ip_id = f->ip_id};
	struct roci_span pieces[ROCI_MAX_SGE + 8];
	unsigned n = 0;

	if (a.hop_limit <= 1)
		a.hop_limit = 64;
	roci_av_flow(f->av, &a.flow);
	pieces[n++] = (struct roci_span){(void *)f->header, f->header_len};
	for (unsigned i = 0; i < f->span_count && n < sizeof(pieces) / sizeof(pieces[0]) - 1; i++)
		pieces[n++] = f->spans[i];
	pieces[n++] = (struct roci_span){(void *)f->trailer, f->trailer_len};
	add(c, now, ROCI_PCAPNG_OUTBOUND, &a, pieces, n, f->len);
}

/* The identification that makes the ICRC right; 0 where none does. */
static uint16_t find_id(const struct roci_datagram *d)
{
	int id = d->len < ROCI_MIN_PACKET_BYTES ? -1 : roci_icrc_check(&d->from->flow, d->bytes, d->len);

	return id < 0 ? 0 : (uint16_t)id;
}

static unsigned max_run(struct roci_link *link, const struct roci_av *av)
{
	return roci_link_max_run(((struct capture *)link)->inner, av);
}

static void capture_send(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	struct capture *c = (struct capture *)link;
	uint64_t now = count ? wall_clock() : 0;

	for (unsigned i = 0; i < count; i++)
		add_frame(c, now, &frames[i]);
	roci_pcapng_flush(&c->file);
	roci_link_send(c->inner, frames, count);
}

static unsigned capture_recv(struct roci_link *link, struct roci_datagram *out)
{
	struct capture *c = (struct capture *)link;
	unsigned count = roci_link_recv(c->inner, out);
	uint64_t now = count ? wall_clock() : 0;

	for (unsigned i = 0; i < count; i++) {
		struct roci_span all = {out[i].bytes, out[i].len};
		struct around a = {
			.flow = out[i].from->flow,
			.traffic_class = out[i].from->traffic_class,
			.hop_limit = out[i].from->hop_limit,
			.ip_id = find_id(&out[i]),
		};

		add(c, now, ROCI_PCAPNG_INBOUND, &a, &all, 1, out[i].len);
	}
	roci_pcapng_flush(&c->file);
	return count;
}

/* ---- what was no packet ---- */

/* As the seal link would: the pad and the ICRC. Returns their length. */
static unsigned make_trailer(const struct around *a, const struct roci_local_sight *seen, uint8_t trailer[8])
{
	unsigned pad = roci_pad_bytes(seen->payload_len);
	uint32_t crc =
		roci_icrc_begin(&a->flow, a->ip_id, seen->header_len + seen->payload_len + pad + ROCI_ICRC_BYTES);

	crc = roci_icrc_headers(crc, seen->header, seen->header_len);
	for (unsigned i = 0; i < seen->span_count; i++)
		crc = roci_icrc_update(crc, seen->spans[i].base, seen->spans[i].len);
	memset(trailer, 0, pad);
	crc = roci_icrc_update(crc, trailer, pad);
	roci_icrc_store(crc, trailer + pad);
	return pad + ROCI_ICRC_BYTES;
}

void roci_capture_local(struct roci_link *link, const struct roci_local_sight *seen)
{
	struct capture *c = (struct capture *)link;
	struct around a = {.traffic_class = seen->av->traffic_class, .hop_limit = 64, .made_up = true};
	struct roci_span pieces[ROCI_MAX_SGE + 2];
	uint8_t trailer[8];
	unsigned n = 0, trailer_len = roci_pad_bytes(seen->payload_len) + ROCI_ICRC_BYTES;
	uint32_t len = seen->header_len;

	roci_av_flow(seen->av, &a.flow);
	if (!seen->outbound) {
		memcpy(a.flow.src, seen->av->dgid, sizeof(a.flow.src));
		memcpy(a.flow.dst, seen->av->sgid, sizeof(a.flow.dst));
	}
	pieces[n++] = (struct roci_span){(void *)seen->header, seen->header_len};
	if (seen->payload_len && !seen->span_count) {
		a.missing = seen->payload_len + trailer_len;
	} else {
		for (unsigned i = 0; i < seen->span_count; i++)
			pieces[n++] = seen->spans[i];
		pieces[n++] = (struct roci_span){trailer, make_trailer(&a, seen, trailer)};
		len += seen->payload_len + trailer_len;
	}
	add(c, wall_clock(), seen->outbound ? ROCI_PCAPNG_OUTBOUND : ROCI_PCAPNG_INBOUND, &a, pieces, n, len);
}

/* ---- records ---- */

static struct capture *of_trace(struct roci_trace *trace)
{
	return (struct capture *)((char *)trace - offsetof(struct capture, trace));
}

static void add_record(struct roci_trace *trace, struct roci_record *record)
{
	struct capture *c = of_trace(trace);

	if (c->file.fd < 0)
		return;
	record->time_ns = wall_clock();
	record->pid = c->pid;
	roci_pcapng_record(&c->file, record);
}

/* The name as ps shows it. Arguments stay out of the capture: they may be secrets. */
static void add_process(struct capture *c)
{
	struct roci_record record = {.kind = ROCI_RECORD_PROCESS};
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, record.text, sizeof(record.text) - 1);

	if (fd >= 0)
		close(fd);
	if (len > 1)
		record.text[len - 1] = 0; /* a line break */
	else
		snprintf(record.text, sizeof(record.text), "%s", program_invocation_short_name);
	add_record(&c->trace, &record);
}

struct roci_trace *roci_capture_trace(struct roci_link *link)
{
	return &((struct capture *)link)->trace;
}

void roci_capture_cm_event(struct roci_link *link, const struct roci_cm_event *event)
{
	struct capture *c = (struct capture *)link;
	struct roci_record record = {.kind = ROCI_RECORD_CM_EVENT, .opcode = (uint8_t)event->kind};

	record.status = event->status ? (uint32_t)event->status : event->reason ? event->reason : event->sidr_status;
	record.peer = event->peer ? event->peer->qpn : event->sidr_qpn;
	if (event->path) {
		memcpy(record.local_gid, event->path->sgid, sizeof(record.local_gid));
		memcpy(record.remote_gid, event->path->dgid, sizeof(record.remote_gid));
	}
	add_record(&c->trace, &record);
}

void roci_capture_flush(struct roci_link *link)
{
	roci_pcapng_flush(&((struct capture *)link)->file);
}

/* ---- the link ---- */

bool roci_capture_is_read(const struct roci_link *link)
{
	return ((const struct capture *)link)->file.fd >= 0;
}

struct roci_link *roci_capture_unwrap(struct roci_link *link)
{
	struct capture *c = (struct capture *)link;
	struct roci_link *inner = c->inner;

	roci_pcapng_close(&c->file);
	free(c);
	return inner;
}

static void capture_close(struct roci_link *link)
{
	struct capture *c = (struct capture *)link;

	roci_link_close(c->inner);
	roci_pcapng_close(&c->file);
	free(c);
}

void roci_capture_close_in_child(struct roci_link *link)
{
	struct capture *c = (struct capture *)link;

	if (c->file.fd >= 0)
		close(c->file.fd);
	c->file.fd = -1; /* the child's posts to inherited QPs are not recorded */
}

static int open_file(struct roci_pcapng *file, const char *path)
{
	char *name = malloc(PATH_MAX);
	int err = name ? roci_pcapng_name(path, name, PATH_MAX) : -ENOMEM;

	if (!err)
		err = roci_pcapng_open(file, name);
	free(name);
	return err;
}

int roci_capture_open(struct roci_link *inner, const char *path, struct roci_link **out)
{
	static const struct roci_link_ops ops = {
		.max_run = max_run,
		.send = capture_send,
		.recv = capture_recv,
		.close = capture_close,
	};
	struct capture *c = malloc(sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->link.ops = &ops;
	c->trace.record = add_record;
	c->inner = inner;
	c->pid = (uint32_t)getpid();
	err = open_file(&c->file, path);
	if (err) {
		free(c);
		return err;
	}
	add_process(c);
	*out = &c->link;
	return 0;
}
