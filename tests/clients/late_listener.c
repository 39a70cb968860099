/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request that arrives before its listener: rdma_connect() in one process, and later rdma_listen(), in the same or in
 * another process of this host. The request must wait for the listener. On a busy machine the listener may be too late
 * in some attempts, but not in all. Prints each such attempt, and whether any request was answered.
 *
 *     late_listener ADDRESS tcp|udp here|there
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define ATTEMPTS   20
#define TIMEOUT_MS 20000
#define LATE_US    30000 /* the request has normally arrived by then */
#define FIRST_PORT 21000

static uint32_t qpn = 1000; /* not of real QPs; all different, because the connection manager compares them */
static enum rdma_port_space space;
static struct sockaddr_storage address;

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "late_listener[%d]: %s: %s\n", getpid(), what, strerror(errno));
	exit(1);
}

#define MUST(call)                                                                                                     \
	do {                                                                                                           \
		if (call)                                                                                              \
			fail(#call);                                                                                   \
	} while (0)

static struct sockaddr *at_port(unsigned port)
{
	if (address.ss_family == AF_INET)
		((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)port);
	else
		((struct sockaddr_in6 *)&address)->sin6_port = htons((uint16_t)port);
	return (struct sockaddr *)&address;
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	MUST(rdma_create_id(channel, &id, NULL, space));
	return id;
}

/* The type of the next event. */
static enum rdma_cm_event_type next(struct rdma_event_channel *channel, struct rdma_cm_id **id)
{
	struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	enum rdma_cm_event_type kind;

	if (poll(&ready, 1, TIMEOUT_MS) != 1)
		fail("timeout: no event");
	MUST(rdma_get_cm_event(channel, &event));
	kind = event->event;
	if (id)
		*id = event->id;
	rdma_ack_cm_event(event);
	return kind;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted)
{
	enum rdma_cm_event_type kind = next(channel, NULL);

	if (kind != wanted) {
		fprintf(stderr, "late_listener: %s, not %s\n", rdma_event_str(kind), rdma_event_str(wanted));
		exit(1);
	}
}

/* A byte on `in` makes the server prepare, a second one listen. It writes a byte to `out` when it is prepared. */
struct server {
	int in[2], out[2];
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

static void server_prepare(struct server *server, unsigned port)
{
	server->channel = rdma_create_event_channel();
	if (!server->channel)
		fail("channel");
	server->id = new_id(server->channel);
	MUST(rdma_bind_addr(server->id, at_port(port)));
}

static void server_end(struct server *server)
{
	rdma_destroy_id(server->id);
	rdma_destroy_event_channel(server->channel);
}

/* Waits for a byte. False: the other side is gone. */
static bool wait_byte(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

static void send_byte(int fd)
{
	if (write(fd, "", 1) != 1)
		fail("write");
}

/* Accepts requests until the client has ended this attempt. */
static void serve(struct server *server)
{
	for (;;) {
		struct pollfd ready[] = {{.fd = server->channel->fd, .events = POLLIN},
					 {.fd = server->in[0], .events = POLLIN}};
		struct rdma_conn_param param = {.qp_num = ++qpn};
		struct rdma_cm_id *id;

		if (poll(ready, 2, TIMEOUT_MS) < 1)
			fail("timeout of the server");
		if (!ready[0].revents)
			return;
		if (next(server->channel, &id) != RDMA_CM_EVENT_CONNECT_REQUEST)
			continue;
		rdma_accept(id, &param);
		rdma_destroy_id(id); /* the answer has been sent */
	}
}

static void server_main(struct server *server, unsigned port)
{
	for (; wait_byte(server->in[0]); port++) {
		server_prepare(server, port);
		send_byte(server->out[1]);
		wait_byte(server->in[0]);
		MUST(rdma_listen(server->id, 0));
		serve(server);
		server_end(server);
	}
	exit(0);
}

/* Returns the accepted request. NULL: `client` got another answer before. */
static struct rdma_cm_id *listen_here(struct server *server, struct rdma_event_channel *client,
				      struct rdma_conn_param *param)
{
	struct pollfd ready[] = {{.fd = server->channel->fd, .events = POLLIN}, {.fd = client->fd, .events = POLLIN}};
	struct rdma_cm_id *request;

	MUST(rdma_listen(server->id, 0));
	if (poll(ready, 2, TIMEOUT_MS) < 1)
		fail("timeout");
	if (!ready[0].revents || next(server->channel, &request) != RDMA_CM_EVENT_CONNECT_REQUEST)
		return NULL;
	param->qp_num = ++qpn;
	MUST(rdma_accept(request, param));
	return request;
}

/* True: the request was accepted, so it has waited for the listener. */
static bool attempt(struct server *server, bool there, unsigned port)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {.qp_num = ++qpn};
	enum rdma_cm_event_type answer;
	struct rdma_cm_id *id, *request = NULL;
	bool answered;

	if (!channel)
		fail("channel");
	send_byte(server->in[1]);
	if (there)
		wait_byte(server->out[0]);
	else
		server_prepare(server, port);
	id = new_id(channel);
	MUST(rdma_resolve_addr(id, NULL, at_port(port), 1000));
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(rdma_resolve_route(id, 1000));
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	MUST(rdma_connect(id, &param));
	usleep(LATE_US);
	if (there)
		send_byte(server->in[1]);
	else
		request = listen_here(server, channel, &param);
	answer = next(channel, NULL);
	answered = answer == RDMA_CM_EVENT_CONNECT_RESPONSE || answer == RDMA_CM_EVENT_ESTABLISHED;
	if (!answered && answer != RDMA_CM_EVENT_REJECTED && answer != RDMA_CM_EVENT_UNREACHABLE)
		fail(rdma_event_str(answer));
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	if (!there) {
		if (request)
			rdma_destroy_id(request);
		server_end(server);
	}
	return answered;
}

int main(int argc, char **argv)
{
	struct server server;
	bool there, answered = false;
	pid_t child = 0;
	int status;

	if (argc != 4)
		return 2;
	space = strcmp(argv[2], "udp") ? RDMA_PS_TCP : RDMA_PS_UDP;
	there = !strcmp(argv[3], "there");
	if (inet_pton(AF_INET, argv[1], &((struct sockaddr_in *)&address)->sin_addr) == 1)
		address.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, argv[1], &((struct sockaddr_in6 *)&address)->sin6_addr) == 1)
		address.ss_family = AF_INET6;
	else
		return 2;
	MUST(pipe(server.in) || pipe(server.out));
	if (there) {
		child = fork(); /* before a device is open */
		if (!child) {
			qpn += 1000;
			close(server.in[1]);
			server_main(&server, FIRST_PORT);
		}
		close(server.in[0]);
	}
	for (unsigned i = 0; i < ATTEMPTS && !answered; i++) {
		answered = attempt(&server, there, FIRST_PORT + i);
		if (!answered)
			printf("attempt %u was too late\n", i + 1);
	}
	close(server.in[1]);
	if (there && (waitpid(child, &status, 0) != child || status))
		fail("the server");
	puts(answered ? "answered" : "never answered");
	return !answered;
}
