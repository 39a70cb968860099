/* SPDX-License-Identifier: BSD-2-Clause */
/* errno, where no call is known. */
#include "explain/table.h"

#include <errno.h>

static const struct explanation rows[] = {
	{
		.kind = EXPLAIN_ERRNO,
		.code = EINVAL,
		.name = "EINVAL",
		.phrases = "invalid argument",
		.title = "an argument of the call is wrong, or the object is not in the state for it",
		.meaning = "The word is the same for each call; which call it was decides. Paste the whole line of the "
			   "log, or name the call: `roci explain \"ibv_modify_qp EINVAL\"`.",
		.look = "this side: the arguments of the call",
		.steps = {"`roci run --why PROGRAM` names the check, the field and its value"},
		.see = "roci explain --provoke \"ibv_create_cq: EINVAL\"",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = ENOMEM,
		.name = "ENOMEM",
		.phrases = "cannot allocate memory|out of memory",
		.title = "memory, locked memory, or room in a queue or table is used up",
		.meaning = "For ibv_reg_mr(), ibv_create_cq() and ibv_create_qp() it is most often the limit of locked "
			   "memory; for ibv_post_send() and ibv_post_recv() a full queue.",
		.look = "this side",
		.steps = {"`ulimit -l`", "name the call too: `roci explain \"ibv_reg_mr ENOMEM\"`"},
		.see = "roci explain --provoke \"ibv_post_send: ENOMEM\"",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = ETIMEDOUT,
		.name = "ETIMEDOUT",
		.phrases = "connection timed out",
		.title = "the far end did not answer",
		.meaning =
			"As the status of an event of rdma_cm (-110): ADDR_ERROR: no answer to ARP; ROUTE_ERROR: none "
			"from the subnet manager; UNREACHABLE: none from the far end's connection manager.",
		.look = "the far end, and the way to it",
		.steps = {"`ping` the far end", "a firewall: UDP port 4791 for RoCE v2"},
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = ENODEV,
		.name = "ENODEV",
		.phrases = "no such device",
		.title = "there is no such device, or it has gone",
		.meaning =
			"No RDMA device belongs to the address, the driver is not loaded, or the device was removed. "
			"On roci0 also after fork(): the child has to open the device again.",
		.look = "this side: `ibv_devices`, `rdma link`",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = ECONNREFUSED,
		.name = "ECONNREFUSED",
		.phrases = "connection refused|unable to init the socket connection|couldn t connect to", /* perftest,
													     without its
													     errno */
		.title = "nobody listens on that port at the far end",
		.meaning =
			"From rdma_cm over iWARP, from rsockets and synchronous rdma_connect(), it stands for a "
			"rejection. Many RDMA programs also make a TCP connection first, to exchange addresses: then "
			"it is that one.",
		.look = "the far end: is the server running, on that port and address?",
		.causes = {"the server is not started, or has ended", "the port differs", "a firewall rejects",
			   "of a line that names no errno: the far end may not be reachable at all"},
		.steps = {"start the server first", "`ss -ltn` at the far end shows TCP listeners",
			  "`ping` the far end"},
		.see = "roci explain --provoke UNREACHABLE",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = ECONNRESET,
		.name = "ECONNRESET",
		.phrases = "connection reset by peer",
		.title = "the far end closed the connection while it was in use",
		.meaning = "From rsockets, from rdma_cm over iWARP, or from the TCP connection by which a program "
			   "exchanges addresses.",
		.look = "the far end: its log at that moment",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EHOSTUNREACH,
		.name = "EHOSTUNREACH",
		.phrases = "no route to host",
		.title = "the far end's address does not answer on its network",
		.meaning = "ARP or neighbour discovery got no answer.",
		.look = "the far end: is it up, and is the address right?",
		.steps = {"`ping`, `ip neigh`"},
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = ENETUNREACH,
		.name = "ENETUNREACH",
		.phrases = "network is unreachable",
		.title = "there is no route to that address",
		.meaning = "The routing table of this side has no entry for it.",
		.look = "this side: `ip route get ADDRESS`",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EADDRNOTAVAIL,
		.name = "EADDRNOTAVAIL",
		.phrases = "cannot assign requested address",
		.title = "the address is not one of this host",
		.meaning = "See rdma_bind_addr: EADDRNOTAVAIL.",
		.look = "this side: `ip addr`",
		.see = "roci explain --provoke \"rdma_bind_addr: EADDRNOTAVAIL\"",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EADDRINUSE,
		.name = "EADDRINUSE",
		.phrases = "address already in use|listens there already",
		.title = "another program has the port",
		.meaning = "See rdma_bind_addr: EADDRINUSE.",
		.look = "this side: who has the port?",
		.see = "roci explain --provoke \"rdma_bind_addr: EADDRINUSE\"",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EACCES,
		.name = "EACCES",
		.phrases = "permission denied",
		.title = "this user may not open the device's file",
		.meaning = "/dev/infiniband/uverbs* and rdma_cm should have mode 0666.",
		.look = "this side: `ls -l /dev/infiniband`",
		.causes = {"udev rules of rdma-core are missing", "a container without the device"},
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EPERM,
		.name = "EPERM",
		.phrases = "operation not permitted",
		.title = "the operation needs a right that this process does not have",
		.meaning = "Raw packet QPs and Q_Keys with the highest bit set need CAP_NET_RAW.",
		.look = "this side: capabilities, limits",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EOPNOTSUPP,
		.name = "EOPNOTSUPP",
		.phrases = "operation not supported",
		.title = "the device or transport does not have this",
		.meaning = "The call is right, but this device has no such option.",
		.look = "this side: what the device can do (`ibv_devinfo -v`)",
		.steps = {"`roci run --why` names the option"},
		.see = "roci explain --provoke \"ibv_create_qp: EOPNOTSUPP\"",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = ENOSYS,
		.name = "ENOSYS",
		.phrases = "function not implemented",
		.title = "the driver or kernel has no such call",
		.meaning = "The provider does not implement it, or the kernel is older than the library.",
		.look = "this side: versions of kernel and rdma-core",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EBUSY,
		.name = "EBUSY",
		.phrases = "device or resource busy",
		.title = "something still uses the object",
		.meaning = "See ibv_destroy: EBUSY. For rdma_listen() and rdma_destroy_id(): the id is in use.",
		.look = "this side: the order of the calls",
		.see = "roci explain --provoke \"ibv_destroy: EBUSY\"",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EFAULT,
		.name = "EFAULT",
		.phrases = "bad address",
		.title = "a pointer or range is not memory of this process",
		.meaning = "For ibv_reg_mr() the range could not be pinned.",
		.look = "this side: address and length",
		.see = "roci explain --provoke \"ibv_reg_mr: EFAULT\"",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EIO,
		.name = "EIO",
		.phrases = "input output error",
		.title = "the device or its firmware failed",
		.meaning = "Adapters answer so when a firmware command fails, and when the device is in a fatal state.",
		.look = "this side: `dmesg`",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EMFILE,
		.name = "EMFILE",
		.phrases = "too many open files",
		.title = "this process has as many files open as it may: raise `ulimit -n`",
		.meaning = "A device, a completion channel and an event channel have descriptors, and so has each "
			   "connection of some programs. An RDMA program needs 64 at least.",
		.look = "this side: `ulimit -n`; in a container: --ulimit nofile=1024",
	},
	{
		.kind = EXPLAIN_ERRNO,
		.code = EAGAIN,
		.name = "EAGAIN",
		.phrases = "resource temporarily unavailable",
		.title = "nothing is there now: try again",
		.meaning = "A channel was set to O_NONBLOCK and has no event.",
		.look = "nowhere: wait with poll()",
	},
};

EXPLAIN_TABLE(explain_errnos, rows);
