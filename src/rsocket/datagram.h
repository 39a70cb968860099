/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagram rsockets. Results are 0, a number of bytes, or a negative errno. */
#ifndef ROCI_RSOCKET_DATAGRAM_H
#define ROCI_RSOCKET_DATAGRAM_H

#include "rsocket/rsocket.h"

int rs_datagram_create(struct rs *rs);
void rs_datagram_destroy(struct rs *rs);
int rs_datagram_bind(struct rs *rs, const struct sockaddr *addr, socklen_t len);
int rs_datagram_connect(struct rs *rs, const struct sockaddr *addr, socklen_t len);
int rs_datagram_peer_name(struct rs *rs, struct sockaddr_storage *name);
int rs_datagram_name(struct rs *rs, struct sockaddr_storage *name);
/* addr NULL: to the connected peer. */
ssize_t rs_datagram_send(struct rs *rs, const void *buf, size_t len, int flags, const struct sockaddr *addr,
			 socklen_t addrlen);
ssize_t rs_datagram_sendv(struct rs *rs, const struct iovec *iov, size_t count, int flags);
ssize_t rs_datagram_recv(struct rs *rs, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen);
/* Poll events, of those asked. `arm`: first requests an event for the next completion. */
short rs_datagram_events(struct rs *rs, short asked, bool arm);
/* The descriptor of the CQ. -1: there is no QP yet. */
int rs_datagram_cq_fd(const struct rs *rs);

#endif
