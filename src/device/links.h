/* SPDX-License-Identifier: BSD-2-Clause */
/* The links of a device (link.h), and the side door. */
#ifndef ROCI_DEVICE_LINKS_H
#define ROCI_DEVICE_LINKS_H

struct roci_device;

struct roci_links {
	struct roci_link *top;   /* to send and receive by: fault, or pieces where no faults are wanted */
	struct roci_link *delay; /* below fault; NULL: nothing is delayed */
	struct roci_link *seal;
	struct roci_link *capture; /* NULL: none */
	struct roci_link *watch;   /* below seal while somebody watches; NULL: nobody does (watch.h) */
	struct roci_udp *udp;
	struct roci_side_door *door;
	struct roci_door_queue *door_queue;
};

/* Opens them, as $ROCI_CAPTURE and $ROCI_FAULT say; an unknown $ROCI_PATH is -EINVAL, too. Returns 0 or a negative
 * errno after a line on stderr. */
int roci_links_open(struct roci_device *dev);
void roci_links_close(struct roci_links *links);
/* Closes the descriptors in a forked child, and nothing else. */
void roci_links_close_in_child(struct roci_links *links);
/* The process is about to end without closing them: the other processes of the host see that it is gone. */
void roci_links_leave_host(struct roci_device *dev);

#endif
