/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An rsocket and a hostile peer, led by a script of bytes. A stream's peer knows all keys that the socket told it: it
 * writes to the lists of targets and mappings and to the receive buffer, sends any immediate data, completes or fails
 * what the socket sent, rejects, disconnects, and asks for a connection with any private data. Datagrams come over UDP
 * and by the UD QP with any bytes. Meanwhile the program sends, receives, peeks, maps, writes, polls and shuts down.
 *
 * fake_verbs.c stands in for the device: it asserts that queues do not overflow and that memory is registered.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_rsocket [iterations [seed]].
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/device.h"
#include "fake_verbs.h"
#include "rsocket/rsocket.h"
#include "script.h"
#include "seeded.h"

#define MAX_IO 9000

static struct {
	uint64_t now;
	int fd;
	struct rdma_cm_id *id;     /* of the connection; NULL: none has been asked for */
	struct rs_conn_data told;  /* what the socket told the peer, */
	bool knows;                /* if it did */
	bool gone;                 /* the peer has disconnected */
	bool waits;                /* the program is in a call that waits for the peer */
	uint8_t *mapped;           /* riomap() */
	int udp;                   /* the peer's socket */
	struct sockaddr_in to, me; /* the rsocket's address, and that of `udp` */
} world;

/* What was seen in all runs, to see that the fuzzer gets far enough. */
static unsigned long connected, sent_bytes, received_bytes, failed, datagrams;

/* The clock of rsockets: a call that waits goes on for as long as something happens. */
uint64_t roci_now(void)
{
	return world.now += 1000;
}

/* ---- the peer of a stream ---- */

static struct rs_sge told_targets(void)
{
	return (struct rs_sge){be64toh(world.told.target_sgl.addr), be32toh(world.told.target_sgl.key),
			       be32toh(world.told.target_sgl.length)};
}

static struct rs_sge told_buffer(void)
{
	return (struct rs_sge){be64toh(world.told.data_buf.addr), be32toh(world.told.data_buf.key),
			       be32toh(world.told.data_buf.length)};
}

static struct rs_sge any_sge(void)
{
	return (struct rs_sge){ONE_OF(0, 4096, 1 << 30, UINT64_MAX), 1,
			       (uint32_t)ONE_OF(0, 1, 100, 2048, 65536, 1 << 20, UINT32_MAX)};
}

static bool has_qp(void)
{
	return fake_newest_qp() && !world.gone;
}

static bool message(uint32_t imm)
{
	return has_qp() && fake_receive(fake_newest_qp(), NULL, 0, true, imm);
}

static bool send_data(void)
{
	struct rs_sge to = told_buffer();
	uint8_t bytes[64];
	uint32_t len = (uint32_t)ONE_OF(0, 1, 2, 64, 700, 2048, 4096, 1 << 20, 0x1fffffff);

	script_fill(bytes, 8);
	memset(bytes + 8, 7, sizeof(bytes) - 8);
	if (world.knows)
		fake_write(to.key, to.addr + below(4200), bytes, below(sizeof(bytes) + 1));
	return message(rs_msg(RS_OP_DATA, len));
}

static void write_target(void)
{
	struct rs_sge list = told_targets(), entry = any_sge();

	if (world.knows)
		fake_write(list.key, list.addr + below(3) * sizeof(entry), &entry, sizeof(entry));
}

static void write_map(void)
{
	struct rs_sge list = told_targets();
	struct rs_iomap map = {.offset = ONE_OF(0, 100, 4096, UINT64_MAX - 10), .sge = any_sge()};

	if (world.knows)
		fake_write(list.key, list.addr + (uint64_t)list.length * sizeof(struct rs_sge) + below(5) * sizeof(map),
			   &map, sizeof(map));
}

static bool complete(enum ibv_wc_status status)
{
	size_t n = 1 + below(8);
	bool any = false;

	while (has_qp() && n--)
		any |= fake_complete(fake_newest_qp(), status);
	return any;
}

