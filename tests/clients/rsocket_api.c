/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Edge cases of rsockets: a peer that breaks the protocol, signals, calls that must not block, and messages of several
 * parts. Both ends are in this process.
 *
 *     rsocket_api ADDRESS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "checks.h"
#include "rsocket_peer.h"

#define TIMEOUT_S 60
#define PORT      7471
#define RECEIVES  32

static unsigned failures;

static struct sockaddr_storage storage;
static struct sockaddr *const address = (struct sockaddr *)&storage;
static socklen_t address_len;

static void set_blocking(int fd, int blocking)
{
	MUST(rfcntl(fd, F_SETFL, blocking ? 0L : (long)O_NONBLOCK));
}

/* Starts to connect. */
static int begin_connect(void)
{
	int fd = rsocket(address->sa_family, SOCK_STREAM, 0);

	MUST(fd < 0);
	set_blocking(fd, 0);
	MUST(rconnect(fd, address, address_len) != -1 || errno != EINPROGRESS);
	return fd;
}

/* Waits until it is connected. The rsocket blocks from then on. */
static void finish_connect(int fd)
{
	struct pollfd writable = {.fd = fd, .events = POLLOUT};

	MUST(rpoll(&writable, 1, -1) != 1 || writable.revents != POLLOUT);
	set_blocking(fd, 1);
}

static int listen_here(void)
{
	int fd = rsocket(address->sa_family, SOCK_STREAM, 0);

	MUST(fd < 0);
	MUST(rbind(fd, address, address_len));
	MUST(rlisten(fd, 1));
	return fd;
}

/* Two connected rsockets. */
static void connect_pair(int ends[2])
{
	int listener = listen_here();

	ends[0] = begin_connect();
	ends[1] = raccept(listener, NULL, NULL);
	MUST(ends[1] < 0);
	finish_connect(ends[0]);
	MUST(rclose(listener));
}

static void close_pair(int ends[2])
{
	MUST(rclose(ends[0]));
	MUST(rclose(ends[1]));
}

/* ---- a peer that is no rsocket ---- */

static int connect_to_peer(struct peer *peer, unsigned receives)
{
	int fd;

	peer_listen(peer, address);
	fd = begin_connect();
	peer_accept(peer, receives);
	finish_connect(fd);
	peer_established(peer);
	return fd;
}

static uint32_t buffer_size(int fd)
{
	int size;

	MUST(rgetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &(socklen_t){sizeof(size)}));
	return (uint32_t)size;
}

/* It announces more data than is possible. */
static void impossible_length(uint32_t len)
{
	static struct peer peer;
	static char into[1 << 20];
	int fd = connect_to_peer(&peer, RECEIVES);

	peer_write(&peer, MSG(OP_DATA, len), NULL, 0);
	FAILS(rrecv(fd, into, sizeof(into), 0), EPROTO);
	FAILS(rrecv(fd, into, sizeof(into), MSG_PEEK), EPROTO);
	MUST(rclose(fd));
	peer_end(&peer);
}

/* It fills the buffer, fills it again after it was read, and then writes one byte too many. */
static void overfull_buffer(void)
{
	static struct peer peer;
	static char into[1 << 20];
	int fd = connect_to_peer(&peer, RECEIVES);
	uint32_t size = buffer_size(fd);

	for (int round = 0; round < 2; round++) {
		peer_write(&peer, MSG(OP_DATA, size - 1), NULL, 0);
		peer_write(&peer, MSG(OP_DATA, 1), NULL, 0);
		CHECK(rrecv(fd, into, 10, 0) == 10);
		CHECK(rrecv(fd, into, sizeof(into), 0) == (ssize_t)size - 10);
	}
	peer_write(&peer, MSG(OP_DATA, size), NULL, 0);
	peer_write(&peer, MSG(OP_DATA, 1), NULL, 0);
	CHECK(rrecv(fd, into, sizeof(into), 0) == (ssize_t)size);
	FAILS(rrecv(fd, into, sizeof(into), 0), EPROTO);
	MUST(rclose(fd));
	peer_end(&peer);
}

