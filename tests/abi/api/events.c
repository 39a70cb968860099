/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels and async events: when they come, which are purged, and which calls wait for acknowledgements. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

static const struct ibv_qp_cap small = {.max_send_wr = 4, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1};

static bool readable(int fd, int ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	return poll(&pfd, 1, ms) == 1;
}

/* A CQ with a channel, and a QP whose flushed receives make completions. */
struct source {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void source_open(struct source *s, void *cq_context)
{
	s->channel = ibv_create_comp_channel(api_ctx);
	s->cq = ibv_create_cq(api_ctx, 64, cq_context, s->channel, 0);
	s->qp = qp_new(IBV_QPT_RC, s->cq, NULL, &small);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	CHECK(!qp_to_init(s->qp));
	CHECK(!ibv_modify_qp(s->qp, &error, IBV_QP_STATE));
}

static void source_flush(struct source *s)
{
	struct ibv_recv_wr wr = {0}, *bad;
	CHECK(!ibv_post_recv(s->qp, &wr, &bad)); /* in ERR: flushed at once */
}

void test_channel_events(void)
{
	struct source s;
	int context;
	source_open(&s, &context);
	struct ibv_cq *cq = NULL;
	void *cq_context = NULL;
	int flags = fcntl(s.channel->fd, F_GETFL);
	CHECK(!fcntl(s.channel->fd, F_SETFL, flags | O_NONBLOCK));
	CHECK(s.channel->refcnt == 1);

	source_flush(&s); /* not armed: no event */
	CHECK(!readable(s.channel->fd, 50));
	CHECK_ERRNO(ibv_get_cq_event(s.channel, &cq, &cq_context) == -1, EAGAIN);
	CHECK(!ibv_req_notify_cq(s.cq, 0)); /* armed: for the next completion, not for those in the CQ */
	CHECK(!readable(s.channel->fd, 50));
	source_flush(&s);
	CHECK(readable(s.channel->fd, 5000));
	source_flush(&s); /* one event each time it is armed */
	CHECK(!ibv_get_cq_event(s.channel, &cq, &cq_context) && cq == s.cq && cq_context == &context);
	CHECK(!readable(s.channel->fd, 50));
	CHECK_ERRNO(ibv_get_cq_event(s.channel, &cq, &cq_context) == -1, EAGAIN);

	/* Armed twice without fetching: two events. A failed completion counts as solicited. */
	for (int i = 0; i < 2; i++) {
		CHECK(!ibv_req_notify_cq(s.cq, i));
		source_flush(&s);
	}
	CHECK(!ibv_get_cq_event(s.channel, &cq, &cq_context));
	CHECK(readable(s.channel->fd, 0));
	CHECK(!ibv_get_cq_event(s.channel, &cq, &cq_context));
	CHECK(!readable(s.channel->fd, 0));
	ibv_ack_cq_events(s.cq, 3);
	CHECK(!ibv_destroy_qp(s.qp) && !ibv_destroy_cq(s.cq) && !ibv_destroy_comp_channel(s.channel));
}

/* Two CQs on one channel: one is destroyed before its event is fetched. Only the other's event remains. */
void test_channel_purge(void)
{
	struct source s;
	source_open(&s, NULL);
	struct ibv_cq *other = ibv_create_cq(api_ctx, 16, NULL, s.channel, 0), *cq;
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, other, NULL, &small);
	struct source second = {s.channel, other, qp};
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	void *context;
	CHECK(!qp_to_init(qp) && !ibv_modify_qp(qp, &error, IBV_QP_STATE));
	CHECK(!ibv_req_notify_cq(s.cq, 0) && !ibv_req_notify_cq(other, 0));
	source_flush(&second);
	source_flush(&s);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(other));
	CHECK(readable(s.channel->fd, 0));
	CHECK(!ibv_get_cq_event(s.channel, &cq, &context) && cq == s.cq);
	CHECK(!readable(s.channel->fd, 0));
	ibv_ack_cq_events(cq, 1);

	CHECK(!ibv_req_notify_cq(s.cq, 0));
	source_flush(&s);
	CHECK(readable(s.channel->fd, 0));
	CHECK(!ibv_destroy_qp(s.qp) && !ibv_destroy_cq(s.cq));
	CHECK(!readable(s.channel->fd, 0));
	CHECK(!ibv_destroy_comp_channel(s.channel));
}

