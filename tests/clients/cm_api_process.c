/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids that a forked child inherits; signals and cancellation of threads that are in a call. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"
#include "cm_api.h"

/* ---- fork() ---- */

/* A forked child can only destroy ids that it inherits: device, port and connection are the parent's. Returns the exit
 * status. */
static int child(struct sides *s, struct rdma_cm_id *idle, struct rdma_cm_id *bound, int opens_its_own)
{
	struct rdma_conn_param param = {.qp_num = 6003};
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *own = opens_its_own ? new_id(channel, RDMA_PS_TCP) : NULL;

	failures = 0;
	set_port(0);
	FAILS(rdma_bind_addr(idle, address), ENODEV);
	FAILS(rdma_resolve_addr(idle, NULL, address, RESOLVE_MS), ENODEV);
	FAILS(rdma_listen(bound, 1), ENODEV);
	FAILS(rdma_resolve_addr(bound, NULL, address, RESOLVE_MS), ENODEV);
	FAILS(rdma_accept(s->server, &param), ENODEV);
	FAILS(rdma_reject(s->server, NULL, 0), ENODEV);
	FAILS(rdma_disconnect(s->client), ENODEV);
	CHECK(rdma_destroy_id(idle) == 0);
	CHECK(rdma_destroy_id(bound) == 0);
	end(s);
	if (own) {
		CHECK(rdma_bind_addr(own, address) == 0 && rdma_listen(own, 1) == 0);
		CHECK(rdma_destroy_id(own) == 0);
	}
	rdma_destroy_event_channel(channel);
	return failures != 0;
}

void forked(void)
{
	struct rdma_conn_param param = {.qp_num = 5003};
	struct rdma_cm_id *idle, *bound;
	struct sides s;

	begin(&s);
	idle = new_id(s.client_channel, RDMA_PS_TCP);
	bound = new_id(s.client_channel, RDMA_PS_TCP);
	set_port(0);
	MUST(rdma_bind_addr(bound, address));
	MUST(rdma_connect(s.client, &param));
	take_request(&s);
	for (int opens_its_own = 0; opens_its_own < 2; opens_its_own++) {
		pid_t pid;
		int status;

		fflush(stdout);
		pid = fork();
		if (!pid) {
			alarm(30); /* where it hangs */
			status = child(&s, idle, bound, opens_its_own);
			fflush(stdout);
			_exit(status);
		}
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	rdma_ack_cm_event(s.request); /* for which a child does not wait */
	set_port(PORT);
	FAILS(rdma_bind_addr(idle, address), EADDRINUSE); /* the listener still has it */
	param.qp_num = 6003;
	CHECK(rdma_accept(s.server, &param) == 0);
	pass(s.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	MUST(rdma_destroy_id(idle));
	MUST(rdma_destroy_id(bound));
	end(&s);
}

/* ---- signals ---- */

static volatile sig_atomic_t alarms;
static struct rdma_cm_id *late_id;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static void set_alarms(int flags, unsigned interval_us)
{
	struct itimerval timer = {.it_interval.tv_usec = interval_us, .it_value.tv_usec = interval_us};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};

	alarms = 0;
	MUST(sigaction(SIGALRM, &action, NULL));
	MUST(setitimer(ITIMER_REAL, &timer, NULL));
}

/* After the third one. The event needs no peer. */
static void *resolve_late(void *arg)
{
	while (alarms < 3)
		usleep(1000);
	MUST(rdma_resolve_addr(late_id, NULL, address, RESOLVE_MS));
	return arg;
}

/* A thread that waits for an event goes on after a handler with SA_RESTART, as in the kernel. Others end the call. */
void interrupted(void)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_event *event = NULL;
	sigset_t alarm_only;
	pthread_t thread;

	late_id = new_id(channel, RDMA_PS_TCP);
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	MUST(pthread_sigmask(SIG_BLOCK, &alarm_only, NULL));
	MUST(pthread_create(&thread, NULL, resolve_late, NULL));
	MUST(pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL));
	set_alarms(SA_RESTART, 20000);
	CHECK(!rdma_get_cm_event(channel, &event) && event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(pthread_join(thread, NULL));
	MUST(rdma_ack_cm_event(event));
	set_alarms(0, 20000);
	FAILS(rdma_get_cm_event(channel, &event), EINTR);
	set_alarms(0, 0);
	MUST(rdma_destroy_id(late_id));
	rdma_destroy_event_channel(channel);
}

static void *get_devices(void *arg)
{
	MUST(pthread_cancel(pthread_self()));
	rdma_free_devices(rdma_get_devices(NULL));
	return NULL;
}

static void *destroy_channel(void *channel)
{
	MUST(pthread_cancel(pthread_self()));
	rdma_destroy_event_channel(channel);
	return NULL;
}

static void *destroy_id(void *id)
{
	MUST(pthread_cancel(pthread_self()));
	rdma_destroy_id(id); /* waits for ever */
	return NULL;
}

static void *leave_group(void *id)
{
	MUST(pthread_cancel(pthread_self()));
	rdma_leave_multicast(id, a_group()); /* likewise */
	return NULL;
}

static void join(pthread_t thread)
{
	MUST(pthread_join(thread, NULL));
}

static pthread_t start(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, run, arg));
	return thread;
}

/* Threads are cancelled in calls: the calls of other threads still work. The first one opens the device. */
void cancelled(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

#ifdef __SANITIZE_ADDRESS__
	return; /* it reports the stack frames that cancelling leaves behind */
#endif
	join(start(get_devices, NULL));
	join(start(destroy_channel, new_channel()));
	channel = new_channel();
	id = new_id(channel, RDMA_PS_TCP);
	set_port(PORT);
	MUST(rdma_resolve_addr(id, NULL, address, RESOLVE_MS));
	event = next(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	join(start(destroy_id, id));
	MUST(rdma_ack_cm_event(event));
	MUST(rdma_destroy_id(id)); /* again */
	id = new_id(channel, RDMA_PS_UDP);
	set_port(0);
	MUST(rdma_bind_addr(id, address));
	MUST(rdma_join_multicast(id, a_group(), NULL));
	event = next(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	join(start(leave_group, id));
	MUST(rdma_ack_cm_event(event));
	CHECK(rdma_leave_multicast(id, a_group()) == 0);
	MUST(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}