/* The peer writes its last data and disconnects after the rsocket has polled its CQ, but before it checks its id. */
static struct {
	int (*poll_cq)(struct ibv_cq *cq, int count, struct ibv_wc *wcs);
	struct peer peer;
	int fd;
} last;

static int poll_cq_then_end(struct ibv_cq *cq, int count, struct ibv_wc *wcs)
{
	int polled = last.poll_cq(cq, count, wcs);

	if (!polled) {
		cq->context->ops.poll_cq = last.poll_cq;
		peer_write(&last.peer, MSG(OP_DATA, 4), "last", 4);
		MUST(rdma_disconnect(last.peer.id));
		/* An rsocket's descriptor is the one of its id's events. */
		MUST(poll(&(struct pollfd){.fd = last.fd, .events = POLLIN}, 1, TIMEOUT_S * 1000) != 1);
	}
	return polled;
}

static void last_data(void)
{
	char into[8];

	last.fd = connect_to_peer(&last.peer, RECEIVES);
	struct ibv_context_ops *ops = &last.peer.id->verbs->ops; /* shared with the rsocket */
	last.poll_cq = ops->poll_cq;
	ops->poll_cq = poll_cq_then_end;
	CHECK(rrecv(last.fd, into, sizeof(into), 0) == 4 && !memcmp(into, "last", 4));
	CHECK(rrecv(last.fd, into, sizeof(into), 0) == 0);
	MUST(rclose(last.fd));
	peer_end(&last.peer);
}

/* ---- signals ---- */

static atomic_uint signals;
static pid_t main_thread;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

/* The system call in which the thread sleeps; -1: in none. */
static long system_call(pid_t thread)
{
	char path[64];
	long call = -1; /* or "running" */

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	FILE *f = fopen(path, "r");
	MUST(!f);
	if (fscanf(f, "%ld", &call) != 1)
		call = -1;
	fclose(f);
	return call;
}

/* True: it sleeps in poll(), not on a lock. */
static bool polls(pid_t thread)
{
	long call = system_call(thread);

#ifdef SYS_poll
	if (call == SYS_poll)
		return true;
#endif
	return call == SYS_ppoll;
}

static bool main_thread_polls(void)
{
	return polls(main_thread);
}

/* Interrupts the main thread's poll() several times, then posts the receives for its data at the peer. */
static void *interrupt_then_receive(void *arg)
{
	for (unsigned n = 0; n < 5; n++) {
		while (!main_thread_polls())
			usleep(1000);
		MUST(syscall(SYS_tgkill, getpid(), main_thread, SIGUSR1));
		while (signals == n)
			usleep(1000);
	}
	peer_post_receives(arg, RECEIVES);
	return NULL;
}

/* rclose() returns when the peer has all data, even if signals come meanwhile. */
static void close_with_signals(void)
{
	static struct peer peer;
	int fd = connect_to_peer(&peer, 1); /* one receive, used for credits: data must wait */
	struct sigaction action = {.sa_handler = count_signal};
	pthread_t thread;
	uint32_t msg;

	MUST(sigaction(SIGUSR1, &action, NULL));
	main_thread = (pid_t)syscall(SYS_gettid);
	for (uint32_t len = 1; len <= 3; len++)
		MUST(rsend(fd, "abc", len, 0) != (ssize_t)len);
	MUST(pthread_create(&thread, NULL, interrupt_then_receive, &peer));
	MUST(rclose(fd));
	for (uint32_t len = 1; len <= 3; len++)
		CHECK(peer_receive(&peer, &msg) && msg == MSG(OP_DATA, len));
	CHECK(peer_receive(&peer, &msg) && msg == MSG(OP_CTRL, CTRL_DISCONNECT));
	CHECK(!peer_receive(&peer, &msg));
	MUST(pthread_join(thread, NULL));
	peer_end(&peer);
}

