/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The eventfd behind completion channels, async events and rdma_cm's event channels: readable exactly while events
 * wait. The events themselves are in a list. One lock of the caller covers the list and vb_event_fd_signal() and
 * vb_event_fd_clear(). librdmacm.so.1 has its own copy of these functions.
 */
#ifndef ROCI_VERBS_EVENT_FD_H
#define ROCI_VERBS_EVENT_FD_H

#include <stdbool.h>

/* A blocking descriptor, or -1 with errno. The caller closes it. */
int vb_event_fd_create(void);
/* Makes it readable. Call it for each event, because a program may wait edge-triggered (EPOLLET). */
void vb_event_fd_signal(int fd);
/* Makes it unreadable. Never waits. */
void vb_event_fd_clear(int fd);
/* Waits until it is readable: 0; may return early, too. Or -1 with errno: EAGAIN: the program made the descriptor
 * non-blocking; EINTR: vb_event_fd_interrupted(); EBADF: it is closed. */
int vb_event_fd_wait(int fd);
/* A signal has ended a wait of this thread. Whether the program hears of it: where adapters wait, in read(2) or
 * write(2), the kernel waits again if the signal's handler has SA_RESTART (signal(7)). poll(2) does not, nor does it
 * say which signal came. So this is true where a handler that this thread may have run lacks the flag, but for those of
 * faults. */
bool vb_event_fd_interrupted(void);

#endif