/* The descriptor is shared with a forked child. Nobody blocks where the other side has cleared it. */
void test_channel_forked(void)
{
	struct ibv_cq *cq;
	struct source s;
	void *context;
	int status;
	source_open(&s, NULL);
	CHECK(!ibv_req_notify_cq(s.cq, 0));
	source_flush(&s);
	CHECK(readable(s.channel->fd, 5000));
	pid_t pid = fork();
	if (!pid)
		_exit(ibv_get_cq_event(s.channel, &cq, &context) || cq != s.cq);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!ibv_get_cq_event(s.channel, &cq, &context) && cq == s.cq);
	ibv_ack_cq_events(s.cq, 1);
	CHECK(!ibv_destroy_qp(s.qp) && !ibv_destroy_cq(s.cq) && !ibv_destroy_comp_channel(s.channel));
}

/* A thread of the parent that is in the middle of everything when another one forks. */
struct middle {
	struct source s;
	struct ibv_cq_ex *ex;
	struct pair pair;
	pthread_barrier_t reached, go_on;
};

static void *stay_in_the_middle(void *arg)
{
	struct middle *m = arg;
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_qp_ex *builder = ibv_qp_to_qp_ex(m->pair.qp[0]);
	struct ibv_cq *cq;
	void *context;
	CHECK(!ibv_get_cq_event(m->s.channel, &cq, &context));
	CHECK(!ibv_start_poll(m->ex, &attr));
	ibv_wr_start(builder);
	pthread_barrier_wait(&m->reached);
	pthread_barrier_wait(&m->go_on);
	ibv_wr_abort(builder);
	ibv_end_poll(m->ex);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static bool destroys_all(struct middle *m)
{
	struct ibv_qp_ex *builder = ibv_qp_to_qp_ex(m->pair.qp[0]);
	struct ibv_wc wc;
	ibv_wr_start(builder);
	ibv_wr_abort(builder);
	if (ibv_poll_cq(ibv_cq_ex_to_cq(m->ex), 1, &wc) < 0)
		return false;
	pair_close(&m->pair);
	return !ibv_destroy_qp(m->s.qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(m->ex)) &&
	       !ibv_destroy_comp_channel(m->s.channel);
}

/* The child has one thread: what the others of the parent had locked, or have not acknowledged, does not stop it. */
void test_forked_in_the_middle(void)
{
	struct middle m;
	struct ibv_cq_init_attr_ex init = {.cqe = 16};
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	pthread_t thread;
	int status;
	pair_open(&m.pair, IBV_QP_EX_WITH_SEND);
	m.s.channel = init.channel = ibv_create_comp_channel(api_ctx);
	m.ex = ibv_create_cq_ex(api_ctx, &init);
	m.s.cq = ibv_cq_ex_to_cq(m.ex);
	m.s.qp = qp_new(IBV_QPT_RC, m.s.cq, NULL, &small);
	CHECK(!qp_to_init(m.s.qp) && !ibv_modify_qp(m.s.qp, &error, IBV_QP_STATE));
	CHECK(!ibv_req_notify_cq(m.s.cq, 0));
	source_flush(&m.s);
	CHECK(!pthread_barrier_init(&m.reached, NULL, 2) && !pthread_barrier_init(&m.go_on, NULL, 2));
	CHECK(!pthread_create(&thread, NULL, stay_in_the_middle, &m));
	pthread_barrier_wait(&m.reached);
	pid_t pid = fork();
	if (!pid) {
		alarm(30); /* where it hangs */
		_exit(!destroys_all(&m));
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	pthread_barrier_wait(&m.go_on);
	CHECK(!pthread_join(thread, NULL));
	CHECK(destroys_all(&m));
}

static bool is_next(struct source *s)
{
	struct ibv_cq *cq = NULL;
	void *context;
	if (ibv_get_cq_event(s->channel, &cq, &context) || cq != s->cq)
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

static bool source_close(struct source *s)
{
	return !ibv_destroy_qp(s->qp) && !ibv_destroy_cq(s->cq) && !ibv_destroy_comp_channel(s->channel);
}

/* How struct vb_channel of verbs/cq.h begins. */
struct locked_channel {
	struct ibv_comp_channel channel;
	pthread_mutex_t lock;
};

/* Another thread is in the middle of a channel when this one forks: the child makes its list anew, and leaves those of
 * other channels alone, whose events wait. */
void test_forked_in_a_channel(void)
{
	struct source busy, other;
	int status;
	source_open(&busy, NULL);
	source_open(&other, NULL);
	CHECK(!ibv_req_notify_cq(busy.cq, 0) && !ibv_req_notify_cq(other.cq, 0));
	source_flush(&busy);
	source_flush(&other);
	pthread_mutex_t *lock = &((struct locked_channel *)busy.channel)->lock;
	CHECK(!pthread_mutex_lock(lock));
	pid_t pid = fork();
	if (!pid) {
		alarm(30); /* where it hangs */
		CHECK(!fcntl(other.channel->fd, F_SETFL, O_NONBLOCK));
		bool right = is_next(&busy) && is_next(&other) && !is_next(&other);
		_exit(!(right && source_close(&busy) && source_close(&other)));
	}
	CHECK(!pthread_mutex_unlock(lock));
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(source_close(&busy) && source_close(&other));
}

static void *wait_event(void *arg)
{
	struct ibv_cq *cq;
	void *context;
	ibv_get_cq_event(arg, &cq, &context);
	return arg;
}

/* A program may make the descriptor non-blocking at any time, also after it has waited. */
void test_channel_becomes_nonblocking(void)
{
	struct source s;
	struct ibv_cq *cq;
	void *context;
	pthread_t thread;
	source_open(&s, NULL);
	CHECK(!ibv_req_notify_cq(s.cq, 0));
	CHECK(!pthread_create(&thread, NULL, wait_event, s.channel));
	usleep(20000); /* it mostly sleeps by then; the result is the same if it does not */
	source_flush(&s);
	CHECK(!pthread_join(thread, NULL));
	int flags = fcntl(s.channel->fd, F_GETFL);
	CHECK(!fcntl(s.channel->fd, F_SETFL, flags | O_NONBLOCK));
	for (int i = 0; i < 2; i++)
		CHECK_ERRNO(ibv_get_cq_event(s.channel, &cq, &context) == -1, EAGAIN);
	CHECK(!fcntl(s.channel->fd, F_SETFL, flags));
	CHECK(!ibv_req_notify_cq(s.cq, 0));
	CHECK(!pthread_create(&thread, NULL, wait_event, s.channel));
	source_flush(&s);
	CHECK(!pthread_join(thread, NULL));
	ibv_ack_cq_events(s.cq, 2);
	CHECK(!ibv_destroy_qp(s.qp) && !ibv_destroy_cq(s.cq) && !ibv_destroy_comp_channel(s.channel));
}

/* A thread that waits for events is cancelled, as some programs do at their end. The channel still works. */
void test_channel_cancel(void)
{
#ifdef __SANITIZE_ADDRESS__
	return; /* it reports the stack frames that cancelling leaves behind */
#endif
	struct source s;
	struct ibv_cq *cq;
	void *context, *result;
	pthread_t thread;
	source_open(&s, NULL);
	CHECK(!pthread_create(&thread, NULL, wait_event, s.channel));
	usleep(20000);
	CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result) && result == PTHREAD_CANCELED);
	CHECK(!ibv_req_notify_cq(s.cq, 0));
	source_flush(&s);
	CHECK(!ibv_get_cq_event(s.channel, &cq, &context) && cq == s.cq);
	ibv_ack_cq_events(cq, 1);
	CHECK(!ibv_destroy_qp(s.qp) && !ibv_destroy_cq(s.cq) && !ibv_destroy_comp_channel(s.channel));
}

static void *destroy_cq(void *cq)
{
	CHECK(!pthread_cancel(pthread_self()));
	ibv_destroy_cq(cq); /* waits for an acknowledgement */
	return NULL;
}

static void *destroy_qp(void *qp)
{
	CHECK(!pthread_cancel(pthread_self()));
	ibv_destroy_qp(qp);
	return NULL;
}

static void cancelled_in(void *(*destroy)(void *object), void *object)
{
	pthread_t thread;
	void *result = NULL;
	CHECK(!pthread_create(&thread, NULL, destroy, object) && !pthread_join(thread, &result));
	CHECK(result == PTHREAD_CANCELED);
}

/* A thread is cancelled while it waits for acknowledgements: they can come yet, and the object can be destroyed. */
void test_destroy_cancel(void)
{
#ifdef __SANITIZE_ADDRESS__
	return; /* it reports the stack frames that cancelling leaves behind */
#endif
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event last;
	struct source s;
	struct ibv_cq *cq;
	void *context;
	source_open(&s, NULL);
	struct ibv_srq *srq = ibv_create_srq(api_pd, &init);
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, s.cq, srq, &small);
	CHECK(!qp_to_init(qp) && !ibv_modify_qp(qp, &error, IBV_QP_STATE));
	CHECK(!ibv_get_async_event(api_ctx, &last) && last.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(!ibv_req_notify_cq(s.cq, 0));
	source_flush(&s);
	CHECK(!ibv_get_cq_event(s.channel, &cq, &context) && cq == s.cq);

	cancelled_in(destroy_qp, qp);
	ibv_ack_async_event(&last);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_qp(s.qp));
	cancelled_in(destroy_cq, s.cq);
	ibv_ack_cq_events(s.cq, 1);
	CHECK(!ibv_destroy_cq(s.cq) && !ibv_destroy_comp_channel(s.channel));
}

