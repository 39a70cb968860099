/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's addresses, which the GID table follows while the device is open. The kernel says by a netlink socket
 * (rtnetlink(7)) that an address or interface changed; then the thread reads them all again. Where there is no such
 * socket, the table stays as it was when the device was opened.
 */
#ifndef ROCI_DEVICE_ADDRESSES_H
#define ROCI_DEVICE_ADDRESSES_H

#include "device/gid.h"

struct roci_device;

struct roci_addresses {
	int fd;           /* the netlink socket; -1: none */
	uint64_t look_at; /* when a thread looks again, if one is awake; 0: something came */
	bool stale;       /* something changed that is not in the table yet */
	bool looking;     /* a thread reads the addresses */
	bool warned;      /* somebody was, that the table is full */
	struct roci_gid_entry found[ROCI_MAX_ADDRESSES]; /* of the thread that looks */
};

/* Reads the first table. Returns 0 or a negative errno. */
int roci_addresses_open(struct roci_device *dev);
/* From now on changes wake the thread. */
void roci_addresses_watch(struct roci_device *dev);
void roci_addresses_close(struct roci_device *dev);

/* The socket is readable. */
void roci_addresses_ready(struct roci_addresses *a);

/* For a thread that drives, at every turn, with the device's lock held. If something changed, gives it up while it
 * reads the addresses, then brings table, sockets and listeners up to date and reports the events. Returns the time. */
uint64_t roci_addresses_look(struct roci_device *dev, uint64_t now);

#endif