/* Interrupts the main thread's poll(), three times, then sends to it. */
static void *interrupt_then_send(void *arg)
{
	for (unsigned n = 0, before = signals; n < 3; n++) {
		while (!main_thread_polls())
			usleep(1000);
		MUST(syscall(SYS_tgkill, getpid(), main_thread, SIGUSR1));
		while (signals == before + n)
			usleep(1000);
	}
	while (!main_thread_polls())
		usleep(1000);
	MUST(rsend(*(int *)arg, "late", 4, 0) != 4);
	return NULL;
}

/* A call that waits goes on after a handler with SA_RESTART, as a socket's does, and fails after others. */
static void receive_with_signals(void)
{
	struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
	int listener = listen_here(), client = begin_connect(), server = raccept(listener, NULL, NULL);
	pthread_t thread;
	char into[8];

	MUST(server < 0);
	finish_connect(client);
	MUST(sigaction(SIGUSR1, &action, NULL));
	main_thread = (pid_t)syscall(SYS_gettid);
	MUST(pthread_create(&thread, NULL, interrupt_then_send, &client));
	for (;;) {
		ssize_t n = rrecv(server, into, sizeof(into), 0);

		if (n == 4)
			break;
		CHECK(n == 4);
	}
	MUST(pthread_join(thread, NULL));
	MUST(rclose(client));
	MUST(rclose(server));
	MUST(rclose(listener));
}

/* ---- threads ---- */

struct reader {
	pthread_t thread;
	atomic_int id; /* of the kernel; 0: it has not begun */
	int fd;
	char byte;   /* that it has received */
	ssize_t got; /* what rrecv() returned */
};

static void *read_byte(void *arg)
{
	struct reader *r = arg;

	/* Others that share its processor run before it. */
	MUST(sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}));
	r->id = (pid_t)syscall(SYS_gettid);
	r->got = rrecv(r->fd, &r->byte, 1, 0);
	return NULL;
}

static void start_reader(struct reader *r, int fd)
{
	r->fd = fd;
	r->id = 0;
	MUST(pthread_create(&r->thread, NULL, read_byte, r));
}

static void wait_until(const struct reader *r, bool (*is_there)(pid_t thread))
{
	while (!r->id || !is_there(r->id))
		usleep(1000);
}

/* Bytes come when the poller has polled the CQ, but not yet looked whether it has an event. The reader, which
 * sleeps until it has one, is woken and gets no processor before the poller is done. */
static struct {
	int (*poll_cq)(struct ibv_cq *cq, int count, struct ibv_wc *wcs);
	struct ibv_context *context;
	int from;
} poller;

static int poll_cq_then_send(struct ibv_cq *cq, int count, struct ibv_wc *wcs)
{
	int polled = poller.poll_cq(cq, count, wcs);

	if (!polled) {
		cq->context->ops.poll_cq = poller.poll_cq;
		MUST(rsend(poller.from, "xy", 2, 0) != 2);
		while (poll(&(struct pollfd){.fd = cq->channel->fd, .events = POLLIN}, 1, 0) != 1)
			;
	}
	return polled;
}

static struct ibv_context *any_context(void)
{
	struct ibv_context **list = rdma_get_devices(NULL), *context;

	MUST(!list);
	context = list[0];
	rdma_free_devices(list);
	return context;
}

/* One thread sleeps in rrecv() while another polls the same rsocket: both see what comes, where there is enough. */
static void read_and_poll(void)
{
	struct ibv_context *context = any_context();
	cpu_set_t before, one;
	struct reader reader;
	int ends[2];

	connect_pair(ends);
	MUST(sched_getaffinity(0, sizeof(before), &before));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	MUST(sched_setaffinity(0, sizeof(one), &one));
	start_reader(&reader, ends[1]);
	wait_until(&reader, polls);
	poller.from = ends[0];
	poller.poll_cq = context->ops.poll_cq;
	context->ops.poll_cq = poll_cq_then_send;
	CHECK(rpoll(&(struct pollfd){.fd = ends[1], .events = POLLIN}, 1, -1) == 1);
	MUST(pthread_join(reader.thread, NULL));
	CHECK(reader.got == 1 && reader.byte == 'x');
	CHECK(rrecv(ends[1], &reader.byte, 1, 0) == 1 && reader.byte == 'y');
	MUST(sched_setaffinity(0, sizeof(before), &before));
	close_pair(ends);
}

