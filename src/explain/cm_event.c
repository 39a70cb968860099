/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of rdma_cm: enum rdma_cm_event_type, rdma_get_cm_event(3). */
#include "explain/table.h"

#include <rdma/rdma_cma.h>

static const struct explanation rows[] = {
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_ADDR_RESOLVED,
		.name = "RDMA_CM_EVENT_ADDR_RESOLVED",
		.title = "rdma_resolve_addr() has succeeded: the id is bound to a device",
		.meaning = "The next step is rdma_resolve_route().",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke ADDR_RESOLVED",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_ADDR_ERROR,
		.name = "RDMA_CM_EVENT_ADDR_ERROR",
		.title = "rdma_resolve_addr() has failed: there is no RDMA way to that address",
		.meaning = "The event's status is a negative errno: -19 (ENODEV) no RDMA device has the interface that "
			   "the route uses; -101 (ENETUNREACH) no route; -110 (ETIMEDOUT) or -113 (EHOSTUNREACH) the "
			   "neighbour does not answer ARP; -99 (EADDRNOTAVAIL) the source address is not of this host.",
		.look = "this side: route and device; then whether the far end is up",
		.causes = {"the address is reached by an interface without an RDMA device",
			   "the address is wrong, or the far end is down",
			   "the source address that was asked for is not of this host",
			   "127.0.0.1 with an adapter: most adapters do not serve the loopback address",
			   "roci0: another program has UDP port 4791 of this side's address (-98, EADDRINUSE)"},
		.steps = {"`ip route get ADDRESS`: which interface?", "`rdma link`: which device belongs to it?",
			  "`ping ADDRESS`"},
		.see = "roci explain --provoke ADDR_ERROR",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_ROUTE_RESOLVED,
		.name = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		.title = "rdma_resolve_route() has succeeded",
		.meaning = "The next steps are rdma_create_qp() and rdma_connect().",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke ROUTE_RESOLVED",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_ROUTE_ERROR,
		.name = "RDMA_CM_EVENT_ROUTE_ERROR",
		.title = "rdma_resolve_route() has failed: there is no path to the far end",
		.meaning = "On InfiniBand the subnet manager answered no path record. The status is a negative errno: "
			   "-110 (ETIMEDOUT) nobody answered, -22 (EINVAL) there is no such path. RoCE asks nobody.",
		.look = "the fabric: subnet manager, partitions",
		.causes = {"no subnet manager runs", "the two ports are in different partitions",
			   "RoCE: the GID of the address is missing, or the interface is down"},
		.steps = {"`ibstat`: is the port Active?", "`sminfo`: is there a subnet manager?"},
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_CONNECT_REQUEST,
		.name = "RDMA_CM_EVENT_CONNECT_REQUEST",
		.title = "a client wants to connect: accept or reject the event's id",
		.meaning = "event->id is a new id; event->listen_id is the listener.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke CONNECT_REQUEST",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_CONNECT_RESPONSE,
		.name = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		.title = "the server has accepted, and the program moves its QP itself",
		.meaning =
			"Only ids without a QP of rdma_create_qp() get it. rdma_establish() or rdma_accept() ends the "
			"handshake.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke CONNECT_RESPONSE",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_CONNECT_ERROR,
		.name = "RDMA_CM_EVENT_CONNECT_ERROR",
		.title = "the connection failed on the last steps",
		.meaning =
			"This side could not move its QP, or the handshake broke off. The status is a negative errno.",
		.look = "this side first: the QP's attributes",
		.causes = {"the QP could not be moved to RTR or RTS: its MTU or depth do not fit",
			   "the far end ended during the handshake"},
		.steps = {"`roci run --why` names the attribute", "see the errno of the status"},
		.see = "roci explain --provoke CONNECT_ERROR",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_UNREACHABLE,
		.name = "RDMA_CM_EVENT_UNREACHABLE",
		.phrases = "no answer from|no rdma program runs",
		.title = "the far end did not answer the connection request",
		.meaning =
			"The REQ was sent several times and nothing came back (status -110, ETIMEDOUT). For UD (SIDR), "
			"the far end may have answered, and said no: then the status is positive: 1 nobody serves that "
			"port, 2 it refused, 3 it has no QP for it.",
		.look = "the far end, and the way to it",
		.causes = {"no RDMA software runs at the far end: nobody has port 4791, or the device is down",
			   "a firewall drops UDP port 4791, or a router (NAT) in front of the far end does not forward "
			   "it",
			   "the two sides do not speak the same protocol: RoCE v1 and v2, RoCE and iWARP",
			   "the listener does not take its events"},
		.steps = {"`ping` first, then `rping -s` there and `rping -c -a ADDRESS` here",
			  "`tcpdump udp port 4791` at the far end: does the request arrive?"},
		.see = "roci explain --provoke UNREACHABLE",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_REJECTED,
		.name = "RDMA_CM_EVENT_REJECTED",
		.phrases = "connect rejected|connection rejected|cm rejected",
		.title = "the far end answered, and said no",
		.meaning = "The status is the reason of the REJ on InfiniBand and RoCE: 8 nobody listens there, 28 the "
			   "program rejected it. On iWARP it is a negative errno such as -111 (ECONNREFUSED).",
		.look = "the far end: is the server there, and what does it log?",
		.causes = {"status 8: no program listens on that port",
			   "status 28: the program itself rejected, ended, or failed",
			   "status 10: an old connection was still known; connect again"},
		.steps = {"`roci explain REJ N` with the status N tells more"},
		.see = "roci explain --provoke REJECTED",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_ESTABLISHED,
		.name = "RDMA_CM_EVENT_ESTABLISHED",
		.title = "the connection is there",
		.meaning = "Both sides get it. The side that accepted may receive messages before.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke ESTABLISHED",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_DISCONNECTED,
		.name = "RDMA_CM_EVENT_DISCONNECTED",
		.title = "the connection has ended",
		.meaning = "One side called rdma_disconnect(), or its process ended. The QP is in ERR, and its "
			   "outstanding requests complete with WR_FLUSH_ERR.",
		.look = "the side that did not ask for it: why did the other one close?",
		.causes = {"the other side is done: not an error", "the other side's process ended or failed",
			   "the other side did not answer the keepalive or its host restarted"},
		.steps = {"look at the other side's log at the same time"},
		.see = "roci explain --provoke DISCONNECTED",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_DEVICE_REMOVAL,
		.name = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		.title = "the device goes away: close everything on it",
		.meaning = "The driver is being unloaded, or the adapter was reset or pulled out.",
		.look = "this side: the kernel log",
		.causes = {"the administrator removed the module or reset the adapter", "the adapter failed"},
		.steps = {"destroy the ids, and open the device again later"},
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_MULTICAST_JOIN,
		.name = "RDMA_CM_EVENT_MULTICAST_JOIN",
		.title = "the multicast group was joined",
		.meaning = "The event holds address handle, QPN and Q_Key for sending.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke MULTICAST_JOIN",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_MULTICAST_ERROR,
		.name = "RDMA_CM_EVENT_MULTICAST_ERROR",
		.title = "the multicast group could not be joined, or was lost",
		.meaning = "The status is a negative errno.",
		.look = "this side: QP, Q_Key, group; on InfiniBand the subnet manager",
		.causes = {"the Q_Key differs from that of the group", "the QP cannot be attached: limits, type"},
		.see = "roci explain --provoke MULTICAST_ERROR",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_ADDR_CHANGE,
		.name = "RDMA_CM_EVENT_ADDR_CHANGE",
		.title = "the network device of this id has a new hardware address (bonding failed over)",
		.meaning = "The connection may still work, over another port. A program that wants the best path "
			   "connects again.",
		.look = "this side: bonding",
	},
	{
		.kind = EXPLAIN_CM_EVENT,
		.code = RDMA_CM_EVENT_TIMEWAIT_EXIT,
		.name = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
		.title = "the QP's number may be used again",
		.meaning = "It comes a while after the disconnect: packets that were on the way are gone now.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke TIMEWAIT_EXIT",
	},
};

EXPLAIN_TABLE(explain_cm_events, rows);
