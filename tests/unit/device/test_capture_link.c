/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <pcap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/capture.h"
#include "device/pcapng.h"
#include "icrc_difference.h"
#include "wire/packet.h"

#define PACKETS 20

static struct roci_datagram in[ROCI_LINK_RECV_BATCH];
static struct outgoing out;

static void send_some(struct station *s, const char *address, unsigned first, unsigned end)
{
	outgoing_start(&out, s, address);
	for (unsigned i = first; i < end; i++)
		outgoing_add(&out, qpn_of(s, s->registry.slot, 0), i, 100 + i / 5);
	outgoing_send(&out, s->link);
	while (first < end)
		first += station_wait(s, in);
}

/* Sends PACKETS from `address` to itself through a capture into `path`. */
static void run(const char *address, const char *path)
{
	struct station s;

	station_open_captured(&s, address, path);
	assert_int_equal(roci_udp_listen(s.udp, 0), 0);
	send_some(&s, address, 0, 1); /* afterwards packets go in runs */
	send_some(&s, address, 1, PACKETS);
	assert_true(s.stats.sent_messages < PACKETS);
	station_close(&s);
}

/* Reads the file with libpcap: every packet twice, out and in, with headers that agree with its ICRC exactly. */
static void check(const char *path, unsigned packets, bool ipv4)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline(path, error);
	struct pcap_pkthdr *info;
	const u_char *bytes;
	unsigned n = 0;

	assert_non_null(file);
	assert_int_equal(pcap_datalink(file), DLT_RAW);
	while (pcap_next_ex(file, &info, &bytes) == 1) {
		struct roci_flow flow = {.src_port = ROCI_UDP_PORT, .dst_port = ROCI_UDP_PORT};
		unsigned ip_len = ipv4 ? 20 : 40, id = 0;

		assert_int_equal(info->caplen, info->len);
		assert_int_equal(bytes[0] >> 4, ipv4 ? 4 : 6);
		gid_of("127.0.0.0", flow.src);
		gid_of("127.0.0.0", flow.dst);
		memcpy(flow.src + (ipv4 ? 12 : 0), bytes + (ipv4 ? 12 : 8), ipv4 ? 4 : 16);
		memcpy(flow.dst + (ipv4 ? 12 : 0), bytes + (ipv4 ? 16 : 24), ipv4 ? 4 : 16);
		if (ipv4)
			id = (unsigned)(bytes[4] << 8 | bytes[5]);
		assert_int_equal(bytes[ip_len + 2] << 8 | bytes[ip_len + 3], ROCI_UDP_PORT);
		assert_int_equal(bytes[ip_len + 4] << 8 | bytes[ip_len + 5], info->len - ip_len);
		assert_int_equal(icrc_difference(&flow, (uint16_t)id, bytes + ip_len + 8, info->len - ip_len - 8), 0);
		n++;
	}
	assert_int_equal(n, packets);
	pcap_close(file);
}

static void libpcap_reads_it(void **state)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/v4.pcapng", getenv("ROCI_RUNDIR"));
	run("127.77.0.7", path);
	check(path, 2 * PACKETS, true);
	/* As a second process would. */
	run("127.77.0.8", path);
	check(path, 4 * PACKETS, true);
}

static void ipv6_too(void **state)
{
	char path[256];
	struct station s;
	int rc;

	station_open(&s, "::1");
	rc = roci_udp_listen(s.udp, 0);
	station_close(&s);
	if (rc)
		skip();
	snprintf(path, sizeof(path), "%s/v6.pcapng", getenv("ROCI_RUNDIR"));
	run("::1", path);
	check(path, 2 * PACKETS, false);
}

static void the_process_id_can_be_in_the_name(void **state)
{
	char path[256], expected[256];
	struct roci_link *link;
	struct station s;

	snprintf(path, sizeof(path), "%s/a-%%p.pcapng", getenv("ROCI_RUNDIR"));
	snprintf(expected, sizeof(expected), "%s/a-%d.pcapng", getenv("ROCI_RUNDIR"), getpid());
	station_open(&s, "127.77.0.7");
	assert_int_equal(roci_capture_open(s.link, "/nonexistent/file", &link), -ENOENT);
	assert_int_equal(roci_capture_open(s.link, "/proc/self/exe", &link), -ETXTBSY);
	station_close(&s);
	station_open_captured(&s, "127.77.0.7", path);
	station_close(&s);
	check(expected, 0, true);
}

static rlim_t limit_files(rlim_t bytes)
{
	struct rlimit limit;
	rlim_t before;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	return before;
}

static off_t size_of(const char *path)
{
	struct stat info;

	assert_int_equal(stat(path, &info), 0);
	return info.st_size;
}

/* A write that is cut short, as a full disk does, or refused, as beyond the limit for files, leaves whole packets only,
 * to which others may append. The network does not suffer, and no signal ends the program (SIGXFSZ). */
static void a_full_disk_leaves_a_good_file(void **state)
{
	rlim_t unlimited;
	char path[256];
	off_t before;

	snprintf(path, sizeof(path), "%s/full.pcapng", getenv("ROCI_RUNDIR"));
	run("127.77.0.7", path);
	before = size_of(path);
	for (unsigned more = 0; more <= 100; more += 100) {
		unlimited = limit_files((rlim_t)before + more);
		run("127.77.0.7", path);
		limit_files(unlimited);
		assert_int_equal(size_of(path), before);
	}
	run("127.77.0.7", path);
	check(path, 4 * PACKETS, true);
}