/* True: it waits for another thread. */
static bool waits(pid_t thread)
{
	return system_call(thread) == SYS_futex;
}

static void cancel_reader(struct reader *r)
{
	void *result;

	MUST(pthread_cancel(r->thread) || pthread_join(r->thread, &result));
	CHECK(result == PTHREAD_CANCELED);
}

/* Two threads wait in rrecv(), one of them on the descriptors, and are cancelled: the rsocket still works. */
static void cancelled_readers(bool sleeper_first)
{
	struct reader sleeper, other;
	int ends[2];
	char byte;

#ifdef __SANITIZE_ADDRESS__
	return; /* it reports the stack frames that cancelling leaves behind */
#endif
	connect_pair(ends);
	start_reader(&sleeper, ends[1]);
	wait_until(&sleeper, polls);
	start_reader(&other, ends[1]);
	wait_until(&other, waits);
	if (sleeper_first) {
		cancel_reader(&sleeper);
		wait_until(&other, polls); /* in its place */
		cancel_reader(&other);
	} else {
		cancel_reader(&other);
		cancel_reader(&sleeper);
	}
	MUST(rsend(ends[0], "x", 1, 0) != 1);
	CHECK(rrecv(ends[1], &byte, 1, 0) == 1 && byte == 'x');
	close_pair(ends);
}

static bool no_more_descriptors; /* for eventfd() */

__attribute__((visibility("default"))) int eventfd(unsigned count, int flags)
{
	errno = EMFILE;
	return no_more_descriptors ? -1 : (int)syscall(SYS_eventfd2, count, flags);
}

/* Two threads wait in rrecv(), one of them on the descriptors. Nothing more can be read, and both hear of it; also
 * where there is no descriptor by which the one can be woken. */
static void shut_down_readers(int how, bool wakeable)
{
	struct reader sleeper, other;
	int ends[2];

	connect_pair(ends);
	no_more_descriptors = !wakeable;
	start_reader(&sleeper, ends[1]);
	wait_until(&sleeper, polls);
	start_reader(&other, ends[1]);
	wait_until(&other, waits);
	MUST(rshutdown(ends[1], how));
	MUST(pthread_join(sleeper.thread, NULL));
	MUST(pthread_join(other.thread, NULL));
	no_more_descriptors = false;
	CHECK(!sleeper.got && !other.got);
	if (how == SHUT_RD) {
		char byte;

		CHECK(rsend(ends[1], "x", 1, 0) == 1 && rrecv(ends[0], &byte, 1, 0) == 1 && byte == 'x');
	}
	close_pair(ends);
}

/* ---- not connected yet ---- */

