/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners, and which one a request is for. */
#ifndef ROCI_CM_LISTENER_H
#define ROCI_CM_LISTENER_H

#include "cm/backlog.h"
#include "cm/cm.h"
#include "cm/exchange.h"

struct roci_listener {
	struct roci_cm *cm;
	struct roci_list all; /* in cm->listeners */
	struct roci_cm_listen params;
	struct roci_backlog backlog;
};

/* The listener for a REQ or SIDR_REQ: the closest one for its service id and for the address to which it came. NULL:
 * there is none, or the IP CM header names other addresses than the datagram. *ip is that header if *has_ip. */
struct roci_listener *roci_listener_for_request(struct roci_cm *cm, const struct roci_cm_source *from,
						const struct roci_cm_msg *req, struct roci_cm_ip *ip, bool *has_ip);

#endif
