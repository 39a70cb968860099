/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct job_list {
	struct worker_job *first, **last;
};

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool ending;
	struct job_list todo, done;
	int fd;
};

static void list_init(struct job_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void list_add(struct job_list *list, struct worker_job *job)
{
	job->next = NULL;
	*list->last = job;
	list->last = &job->next;
}

static struct worker_job *list_take(struct job_list *list)
{
	struct worker_job *job = list->first;
	if (job) {
		list->first = job->next;
		if (!list->first)
			list->last = &list->first;
	}
	return job;
}

static void *work(void *argument)
{
	struct worker *w = argument;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct worker_job *job = list_take(&w->todo);
		if (!job) {
			if (w->ending)
				break;
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		job->run(job);
		pthread_mutex_lock(&w->lock);
		list_add(&w->done, job);
		eventfd_write(w->fd, 1);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int worker_create(struct worker **worker)
{
	struct worker *w = calloc(1, sizeof(*w));
	sigset_t all, before;
	int err;

	if (!w)
		return -ENOMEM;
	list_init(&w->todo);
	list_init(&w->done);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0) {
		err = -errno;
		goto err_free;
	}
	/* signals are for the program's own threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		goto err_close;
	*worker = w;
	return 0;
err_close:
	close(w->fd);
err_free:
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return err;
}

void worker_stop(struct worker *w)
{
	bool stopped;

	pthread_mutex_lock(&w->lock);
	stopped = w->ending;
	w->ending = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (!stopped)
		pthread_join(w->thread, NULL);
}

void worker_destroy(struct worker *w)
{
	if (!w)
		return;
	worker_stop(w);
	close(w->fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int worker_fd(const struct worker *w)
{
	return w->fd;
}

void worker_submit(struct worker *w, struct worker_job *job)
{
	pthread_mutex_lock(&w->lock);
	list_add(&w->todo, job);
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

struct worker_job *worker_reap(struct worker *w)
{
	struct worker_job *job;
	pthread_mutex_lock(&w->lock);
	job = list_take(&w->done);
	if (!job) {
		eventfd_t count;
		eventfd_read(w->fd, &count);
	}
	pthread_mutex_unlock(&w->lock);
	return job;
}
