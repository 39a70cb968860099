/* SPDX-License-Identifier: BSD-2-Clause */
/* The last argument of `roci send`: the receiver. */
#ifndef ROCI_TARGET_H
#define ROCI_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target {
	char host[256];
	uint16_t port;           /* 0: not given */
	const char *ticket_file; /* of "@FILE", which names host and port; points into the argument. Else NULL */
};

/* Parses "HOST", "HOST:PORT", "IPV6", "[IPV6]", "[IPV6]:PORT" or "@FILE". 0, or -EINVAL with the error in *why. */
int target_parse(const char *text, struct target *target, const char **why);

/* Whether the host is a link-local IPv6 address without "%INTERFACE": it leads nowhere. */
bool target_lacks_interface(const char *host);

/* What is wrong with the interface of an IPv6 address, also of this machine: a link-local one has none, or there is
 * none of that name. NULL: nothing. */
const char *target_interface_wrong(const char *host);

/* Whether only this machine gets there: 127.0.0.1, ::1 and the like. */
bool target_is_loopback(const char *host);

/* What a peer writes for a host of this machine: after a link-local address, "%INTERFACE" in place of what this machine
 * has there. Returns what INTERFACE is, for people, or NULL: the host has none. */
const char *target_of_peer(const char *host, char *text, size_t size);

#endif
