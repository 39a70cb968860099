/* SPDX-License-Identifier: BSD-2-Clause */
/* Which descriptors are rsockets. */
#include <stdlib.h>
#include <unistd.h>

#include "rsocket/rsocket.h"

#define DEFAULT_QUEUE  384
#define DEFAULT_INLINE 64
#define DEFAULT_BUFFER (1 << 17)

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct rs **table;
static int table_size;

struct rs *rs_find(int fd)
{
	pthread_rwlock_rdlock(&table_lock);
	struct rs *rs = fd >= 0 && fd < table_size ? table[fd] : NULL;
	pthread_rwlock_unlock(&table_lock);
	if (!rs)
		errno = EBADF;
	return rs;
}

int rs_insert(struct rs *rs)
{
	int err = 0;
	pthread_rwlock_wrlock(&table_lock);
	if (rs->fd >= table_size) {
		int size = rs->fd < 512 ? 1024 : 2 * rs->fd;
		struct rs **bigger = realloc(table, (size_t)size * sizeof(*table));
		if (bigger) {
			memset(bigger + table_size, 0, (size_t)(size - table_size) * sizeof(*table));
			table = bigger;
			table_size = size;
		} else {
			err = -ENOMEM;
		}
	}
	if (!err)
		table[rs->fd] = rs;
	pthread_rwlock_unlock(&table_lock);
	return err;
}

void rs_remove(int fd)
{
	pthread_rwlock_wrlock(&table_lock);
	table[fd] = NULL;
	pthread_rwlock_unlock(&table_lock);
}

struct rs *rs_new(int domain, int type)
{
	struct rs *rs = calloc(1, sizeof(*rs));
	if (!rs)
		return NULL;
	rs->fd = -1;
	rs->domain = domain;
	rs->type = type;
	rs->sq_size = rs->rq_size = DEFAULT_QUEUE;
	rs->inline_size = DEFAULT_INLINE;
	rs->sbuf_size = rs->rbuf_size = DEFAULT_BUFFER;
	rs->keepidle = 7200; /* as tcp(7) */
	rs->keepintvl = 75;
	rs->keepcnt = 9;
	pthread_mutex_init(&rs->lock, NULL);
	pthread_cond_init(&rs->moved, NULL);
	return rs;
}

static void free_mr(struct ibv_mr *mr)
{
	if (mr)
		ibv_dereg_mr(mr);
}

void rs_free(struct rs *rs)
{
	if (rs->id)
		rs_destroy_qp(rs->id);
	rs_free_maps(rs);
	free_mr(rs->smr);
	free_mr(rs->rmr);
	free_mr(rs->targets_mr);
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->channel)
		rdma_destroy_event_channel(rs->channel);
	free(rs->sbuf);
	free(rs->rbuf);
	free(rs->targets);
	free(rs->messages);
	pthread_cond_destroy(&rs->moved);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}