static bool disconnect(void)
{
	if (!world.id || world.gone)
		return false;
	world.gone = true;
	fake_event(world.id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	return true;
}

/* True: there is something for the program to see. */
static bool peer_step(void)
{
	switch (below(16)) {
	case 0: return message((uint32_t)below(UINT32_MAX));
	case 1: write_map(); return false;
	case 2:
	case 3:
	case 4: write_target(); return false;
	case 5: return one_in(8) && disconnect();
	case 6: return one_in(8) && complete(IBV_WC_RETRY_EXC_ERR);
	case 7: return message(rs_msg(RS_OP_CTRL, (uint32_t)below(4)));
	case 8: return message(rs_msg(RS_OP_SGL, (uint32_t)below(65536)));
	case 9:
	case 10:
	case 11:
	case 12: return complete(IBV_WC_SUCCESS);
	default: return send_data();
	}
}

bool fake_peer_turn(void)
{
	while (world.waits && !script_ended())
		if (peer_step())
			return true;
	if (world.waits)
		disconnect();
	return false;
}

void fake_posted(struct fake_qp *qp, const struct fake_send *send)
{
	if (qp->qp.qp_type == IBV_QPT_RC)
		CHECK(send->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM || send->wr.opcode == IBV_WR_RDMA_WRITE);
}

void fake_called(struct rdma_cm_id *id, enum fake_call call, const struct rdma_conn_param *param)
{
	if (call == FAKE_REJECT && id == world.id)
		world.id = NULL;
	if (call != FAKE_CONNECT && call != FAKE_ACCEPT)
		return;
	CHECK(param->private_data_len == sizeof(world.told));
	memcpy(&world.told, param->private_data, sizeof(world.told));
	world.knows = true;
	world.id = id;
}

/* What a peer says of itself: mostly sensible. */
static uint8_t hostile_data(struct rs_conn_data *data)
{
	*data = (struct rs_conn_data){
		.version = RS_VERSION,
		.flags = RS_CONN_FLAG_IOMAP,
		.credits = htobe16((uint16_t)ONE_OF(0, 1, 16, 384, 65535)),
		.iomap_size = (uint8_t)below(256),
		.target_sgl = {htobe64(0x10000), htobe32(1), htobe32((uint32_t)ONE_OF(1, 2, 2, 3, UINT32_MAX, 0))},
		.data_buf = {htobe64(0x20000), htobe32(1), htobe32((uint32_t)ONE_OF(0, 1, 2048, 65536, UINT32_MAX))},
	};
	if (one_in(8))
		script_fill(data, sizeof(*data));
	return one_in(16) ? (uint8_t)below(sizeof(*data)) : sizeof(*data);
}

/* ---- the program ---- */

static void program_sends(void)
{
	size_t len = below(MAX_IO);
	uint8_t *bytes = calloc(1, len + 1);
	ssize_t n;

	CHECK(bytes);
	n = rsend(world.fd, bytes, len, 0);
	CHECK(n <= (ssize_t)len);
	sent_bytes += n > 0 ? (unsigned long)n : 0;
	free(bytes);
}

static void program_receives(int flags)
{
	size_t len = below(MAX_IO);
	uint8_t *bytes = malloc(len ? len : 1); /* exact, for a sanitizer to see an overrun */
	struct iovec iov[2] = {{bytes, len / 3}, {bytes + len / 3, len - len / 3}};
	ssize_t n;

	CHECK(bytes);
	n = one_in(3) ? rreadv(world.fd, iov, 2) : rrecv(world.fd, bytes, len, flags);
	CHECK(n <= (ssize_t)len);
	received_bytes += n > 0 ? (unsigned long)n : 0;
	free(bytes);
}

static void program_maps(void)
{
	if (world.mapped) {
		riounmap(world.fd, world.mapped, 512);
		free(world.mapped);
		world.mapped = NULL;
		return;
	}
	world.mapped = calloc(1, 512);
	CHECK(world.mapped);
	world.waits = true;
	if (riomap(world.fd, world.mapped, 512, PROT_WRITE, 0, -1) == -1) {
		free(world.mapped);
		world.mapped = NULL;
	}
	world.waits = false;
}

static void program_waits(int how)
{
	world.waits = true;
	rshutdown(world.fd, how);
	world.waits = false;
}

static void program_step(void)
{
	struct pollfd pfd = {.fd = world.fd, .events = POLLIN | POLLOUT};
	uint8_t bytes[300] = {0};

	switch (below(12)) {
	case 0: program_maps(); break;
	case 1: riowrite(world.fd, bytes, below(sizeof(bytes) + 1), (off_t)ONE_OF(0, 90, 4096, 1 << 20), 0); break;
	case 2:
		if (one_in(8))
			program_waits((int)below(3));
		break;
	case 3: program_receives(MSG_PEEK); break;
	case 4: rpoll(&pfd, 1, 0); break;
	case 5:
	case 6:
	case 7: program_sends(); break;
	default: program_receives(0);
	}
}

static void set(int level, int name, int value)
{
	rsetsockopt(world.fd, level, name, &value, sizeof(value));
}

static void choose_sizes(void)
{
	set(SOL_SOCKET, SO_RCVBUF, (int)ONE_OF(4096, 4096, 5000, 20000));
	set(SOL_SOCKET, SO_SNDBUF, (int)ONE_OF(4096, 4096, 5000, 20000));
	set(SOL_RDMA, RDMA_SQSIZE, (int)ONE_OF(16, 16, 40));
	set(SOL_RDMA, RDMA_RQSIZE, (int)ONE_OF(16, 16, 40));
	set(SOL_RDMA, RDMA_IOMAPSIZE, (int)ONE_OF(0, 1, 8));
}

static void open_active(void)
{
	struct rs_conn_data data;
	uint8_t len;

	rconnect(world.fd, (struct sockaddr *)&world.to, sizeof(world.to));
	if (!world.id)
		return;
	len = hostile_data(&data);
	if (one_in(16))
		fake_event(world.id,
			   (enum rdma_cm_event_type)ONE_OF(RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_UNREACHABLE,
							   RDMA_CM_EVENT_CONNECT_ERROR),
			   -ETIMEDOUT, &data, len);
	else
		fake_event(world.id, RDMA_CM_EVENT_ESTABLISHED, 0, &data, len);
}

/* Returns the listening socket; world.fd is that of a connection, or none. */
static int open_passive(void)
{
	int listener = world.fd;
	struct rs_conn_data data;
	uint8_t len;

	CHECK(!rlisten(listener, 4));
	len = hostile_data(&data);
	world.id = fake_request(rs_table_find(listener)->id, &data, len);
	world.fd = raccept(listener, NULL, NULL);
	if (world.fd < 0)
		world.id = NULL; /* it was rejected, and is gone */
	else
		rfcntl(world.fd, F_SETFL, O_NONBLOCK);
	return listener;
}

static void shut(int fd)
{
	world.waits = true;
	CHECK(!rclose(fd));
	world.waits = false;
}

static void stream(void)
{
	int listener = -1;

	world.fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(world.fd >= 0);
	choose_sizes();
	if (one_in(2))
		open_active();
	else
		listener = open_passive();
	connected += world.knows;
	while (world.fd >= 0 && !script_ended())
		if (one_in(2))
			program_step();
		else
			peer_step();
	failed += world.fd >= 0 && rs_table_find(world.fd)->state == RS_ERROR;
	if (world.fd >= 0)
		shut(world.fd);
	if (listener >= 0)
		shut(listener);
	free(world.mapped);
}

/* ---- datagrams ---- */

static int open_udp(struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	*name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)name, sizeof(*name)));
	CHECK(!getsockname(fd, (struct sockaddr *)name, &len));
	return fd;
}

