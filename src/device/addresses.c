/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/addresses.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>

#include "device/device_state.h"
#include "device/nat.h"
#include "device/say.h"
#include "device/sys.h"

/* How often a thread looks that drives without sleeping, or naps. One that sleeps is woken. */
#define LOOK_NS 100000000u

/* The socket comes before the first scan, so that no change is missed. */
static int open_socket(void)
{
	struct sockaddr_nl name = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = roci_sys_socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -1;
	if (!roci_sys_bind(fd, (struct sockaddr *)&name, sizeof(name)))
		return fd;
	roci_sys_close(fd);
	return -1;
}

int roci_addresses_open(struct roci_device *dev)
{
	struct roci_addresses *a = &dev->addresses;
	int count;

	a->fd = open_socket();
	count = roci_gid_table(a->found, ROCI_MAX_ADDRESSES);
	if (count < 0) {
		roci_addresses_close(dev);
		return count;
	}
	roci_gids_merge(&dev->gids, a->found, count, 0);
	return 0;
}

void roci_addresses_watch(struct roci_device *dev)
{
	struct roci_addresses *a = &dev->addresses;

	if (a->fd >= 0 && roci_progress_watch(&dev->progress, a->fd, ROCI_PROGRESS_ADDRESSES))
		roci_addresses_close(dev);
}

void roci_addresses_close(struct roci_device *dev)
{
	if (dev->addresses.fd >= 0)
		roci_sys_close(dev->addresses.fd);
	dev->addresses.fd = -1;
}

void roci_addresses_ready(struct roci_addresses *a)
{
	a->look_at = 0;
}

/* Takes what has come. What it says is not read: the addresses are. When the socket overran (ENOBUFS) something has
 * changed, too. */
static bool something_came(int fd)
{
	uint8_t bytes[64]; /* the rest of a message is dropped */
	bool came = false;

	for (unsigned i = 0; i < 1024; i++) {
		if (roci_sys_recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0 || errno == ENOBUFS)
			came = true;
		else if (errno != EINTR)
			break;
	}
	return came;
}

/* The indices that QPs and address handles refer to. */
static uint32_t in_use(struct roci_device *dev)
{
	uint32_t used = roci_engine_sgids(dev->engine);

	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++)
		if (atomic_load_explicit(&dev->gid_holds[i], memory_order_relaxed))
			used |= 1u << i;
	return used;
}

static void report(struct roci_device *dev, enum roci_async_type type)
{
	dev->on_event(&(struct roci_event){.kind = ROCI_EV_ASYNC, .type = type, .user = dev});
}

static void warn_left_out(struct roci_device *dev, int left_out)
{
	if (!left_out || dev->addresses.warned)
		return;
	dev->addresses.warned = true;
	roci_device_say(
		"roci: the host has %d addresses more than the %d that roci0's GID table has room for; what is sent "
		"to those does not arrive\n",
		left_out, ROCI_MAX_GIDS);
}

/* Says why QPs and address handles do not get on. `used`: those that something still refers to. What is behind a NAT
 * goes on from another address (nat.h), if the host has one. */
static void warn_lost(const struct roci_gids *table, uint32_t lost, uint32_t used, bool waits)
{
	static const char
		later[] = "What uses it goes on when it is back, if the connections have not timed out by then.",
		other[] = "What uses it goes on when it is back, and what is behind a NAT also when the host has "
			  "another address, if the connections have not timed out by then.",
		moved[] = "All connections that used it are behind a NAT, and go on from another address.";
	char text[ROCI_GID_TEXT];

	for (int i = 0; i < table->count; i++) {
		if (!(lost >> i & 1) || table->entries[i].state != ROCI_GID_GONE)
			continue;
		roci_gid_text(table->entries[i].gid, text);
		roci_device_say("roci: this host has lost the address %s (%s). %s\n", text, table->entries[i].ifname,
				!(used >> i & 1) ? moved
				: waits          ? other
						 : later);
	}
}

static atomic_uint changes;

unsigned roci_device_gid_changes(void)
{
	return atomic_load(&changes);
}

static void follow(struct roci_device *dev, int count)
{
	bool was_up = roci_gids_first(&dev->gids), is_up;
	struct roci_gids table = dev->gids;
	uint32_t used = in_use(dev);
	struct roci_gid_change change = roci_gids_merge(&table, dev->addresses.found, count, used);

	pthread_mutex_lock(&dev->gids_lock);
	atomic_fetch_add(&changes, 1);
	dev->gids = table;
	pthread_mutex_unlock(&dev->gids_lock);
	warn_left_out(dev, change.left_out);
	roci_udp_follow(dev->links.udp, &change);
	roci_cm_host_follow(dev, &change);
	roci_nat_rehome(dev, roci_now());
	warn_lost(&table, change.unready & used, in_use(dev), dev->nat_look_at != ROCI_CM_NEVER);
	is_up = roci_gids_first(&dev->gids);
	if (change.visible)
		report(dev, ROCI_EVENT_GID_CHANGE);
	if (was_up != is_up)
		report(dev, is_up ? ROCI_EVENT_PORT_ACTIVE : ROCI_EVENT_PORT_ERR);
}

uint64_t roci_addresses_look(struct roci_device *dev, uint64_t now)
{
	struct roci_addresses *a = &dev->addresses;
	int count, before;

	if (now < a->look_at || a->fd < 0 || a->looking)
		return now;
	a->look_at = now + LOOK_NS;
	if (something_came(a->fd))
		a->stale = true;
	if (!a->stale)
		return now;
	a->looking = true;
	roci_lock_release(&dev->lock);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* or nobody would look again */
	count = roci_gid_table(a->found, ROCI_MAX_ADDRESSES);
	pthread_setcancelstate(before, NULL);
	roci_lock_take(&dev->lock);
	a->looking = false;
	a->stale = count < 0; /* no memory or no descriptor: once more next time */
	if (count >= 0)
		follow(dev, count);
	return roci_now();
}