static void a_head_that_does_not_fit_is_none(void **state)
{
	struct roci_link *link;
	struct station s;
	char path[256];

	snprintf(path, sizeof(path), "%s/head.pcapng", getenv("ROCI_RUNDIR"));
	station_open(&s, "127.77.0.7");
	for (rlim_t bytes = 0; bytes <= 20; bytes += 20) {
		rlim_t unlimited = limit_files(bytes);

		assert_int_equal(roci_capture_open(s.link, path, &link), -EFBIG);
		limit_files(unlimited);
	}
	station_close(&s);
	assert_int_equal(size_of(path), 0);
	run("127.77.0.7", path);
	check(path, 2 * PACKETS, true);
}

/* A SIGXFSZ that the program has blocked, and not taken yet, stays. */
static void a_signal_of_the_program_stays(void **state)
{
	sigset_t one, before, pending;
	rlim_t unlimited;
	char path[256];

	snprintf(path, sizeof(path), "%s/signal.pcapng", getenv("ROCI_RUNDIR"));
	run("127.77.0.7", path);
	sigemptyset(&one);
	sigaddset(&one, SIGXFSZ);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &one, &before), 0);
	for (unsigned own = 0; own <= 1; own++) {
		if (own)
			raise(SIGXFSZ);
		unlimited = limit_files((rlim_t)size_of(path));
		run("127.77.0.7", path);
		limit_files(unlimited);
		assert_int_equal(sigpending(&pending), 0);
		assert_int_equal(sigismember(&pending, SIGXFSZ), own);
	}
	assert_int_equal(sigtimedwait(&one, NULL, &(struct timespec){0}), SIGXFSZ);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

/* ---- what went by the local path ---- */

#define LARGE 100000

static void make_up(struct roci_link *link, const struct roci_av *av, bool outbound, uint32_t len, bool has_payload)
{
	const struct roci_packet pkt = {
		.opcode = ROCI_TRANSPORT_RC | ROCI_OP_SEND_ONLY, .dest_qpn = 7, .payload_len = len};
	struct roci_span payload = {"hello", len};
	uint8_t header[ROCI_MAX_HEADER_BYTES];
	const struct roci_local_sight seen = {.av = av,
					      .header = header,
					      .header_len = roci_packet_build(&pkt, header),
					      .spans = &payload,
					      .span_count = has_payload,
					      .payload_len = len,
					      .outbound = outbound};

	roci_capture_local(link, &seen);
}

static void check_made_up(const char *path)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline(path, error);
	struct pcap_pkthdr *info;
	const u_char *bytes;

	assert_non_null(file);
	for (unsigned i = 0; i < 2; i++) { /* one left, one came: all of it is here, and intact */
		struct roci_flow flow = {.src_port = ROCI_UDP_PORT, .dst_port = ROCI_UDP_PORT};

		assert_int_equal(pcap_next_ex(file, &info, &bytes), 1);
		gid_of(i ? "127.77.0.9" : "127.77.0.8", flow.src);
		gid_of(i ? "127.77.0.8" : "127.77.0.9", flow.dst);
		assert_memory_equal(bytes + 12, flow.src + 12, 4);
		assert_memory_equal(bytes + 16, flow.dst + 12, 4);
		assert_int_equal(info->caplen, 20 + 8 + 12 + 8 + 4);
		assert_int_equal(info->len, info->caplen);
		assert_memory_equal(bytes + 40, "hello", 5);
		assert_int_equal(icrc_difference(&flow, 0, bytes + 28, info->len - 28), 0);
	}
	/* Copied from memory to memory: the length is told, and no length field of IP has room for it. */
	assert_int_equal(pcap_next_ex(file, &info, &bytes), 1);
	assert_int_equal(info->caplen, 20 + 8 + 12);
	assert_int_equal(info->len, 20 + 8 + 12 + LARGE + 4);
	assert_int_equal(bytes[2] << 8 | bytes[3], 0);
	assert_int_equal(pcap_next_ex(file, &info, &bytes), PCAP_ERROR_BREAK);
	pcap_close(file);
}

static unsigned count_comments(const char *path)
{
	static char bytes[4096];
	FILE *file = fopen(path, "r");
	size_t len = fread(bytes, 1, sizeof(bytes), file);
	unsigned n = 0;

	for (const char *at = bytes;
	     (at = memmem(at, len - (size_t)(at - bytes), ROCI_PCAPNG_MADE_UP, strlen(ROCI_PCAPNG_MADE_UP))); at++)
		n++;
	fclose(file);
	return n;
}

/* Packets that were not sent, as they would have been; and each says so. */
static void what_went_by_the_local_path_is_made_up(void **state)
{
	struct roci_av av = {.src_port = ROCI_UDP_PORT};
	struct roci_link *link;
	struct station s;
	char path[256];

	gid_of("127.77.0.8", av.sgid);
	gid_of("127.77.0.9", av.dgid);
	snprintf(path, sizeof(path), "%s/local.pcapng", getenv("ROCI_RUNDIR"));
	station_open(&s, "127.77.0.8");
	assert_int_equal(roci_capture_open(s.link, path, &link), 0);
	s.link = link;
	make_up(link, &av, true, 5, true);
	make_up(link, &av, false, 5, true);
	make_up(link, &av, true, LARGE, false);
	station_close(&s);
	check_made_up(path);
	assert_int_equal(count_comments(path), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libpcap_reads_it),
		cmocka_unit_test(ipv6_too),
		cmocka_unit_test(the_process_id_can_be_in_the_name),
		cmocka_unit_test(a_full_disk_leaves_a_good_file),
		cmocka_unit_test(a_head_that_does_not_fit_is_none),
		cmocka_unit_test(a_signal_of_the_program_stays),
		cmocka_unit_test(what_went_by_the_local_path_is_made_up),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
