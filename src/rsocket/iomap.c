/* SPDX-License-Identifier: BSD-2-Clause */
/* Direct writes: one side maps memory, and the other writes to it without a call of the first. */
#include <errno.h>
#include <stdlib.h>

#include "rsocket/rsocket.h"

struct map {
	struct roci_list mapped; /* node of the socket */
	struct ibv_mr *mr;
	uint64_t offset;
	int index;    /* in the peer's list */
	bool pending; /* not sent yet */
};

static struct map *map_of(const struct roci_list *mapped)
{
	return roci_container_of(mapped, struct map, mapped);
}

static bool map_fits(const struct rs *rs, const struct map *map)
{
	return map->index >= 0 && (uint32_t)map->index < rs->recv.peer_maps.length;
}

/* Writes a mapping into the peer's list. */
static int send_map(struct rs *rs, const struct map *map)
{
	struct rs_iomap wire = {
		.offset = map->offset,
		.sge = {.addr = (uintptr_t)map->mr->addr, .key = map->mr->rkey, .length = (uint32_t)map->mr->length}};
	uint64_t addr = rs->recv.peer_maps.addr + (uint64_t)map->index * sizeof(wire);
	rs->send.messages++;
	return rs_stream_post_data(rs, (const uint8_t *)&wire, sizeof(wire),
				   rs_msg(RS_OP_IOMAP_SGL, (uint32_t)map->index), addr, rs->recv.peer_maps.key, true);
}

static bool can_send_map(const struct rs *rs)
{
	return rs->state == RS_CONNECTED && rs->send.sq_room && rs->send.room >= sizeof(struct rs_iomap) &&
	       rs->send.messages != rs->send.allowed;
}

void rs_iomap_send(struct rs *rs)
{
	for (struct roci_list *l = rs->maps.next; l != &rs->maps && can_send_map(rs); l = l->next) {
		struct map *map = map_of(l);
		if (map->pending && map_fits(rs, map)) {
			map->pending = false;
			send_map(rs, map);
		}
	}
}

void rs_iomap_free_all(struct rs *rs)
{
	struct roci_list *mapped;
	while ((mapped = roci_list_take_first(&rs->maps))) {
		ibv_dereg_mr(map_of(mapped)->mr);
		free(map_of(mapped));
	}
}

/* The lowest index that no mapping has. */
static int free_index(const struct rs *rs)
{
	for (int index = 0;; index++) {
		const struct roci_list *l = rs->maps.next;
		while (l != &rs->maps && map_of(l)->index != index)
			l = l->next;
		if (l == &rs->maps)
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
	for (const struct roci_list *l = rs->maps.next; l != &rs->maps; l = l->next) {
		if (map_of(l)->pending && map_fits(rs, map_of(l)))
			return rs->state != RS_CONNECTED;
	}
	return true;
}

static off_t add_map(struct rs *rs, void *buf, size_t len, int prot, off_t offset)
{
	if (!rs->id->pd)
		return -ENOTCONN; /* the device is not known yet */
	struct map *map = calloc(1, sizeof(*map));
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
	roci_list_append(&rs->maps, &map->mapped);
	if (rs->state == RS_CONNECTED)
		rs_wait(rs, false, maps_are_sent);
	return (off_t)map->offset;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram || !buf || !len || len > UINT32_MAX || (prot & ~(PROT_WRITE | PROT_READ | PROT_NONE)))
		return rs_result(-EINVAL);
	pthread_mutex_lock(&rs->lock);
	off_t result = add_map(rs, buf, len, prot, offset);
	pthread_mutex_unlock(&rs->lock);
	return result < 0 ? rs_result((int)result) : result;
}

/* The peer keeps its entry. The device refuses the peer's writes from now on. */
int riounmap(int socket, void *buf, size_t len)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	int err = -EINVAL;
	pthread_mutex_lock(&rs->lock);
	for (struct roci_list *l = rs->maps.next; l != &rs->maps; l = l->next) {
		struct map *map = map_of(l);
		if (map->mr->addr != buf || map->mr->length != len)
			continue;
		roci_list_remove(l);
		err = -ibv_dereg_mr(map->mr);
		free(map);
		break;
	}
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

/* The peer's mapping that holds `offset`. The peer may write to its entry at any time: each field is read once. */
static bool find_peer_map(const struct rs *rs, uint64_t offset, struct rs_iomap *map)
{
	for (int i = 0; i < rs->options.iomap_size; i++) {
		const volatile struct rs_iomap *entry = &rs->send.maps[i];
		map->offset = entry->offset;
		map->sge.addr = entry->sge.addr;
		map->sge.key = entry->sge.key;
		map->sge.length = entry->sge.length;
		if (map->sge.length && offset >= map->offset && offset - map->offset < map->sge.length)
			return true;
	}
	return false;
}

static bool can_write(const struct rs *rs)
{
	return rs->state == RS_CONNECTED && rs->writable && rs->send.sq_room && rs->send.room;
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
		struct rs_iomap map;
		if (!*err && !find_peer_map(rs, offset + done, &map))
			*err = -EINVAL;
		if (*err)
			break;
		uint64_t into = offset + done - map.offset, room = map.sge.length - into;
		uint64_t now = count - done < room ? count - done : room;
		if (now > rs->send.room)
			now = rs->send.room;
		*err = rs_stream_post_data(rs, buf + done, (uint32_t)now, rs_msg(RS_OP_WRITE, (uint32_t)now),
					   map.sge.addr + into, map.sge.key, false);
		if (*err)
			break;
		done += now;
	}
	return done;
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct rs *rs = rs_table_find(socket);
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
