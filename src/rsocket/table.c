/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of rsockets, by descriptor. */
#include <stdlib.h>
#include <string.h>

#include "rsocket/rsocket.h"

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct rs **table;
static int table_size;

struct rs *rs_table_find(int fd)
{
	pthread_rwlock_rdlock(&table_lock);
	struct rs *rs = fd >= 0 && fd < table_size ? table[fd] : NULL;
	pthread_rwlock_unlock(&table_lock);
	if (!rs)
		errno = EBADF;
	return rs;
}

int rs_table_insert(struct rs *rs)
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

void rs_table_remove(int fd)
{
	pthread_rwlock_wrlock(&table_lock);
	table[fd] = NULL;
	pthread_rwlock_unlock(&table_lock);
}