/* ---- signals ---- */

static atomic_uint signals;

static void count_signal(int signal)
{
	signals++;
}

struct waiter {
	struct ibv_comp_channel *channel; /* NULL: waits for an async event */
	pthread_t thread;
	int result, error;
	atomic_bool done;
};

static void *wait_for_any(void *arg)
{
	struct waiter *w = arg;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;
	w->result = w->channel ? ibv_get_cq_event(w->channel, &cq, &context) : ibv_get_async_event(api_ctx, &event);
	w->error = errno;
	if (!w->result && w->channel)
		ibv_ack_cq_events(cq, 1);
	else if (!w->result)
		ibv_ack_async_event(&event);
	w->done = true;
	return NULL;
}

/* The signal's handler runs in the thread that waits, where it mostly sleeps already. */
static void interrupt(struct waiter *w, int flags)
{
	struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};
	unsigned before = signals;
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	usleep(20000);
	CHECK(!pthread_kill(w->thread, SIGUSR1));
	while (signals == before && !w->done)
		usleep(1000);
	usleep(20000);
}

/* A handler with SA_RESTART leaves a thread waiting, as read(2) does where adapters wait. Others end the call. */
static void waits_on(struct waiter *w, void (*raise_event)(void *), void *arg)
{
	struct sigaction crash = {.sa_handler = count_signal}, before;
	CHECK(!sigaction(SIGSEGV, &crash, &before)); /* as crash reporters have: it says nothing about waits */
	CHECK(!pthread_create(&w->thread, NULL, wait_for_any, w));
	for (int i = 0; i < 3; i++)
		interrupt(w, SA_RESTART);
	CHECK(!w->done);
	CHECK(!sigaction(SIGSEGV, &before, NULL));
	raise_event(arg);
	CHECK(!pthread_join(w->thread, NULL) && !w->result);

	w->done = false;
	CHECK(!pthread_create(&w->thread, NULL, wait_for_any, w));
	while (!w->done)
		interrupt(w, (int)SA_RESETHAND);
	CHECK(!pthread_join(w->thread, NULL) && w->result == -1 && w->error == EINTR);
	signal(SIGUSR1, SIG_DFL);
}

