/* SPDX-License-Identifier: BSD-2-Clause */
/* Direct writes: memory that one side maps, and the other writes to without a receiver's call. */
#include <stdlib.h>

#include "rsocket/rsocket.h"

static bool map_fits(const struct rs *rs, const struct rs_map *map)
{
	return map->index >= 0 && (uint32_t)map->index < rs->peer_iomap.length;
}

/* Tells the peer of one mapping: an entry of its list, with key 0 where the mapping is gone. */
static int send_map(struct rs *rs, const struct rs_map *map)
{
	struct rs_iomap wire = {
		.offset = map->offset,
		.sge = {.addr = (uintptr_t)map->mr->addr, .key = map->mr->rkey, .length = (uint32_t)map->mr->length}};
	uint64_t addr = rs->peer_iomap.addr + (uint64_t)map->index * sizeof(wire);
	rs->sent++;
	return rs_post_data(rs, (const uint8_t *)&wire, sizeof(wire), rs_msg(RS_OP_IOMAP_SGL, (uint32_t)map->index),
			    addr, rs->peer_iomap.key, true);
}

static bool can_send_map(const struct rs *rs)
{
	return rs->state == RS_CONNECTED && rs->sq_avail && rs->sbuf_avail >= sizeof(struct rs_iomap) &&
	       rs->sent != rs->allowed;
}

void rs_send_maps(struct rs *rs)
{
	for (struct rs_map *map = rs->maps; map && can_send_map(rs); map = map->next) {
		if (map->pending && map_fits(rs, map)) {
			map->pending = false;
			send_map(rs, map);
		}
	}
}

void rs_free_maps(struct rs *rs)
{
	while (rs->maps) {
		struct rs_map *map = rs->maps;
		rs->maps = map->next;
		ibv_dereg_mr(map->mr);
		free(map);
	}
}

/* The lowest slot that no mapping has. */
static int free_index(const struct rs *rs)
{
	for (int index = 0;; index++) {
		const struct rs_map *map = rs->maps;
		while (map && map->index != index)
			map = map->next;
		if (!map)
			return index;
	}
}

static unsigned access_of(int prot)
{
	unsigned access = IBV_ACCESS_LOCAL_WRITE;
	if (prot & PROT_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if (prot & PROT_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	return access;
}

static bool maps_are_sent(const struct rs *rs)
{
	for (const struct rs_map *map = rs->maps; map; map = map->next) {
		if (map->pending && map_fits(rs, map))
			return rs->state != RS_CONNECTED;
	}
	return true;
}

static off_t add_map(struct rs *rs, void *buf, size_t len, int prot, off_t offset)
{
	if (!rs->id->pd)
		return -ENOTCONN; /* which device? */
	struct rs_map *map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->mr = ibv_reg_mr(rs->id->pd, buf, len, access_of(prot));
	if (!map->mr) {
		int err = -errno;
		free(map);
		return err;
	}
	map->offset = offset == -1 ? (uintptr_t)buf : (uint64_t)offset;
	map->index = free_index(rs);
	map->pending = true;
	struct rs_map **end = &rs->maps;
	while (*end)
		end = &(*end)->next;
	*end = map;
	if (rs->state == RS_CONNECTED)
		rs_wait(rs, false, maps_are_sent);
	return (off_t)map->offset;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram || !buf || !len || len > UINT32_MAX || (prot & ~(PROT_WRITE | PROT_READ | PROT_NONE)))
		return rs_result(-EINVAL);
	pthread_mutex_lock(&rs->lock);
	off_t result = add_map(rs, buf, len, prot, offset);
	pthread_mutex_unlock(&rs->lock);
	return result < 0 ? rs_result((int)result) : result;
}

/* The peer's copy of the entry stays; a write by it is refused from now on. */
int riounmap(int socket, void *buf, size_t len)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	int err = -EINVAL;
	pthread_mutex_lock(&rs->lock);
	for (struct rs_map **p = &rs->maps; *p; p = &(*p)->next) {
		struct rs_map *map = *p;
		if (map->mr->addr != buf || map->mr->length != len)
			continue;
		*p = map->next;
		err = -ibv_dereg_mr(map->mr);
		free(map);
		break;
	}
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

/* The peer's mapping that holds `offset`, or NULL. */
static const struct rs_iomap *find_peer_map(const struct rs *rs, uint64_t offset)
{
	for (int i = 0; i < rs->iomap_size; i++) {
		const struct rs_iomap *map = &rs->peer_maps[i];
		if (map->sge.length && offset >= map->offset && offset - map->offset < map->sge.length)
			return map;
	}
	return NULL;
}

static bool can_write(const struct rs *rs)
{
	return rs->state == RS_CONNECTED && rs->writable && rs->sq_avail && rs->sbuf_avail;
}

static bool write_is_decided(const struct rs *rs)
{
	return can_write(rs) || rs->state != RS_CONNECTED || !rs->writable;
}

static size_t write_mapped(struct rs *rs, const uint8_t *buf, size_t count, uint64_t offset, bool nonblock, int *err)
{
	size_t done = 0;
	while (done < count) {
		*err = rs_wait(rs, nonblock, write_is_decided);
		if (!*err && !can_write(rs))
			*err = -EPIPE;
		const struct rs_iomap *map = *err ? NULL : find_peer_map(rs, offset + done);
		if (!*err && !map)
			*err = -EINVAL;
		if (*err)
			break;
		uint64_t into = offset + done - map->offset, room = map->sge.length - into;
		uint64_t now = count - done < room ? count - done : room;
		if (now > rs->sbuf_avail)
			now = rs->sbuf_avail;
		*err = rs_post_data(rs, buf + done, (uint32_t)now, rs_msg(RS_OP_WRITE, (uint32_t)now),
				    map->sge.addr + into, map->sge.key, false);
		if (*err)
			break;
		done += now;
	}
	return done;
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return (size_t)-1;
	int err = rs->datagram ? -EINVAL : 0;
	size_t done = 0;
	pthread_mutex_lock(&rs->lock);
	if (!err)
		done = write_mapped(rs, buf, count, (uint64_t)offset, rs->nonblock || (flags & MSG_DONTWAIT), &err);
	pthread_mutex_unlock(&rs->lock);
	return done || !err ? done : (size_t)rs_result(err);
}
