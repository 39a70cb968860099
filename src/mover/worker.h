/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread for calls that wait for a disk and would block a session's loop. It runs its jobs one after the other. */
#ifndef ROCI_MOVER_WORKER_H
#define ROCI_MOVER_WORKER_H

struct worker;

/* Embedded in the caller's struct. The worker's thread calls `run`. The job belongs to the worker until worker_reap()
 * returns it. */
struct worker_job {
	void (*run)(struct worker_job *job);
	struct worker_job *next;
};

/* 0 or -errno. */
int worker_create(struct worker **worker);
/* Waits until all jobs are done. worker_reap() still returns them; worker_submit() may not be called any more. */
void worker_stop(struct worker *worker);
/* Likewise, and frees the worker. Jobs that were not reaped are not returned any more. NULL is allowed. */
void worker_destroy(struct worker *worker);

/* An eventfd that is readable when there may be something to reap. It is cleared when worker_reap() returns NULL. */
int worker_fd(const struct worker *worker);

void worker_submit(struct worker *worker, struct worker_job *job);
/* The next finished job, in the order of submission, or NULL. */
struct worker_job *worker_reap(struct worker *worker);

#endif
