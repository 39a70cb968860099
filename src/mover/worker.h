/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that does, one after the other, what would hold up a session's loop: calls that wait for a disk. */
#ifndef ROCI_MOVER_WORKER_H
#define ROCI_MOVER_WORKER_H

struct worker;

/* Embedded in what is to be done. `run` is called in the worker's thread; the owner gets the job back from
 * worker_reap() and may touch it again then. */
struct worker_job {
	void (*run)(struct worker_job *job);
	struct worker_job *next;
};

/* 0 or -errno. */
int worker_create(struct worker **worker);
/* Waits until all jobs have been done; those that were not reaped are forgotten. NULL is allowed. */
void worker_destroy(struct worker *worker);

/* An eventfd that is readable when there may be something to reap; worker_reap() that returns NULL clears it. */
int worker_fd(const struct worker *worker);

void worker_submit(struct worker *worker, struct worker_job *job);
/* The next finished job, in the order of submission, or NULL. */
struct worker_job *worker_reap(struct worker *worker);

#endif
