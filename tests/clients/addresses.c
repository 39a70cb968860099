/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that lives while addresses come and go.
 *
 *     addresses watch                                prints the table, and again after each event of the port
 *     addresses ask                                  prints the table, and again for each line of standard input
 *     addresses late -a ADDRESS                      fetches no event until the address is there, then counts them
 *     addresses serve -a ADDRESS -p PORT [-w]        server of `send`; -w: waits for the address first
 *     addresses send -a ADDRESS -p PORT SERVER       sends without end, and prints its count of messages now and then
 *
 * `watch` prints a line for each GID of the table, "gid INDEX ADDRESS", as verbs say and as the sysfs file says, then a
 * line "port STATE MTU". The port PORT is of TCP, at SERVER; an RC connection follows between the GIDs of the two
 * ADDRESSes.
 */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h> /* IWYU pragma: keep (getopt) */

#define DEPTH         16u
#define EVERY         1000u /* messages between two lines */
#define MESSAGE_BYTES 3000u
#define GIDS_MAX      64

static struct endpoint ep;

/* ---- the table ---- */

static void read_file(int index, char text[64])
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gids/%d", ibv_get_device_name(ep.ctx->device),
		 index);
	f = fopen(path, "r");
	if (!f || !fgets(text, 64, f))
		die("%s: %s", path, strerror(errno));
	fclose(f);
	text[strcspn(text, "\n")] = 0;
}

/* The table may change between the two: then both are read again. */
static void print_gid(int index)
{
	char text[INET6_ADDRSTRLEN], file[64] = "";
	union ibv_gid gid, in_file, again;

	need(!ibv_query_gid(ep.ctx, 1, index, &again), "ibv_query_gid");
	do {
		gid = again;
		read_file(index, file);
		need(!ibv_query_gid(ep.ctx, 1, index, &again), "ibv_query_gid");
	} while (memcmp(&gid, &again, sizeof(gid)));
	inet_ntop(AF_INET6, &gid, text, sizeof(text));
	if (inet_pton(AF_INET6, file, &in_file) != 1 || memcmp(&in_file, &gid, sizeof(gid)))
		die("the sysfs file of GID %d, %s, says %s", index, text, file);
	if (strcmp(text, "::"))
		printf("gid %d %s\n", index, text);
}

static void print_table(void)
{
	struct ibv_port_attr port;

	errno = ibv_query_port(ep.ctx, 1, &port);
	need(!errno, "ibv_query_port");
	for (int i = 0; i < port.gid_tbl_len; i++)
		print_gid(i);
	printf("port %s %d\n", ibv_port_state_str(port.state), 128 << port.active_mtu);
	fflush(stdout);
}

static void watch(void)
{
	struct ibv_async_event event;

	print_table();
	for (;;) {
		need(!ibv_get_async_event(ep.ctx, &event), "ibv_get_async_event");
		printf("event %s, port %d\n", ibv_event_type_str(event.event_type), event.element.port_num);
		ibv_ack_async_event(&event);
		print_table();
	}
}

static void ask(void)
{
	char line[16];

	do
		print_table();
	while (fgets(line, sizeof(line), stdin));
}

/* ---- a connection ---- */

static int find(const union ibv_gid *wanted)
{
	struct ibv_gid_entry table[GIDS_MAX];
	ssize_t n = ibv_query_gid_table(ep.ctx, table, GIDS_MAX, 0);

	for (ssize_t i = 0; i < n; i++)
		if (!memcmp(&table[i].gid, wanted, sizeof(*wanted)))
			return (int)table[i].gid_index;
	return -1;
}