/* SO_ERROR has the error of rconnect(), once. */
static void refused(void)
{
	int fd = rsocket(address->sa_family, SOCK_STREAM, 0), err = 0;
	socklen_t len = sizeof(err);

	MUST(fd < 0);
	FAILS(rconnect(fd, address, address_len), ECONNREFUSED);
	MUST(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	CHECK(err == ECONNREFUSED);
	MUST(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	CHECK(!err);
	MUST(rclose(fd));
}

static void wrong_timeouts(void)
{
	FAILS(rselect(0, NULL, NULL, NULL, &(struct timeval){.tv_sec = -1}), EINVAL);
	FAILS(rselect(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = -1}), EINVAL);
	CHECK(!rselect(0, NULL, NULL, NULL, &(struct timeval){0}));
}

static void connecting(void)
{
	int listener = listen_here(), client = begin_connect(), server;
	char into[8];

	FAILS(rsend(client, "early", 5, 0), EAGAIN);
	FAILS(rrecv(client, into, sizeof(into), 0), EAGAIN);
	server = raccept(listener, NULL, NULL);
	MUST(server < 0);
	set_blocking(client, 1);
	CHECK(rsend(client, "early", 5, 0) == 5); /* waits for the connection */
	CHECK(rrecv(server, into, sizeof(into), 0) == 5 && !memcmp(into, "early", 5));
	MUST(rclose(client));
	MUST(rclose(server));
	MUST(rclose(listener));
}

/* ---- messages of several parts ---- */

/* Fills the stream, then tries to send more with the calls that must not block. */
static void full_stream(int fd)
{
	static char much[1 << 16];
	struct iovec iov[2] = {{much, 1}, {much, 1}};

	while (rsend(fd, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	MUST(errno != EAGAIN);
	FAILS(rsendmsg(fd, &(struct msghdr){.msg_iov = iov, .msg_iovlen = 2}, MSG_DONTWAIT), EAGAIN);
}

/* For both kinds of rsockets: peeks at "part one", then receives it, in two parts. */
static void in_parts(int from, int to)
{
	char one[4], two[16], control[8];
	struct iovec out[2] = {{"part", 4}, {" one", 4}}, in[2] = {{one, sizeof(one)}, {two, sizeof(two)}};
	struct msghdr sent = {.msg_iov = out, .msg_iovlen = 2}, got = {.msg_iov = in, .msg_iovlen = 2};

	sent.msg_control = got.msg_control = control; /* of no length */
	CHECK(rsendmsg(from, &sent, 0) == 8);
	for (int i = 0; i < 2; i++) {
		memset(one, 0, sizeof(one));
		memset(two, 0, sizeof(two));
		CHECK(rrecvmsg(to, &got, i ? 0 : MSG_PEEK) == 8);
		CHECK(!memcmp(one, "part", 4) && !strcmp(two, " one"));
	}
	FAILS(rrecvmsg(to, &got, MSG_DONTWAIT), EAGAIN);
	sent.msg_controllen = got.msg_controllen = sizeof(control);
	FAILS(rsendmsg(from, &sent, 0), ENOTSUP);
	FAILS(rrecvmsg(to, &got, 0), ENOTSUP);
}

static void vectors(void)
{
	int ends[2];

	connect_pair(ends);
	in_parts(ends[0], ends[1]);
	full_stream(ends[1]);
	close_pair(ends);
	datagram_pair(address, ends);
	in_parts(ends[0], ends[1]);
	/* A receive returns one datagram, never parts of two. */
	char one[1], two[8] = "";
	struct iovec in[2] = {{one, sizeof(one)}, {two, sizeof(two)}};
	CHECK(rsend(ends[0], "ab", 2, 0) == 2 && rsend(ends[0], "cd", 2, 0) == 2);
	CHECK(rreadv(ends[1], in, 2) == 2 && one[0] == 'a' && two[0] == 'b');
	CHECK(rreadv(ends[1], in, 1) == 1 && one[0] == 'c');
	FAILS(rrecv(ends[1], two, sizeof(two), MSG_DONTWAIT), EAGAIN);
	close_pair(ends);
}

/* A connection ends when both directions are shut down one after the other; for the peer, too. */
static void half_and_half(int first, int second)
{
	static struct peer peer;
	int fd = connect_to_peer(&peer, RECEIVES);
	uint32_t msg;

	MUST(rshutdown(fd, first));
	CHECK(peer_poll(&peer, &msg) == (first == SHUT_WR));
	CHECK(first != SHUT_WR || msg == MSG(OP_CTRL, CTRL_SHUTDOWN));
	MUST(rshutdown(fd, second));
	CHECK(peer_poll(&peer, &msg) && msg == MSG(OP_CTRL, CTRL_DISCONNECT));
	MUST(rclose(fd));
	peer_end(&peer);
}

/* Results are the events that were asked for, and errors; as with poll() of a TCP socket. */
static void unconnected(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct pollfd in = {.fd = fd, .events = POLLIN}, out = {.fd = fd, .events = POLLOUT};

	MUST(fd < 0);
	CHECK(rpoll(&in, 1, 0) == 1 && in.revents == POLLHUP);
	CHECK(rpoll(&out, 1, 0) == 1 && out.revents == (POLLOUT | POLLHUP));
	MUST(rclose(fd));
}

/* ---- fork() ---- */

/* A forked child closes what it inherits, at once. The connection is the parent's, and goes on. */
static void closed_by_child(void)
{
	int ends[2], status;
	char byte;
	pid_t pid;

	connect_pair(ends);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(TIMEOUT_S / 6);
		FAILS(rshutdown(ends[0], SHUT_WR), ENODEV);
		_exit(rclose(ends[0]) || rclose(ends[1]) || failures);
	}
	MUST(waitpid(pid, &status, 0) != pid);
	CHECK(!status);
	CHECK(rsend(ends[0], "x", 1, 0) == 1 && rrecv(ends[1], &byte, 1, 0) == 1 && byte == 'x');
	close_pair(ends);
}

/* ---- descriptors ---- */

/* A request for which there is no descriptor is rejected, and raccept() says why. */
static void none_left(void)
{
	int listener = listen_here(), refused = begin_connect(), next = dup(0);
	struct pollfd request = {.fd = listener, .events = POLLIN}, answer = {.fd = refused, .events = POLLOUT};
	struct rlimit before, none;

	MUST(next < 0 || close(next));
	MUST(getrlimit(RLIMIT_NOFILE, &before));
	none = before;
	none.rlim_cur = (rlim_t)next;
	MUST(rpoll(&request, 1, TIMEOUT_S * 1000) != 1);
	set_blocking(listener, 0);
	MUST(setrlimit(RLIMIT_NOFILE, &none));
	FAILS(raccept(listener, NULL, NULL), EMFILE);
	MUST(setrlimit(RLIMIT_NOFILE, &before));
	CHECK(rpoll(&answer, 1, TIMEOUT_S * 1000) == 1 && (answer.revents & POLLERR));
	MUST(rclose(refused));
	MUST(rclose(listener));
}

/* Opens and closes more rsockets than the process may have descriptors. */
static void descriptors(void)
{
	struct rlimit before, few;

	MUST(getrlimit(RLIMIT_NOFILE, &before));
	few = before;
	few.rlim_cur = 64;
	MUST(setrlimit(RLIMIT_NOFILE, &few));
	for (unsigned i = 0; i < few.rlim_cur; i++) {
		int ends[2];

		connect_pair(ends);
		close_pair(ends);
		datagram_pair(address, ends);
		close_pair(ends);
	}
	MUST(setrlimit(RLIMIT_NOFILE, &before));
}

int main(int argc, char **argv)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;

	if (argc != 2 || inet_pton(AF_INET, argv[1], &v4->sin_addr) != 1)
		return 2;
	v4->sin_family = AF_INET;
	v4->sin_port = htons(PORT);
	address_len = sizeof(*v4);
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(3 * TIMEOUT_S);
	impossible_length(0);
	impossible_length(MOST);
	overfull_buffer();
	last_data();
	close_with_signals();
	receive_with_signals();
	read_and_poll();
	cancelled_readers(true);
	cancelled_readers(false);
	shut_down_readers(SHUT_RD, true);
	shut_down_readers(SHUT_RDWR, true);
	shut_down_readers(SHUT_RD, false);
	refused();
	wrong_timeouts();
	connecting();
	vectors();
	half_and_half(SHUT_RD, SHUT_WR);
	half_and_half(SHUT_WR, SHUT_RD);
	unconnected();
	closed_by_child();
	none_left();
	descriptors();
	printf("%u failures\n", failures);
	return failures != 0;
}