static void flush_source(void *arg)
{
	source_flush(arg);
}

void test_channel_signals(void)
{
	struct source s;
	source_open(&s, NULL);
	CHECK(!ibv_req_notify_cq(s.cq, 0));
	struct waiter w = {.channel = s.channel};
	waits_on(&w, flush_source, &s);
	CHECK(!ibv_destroy_qp(s.qp) && !ibv_destroy_cq(s.cq) && !ibv_destroy_comp_channel(s.channel));
}

static void fail_qp(void *arg)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	CHECK(!ibv_modify_qp(arg, &error, IBV_QP_STATE));
}

void test_async_signals(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(api_pd, &init);
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 16, NULL, NULL, 0);
	struct ibv_qp_cap cap = {.max_send_wr = 1, .max_send_sge = 1};
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, cq, srq, &cap);
	struct waiter w = {0};
	CHECK(!qp_to_init(qp));
	waits_on(&w, fail_qp, qp);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
}

struct late_ack {
	struct ibv_cq *cq;
	bool acked;
};

static void *ack_late(void *arg)
{
	struct late_ack *late = arg;
	usleep(50000);
	__atomic_store_n(&late->acked, true, __ATOMIC_SEQ_CST);
	ibv_ack_cq_events(late->cq, 1);
	return NULL;
}