/* A message over UDP: a header of rsockets' own, mostly, then anything. */
static void peer_sends_udp(void)
{
	uint8_t bytes[80] = {0x55, 0x55, 0x55, 0x55, 4, (uint8_t)ONE_OF(7, 8, below(256)), 16};
	size_t len = 16 + below(64);

	script_fill(bytes + 8, 16);
	if (one_in(4))
		script_fill(bytes, 8);
	sendto(world.udp, bytes, one_in(8) ? below(len) : len, 0, (struct sockaddr *)&world.to, sizeof(world.to));
}

static void peer_sends_ud(void)
{
	uint8_t bytes[40 + 80] = {[40] = 4, 8};
	size_t len = 48 + below(72);

	script_fill(bytes + 42, 16);
	if (one_in(4))
		script_fill(bytes + 40, 2);
	if (has_qp())
		fake_receive(fake_newest_qp(), bytes, one_in(8) ? below(len) : len, false, 0);
}

static void datagram_step(void)
{
	struct sockaddr_in to = one_in(2) ? world.me : world.to;
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);
	uint8_t bytes[600] = {0};
	ssize_t n;

	switch (below(8)) {
	case 0:
	case 1: peer_sends_udp(); break;
	case 2:
	case 3: peer_sends_ud(); break;
	case 4: complete(IBV_WC_SUCCESS); break;
	case 5: to.sin_port = htons((uint16_t)(30000 + below(400))); /* fall through */
	case 6: rsendto(world.fd, bytes, below(sizeof(bytes)), 0, (struct sockaddr *)&to, sizeof(to)); break;
	default:
		n = rrecvfrom(world.fd, bytes, sizeof(bytes), one_in(4) ? MSG_PEEK : 0, (struct sockaddr *)&from,
			      &from_len);
		datagrams += n >= 0;
		CHECK(n <= (ssize_t)sizeof(bytes));
	}
}

static void datagram(void)
{
	socklen_t len = sizeof(world.to);

	world.fd = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	CHECK(world.fd >= 0 && !rbind(world.fd, (struct sockaddr *)&world.to, len));
	CHECK(!rgetsockname(world.fd, (struct sockaddr *)&world.to, &len));
	world.udp = open_udp(&world.me);
	while (!script_ended())
		datagram_step();
	CHECK(!rclose(world.fd));
	close(world.udp);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	int before = free_descriptor();

	memset(&world, 0, sizeof(world));
	script_begin(bytes, len);
	world.to = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (one_in(4))
		datagram();
	else
		stream();
	CHECK(!fake_objects());
	CHECK(free_descriptor() == before); /* none is left */
	return 0;
}

#ifndef ROCI_LIBFUZZER

int main(int argc, char **argv)
{
	unsigned long runs = seeded_scripts(argc, argv, 2000, 2000);

	printf("%lu connections, %lu of them failed; %lu bytes sent, %lu received; %lu datagrams\n", connected, failed,
	       sent_bytes, received_bytes, datagrams);
	CHECK(runs < 1000 || (connected && failed && sent_bytes && received_bytes && datagrams));
	return 0;
}

#endif