/* Waits for the address to be in the table. */
static void use(const char *address, bool wait, bool by_events)
{
	struct ibv_async_event event;
	union ibv_gid gid;
	char text[64];

	snprintf(text, sizeof(text), strchr(address, ':') ? "%s" : "::ffff:%s", address);
	if (inet_pton(AF_INET6, text, &gid) != 1)
		die("%s is no address", address);
	if (wait) {
		if (find(&gid) >= 0)
			die("%s is there already", address);
		puts("waiting");
		fflush(stdout);
	}
	while ((ep.gid_index = find(&gid)) < 0) {
		if (!wait)
			die("no GID %s", address);
		if (!by_events) {
			usleep(1000);
			continue;
		}
		need(!ibv_get_async_event(ep.ctx, &event), "ibv_get_async_event");
		ibv_ack_async_event(&event);
	}
	ep.gid = gid;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* The first look at sysfs since the address is in the table. */
static void check_file(void)
{
	char name[32], text[64] = "";
	union ibv_gid in_file;

	snprintf(name, sizeof(name), "ports/1/gids/%d", ep.gid_index);
	if (ibv_read_sysfs_file(ep.ctx->device->ibdev_path, name, text, sizeof(text)) < 0)
		die("%s: %s", name, strerror(errno));
	if (inet_pton(AF_INET6, text, &in_file) != 1 || memcmp(&in_file, &ep.gid, sizeof(in_file)))
		die("%s says %s", name, text);
	print_gid(ep.gid_index);
}

static void count_late(void)
{
	struct ibv_async_event event;
	unsigned n = 0;

	need(!fcntl(ep.ctx->async_fd, F_SETFL, O_NONBLOCK), "fcntl");
	while (!ibv_get_async_event(ep.ctx, &event)) {
		ibv_ack_async_event(&event);
		n++;
	}
	printf("%u events\n", n);
}

static struct ibv_mr *mr;
static uint8_t memory[DEPTH * MESSAGE_BYTES];

static void post(struct ibv_qp *qp, uint64_t wr_id, bool server)
{
	post_message(qp, mr, memory + wr_id % DEPTH * MESSAGE_BYTES, MESSAGE_BYTES, wr_id, server);
}

/* Keeps DEPTH requests posted, without end. */
static void stream(struct ibv_qp *qp, struct ibv_cq *cq, bool server, int fd)
{
	struct ibv_wc wc;

	for (uint64_t i = 0; i < DEPTH; i++)
		post(qp, i, server);
	tcp_swap(fd, NULL, NULL, 0);
	for (uint64_t next = DEPTH;; next++) {
		cq_expect(cq, &wc, next - DEPTH);
		if (next % EVERY == 0) {
			printf("%llu\n", (unsigned long long)next);
			fflush(stdout);
		}
		post(qp, next, server);
	}
}

static void connect_and_stream(const char *address, bool wait, const char *port, const char *server_name)
{
	const struct retries retries = {.timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	struct address mine = {.psn = qp_random_psn()}, peer;
	bool server = !server_name;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int fd;

	use(address, wait, true);
	mr = ibv_reg_mr(ep.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	cq = ibv_create_cq(ep.ctx, DEPTH, NULL, NULL, 0);
	need(cq != NULL, "ibv_create_cq");
	qp = qp_make(&ep, IBV_QPT_RC, cq, NULL, DEPTH, 1);
	mine.gid = ep.gid;
	mine.mtu = ep.mtu_bytes;
	mine.qpn = qp->qp_num;
	fd = server ? tcp_serve(port) : tcp_connect(server_name, port);
	tcp_swap(fd, &mine, &peer, sizeof(mine));
	qp_connect(&ep, qp, mine.psn, &peer, &retries);
	stream(qp, cq, server, fd);
}

int main(int argc, char **argv)
{
	const char *address = NULL, *port = "18515", *what = argc > 1 ? argv[1] : "";
	bool wait = false;

	optind = 2;
	for (int option; (option = getopt(argc, argv, "a:p:w")) != -1;) {
		switch (option) {
		case 'a': address = optarg; break;
		case 'p': port = optarg; break;
		case 'w': wait = true; break;
		default: die("usage: addresses watch | ask | late | serve | send; -a ADDRESS -p PORT -w SERVER");
		}
	}
	endpoint_open(&ep, 0);
	if (!strcmp(what, "watch"))
		watch();
	if (!strcmp(what, "ask")) {
		ask();
		return 0;
	}
	need(address, "-a");
	if (!strcmp(what, "late")) {
		use(address, true, false);
		check_file();
		count_late();
		return 0;
	}
	connect_and_stream(address, wait, port, strcmp(what, "send") ? NULL : argv[optind]);
	return 0;
}