void test_channel_acks(void)
{
	struct source s;
	struct ibv_cq *cq;
	void *context;
	pthread_t thread;
	source_open(&s, NULL);
	CHECK(!ibv_req_notify_cq(s.cq, 0));
	source_flush(&s);
	CHECK(!ibv_get_cq_event(s.channel, &cq, &context)); /* blocking here */
	struct late_ack late = {.cq = cq};
	CHECK(!ibv_destroy_qp(s.qp));
	CHECK(!pthread_create(&thread, NULL, ack_late, &late));
	CHECK(!ibv_destroy_cq(s.cq));
	CHECK(__atomic_load_n(&late.acked, __ATOMIC_SEQ_CST));
	CHECK(!pthread_join(thread, NULL));
	CHECK(!ibv_destroy_comp_channel(s.channel));
}

/* A QP in the error state raises LAST_WQE_REACHED for its SRQ (IBTA 11.6.3.2). An SRQ below its limit raises one event.
 */
void test_async_events(void)
{
	struct ibv_async_event event;
	int flags = fcntl(api_ctx->async_fd, F_GETFL);
	CHECK(!fcntl(api_ctx->async_fd, F_SETFL, flags | O_NONBLOCK));
	CHECK_ERRNO(ibv_get_async_event(api_ctx, &event) == -1, EAGAIN);
	CHECK_ERRNO(ibv_get_async_event(NULL, &event) == -1, EINVAL);

	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(api_pd, &init);
	struct ibv_cq *cq = ibv_create_cq(api_ctx, 16, NULL, NULL, 0);
	struct ibv_qp_cap cap = {.max_send_wr = 1, .max_send_sge = 1};
	struct ibv_qp *qp = qp_new(IBV_QPT_RC, cq, srq, &cap), *silent = qp_new(IBV_QPT_RC, cq, srq, &cap);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	CHECK(!qp_to_init(qp) && !qp_to_init(silent));
	CHECK(!ibv_modify_qp(silent, &error, IBV_QP_STATE));
	CHECK(!ibv_modify_qp(qp, &error, IBV_QP_STATE));
	CHECK(readable(api_ctx->async_fd, 5000));
	CHECK(!readable(api_other->async_fd, 0));
	CHECK(!ibv_destroy_qp(silent)); /* before its event is fetched */
	CHECK(!ibv_get_async_event(api_ctx, &event));
	CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == qp);
	ibv_ack_async_event(&event);
	CHECK(!readable(api_ctx->async_fd, 0));
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
	CHECK(!fcntl(api_ctx->async_fd, F_SETFL, flags));
}
