/* SPDX-License-Identifier: BSD-2-Clause */
/* The status of a completion: enum ibv_wc_status, IBTA 11.6.2. */
#include "explain/table.h"

#include <infiniband/verbs.h>

static const struct explanation rows[] = {
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_SUCCESS,
		.name = "IBV_WC_SUCCESS",
		.title = "the work request was done",
		.meaning = "The request is complete. Of a SEND or WRITE on RC this means that the peer's adapter has "
			   "acknowledged it; it does not mean that the peer's program has seen it.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke SUCCESS",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_LOC_LEN_ERR,
		.name = "IBV_WC_LOC_LEN_ERR",
		.phrases = "local length error|local length",
		.title = "a message did not fit: the posted receive was too small, or the request too long",
		.meaning = "On a receive: the message that came was longer than the buffers of the receive that it "
			   "took. On a send: the request was longer than the port or service allows. The QP is in ERR.",
		.look = "this side, and what the peer sends",
		.causes = {"the receive's buffers (sum of its SGEs) are smaller than the message; the sender then gets "
			   "REM_INV_REQ_ERR",
			   "UD: the receive lacks the 40 bytes for the GRH in front of the payload",
			   "UD: a datagram longer than the path MTU was posted", "a message of more than 2 GiB"},
		.steps = {"print the peer's message length and the length of the posted receive",
			  "UD: post receives of 40 bytes more than the largest datagram"},
		.see = "roci explain --provoke LOC_LEN_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_LOC_QP_OP_ERR,
		.name = "IBV_WC_LOC_QP_OP_ERR",
		.phrases = "local qp operation error|local qp operation|local qp op",
		.title = "this QP could not do what the request asks: its own attributes or state forbid it",
		.meaning = "The adapter found the request inconsistent with the QP while it executed it. Nothing went "
			   "wrong at the peer.",
		.look = "this side: the request and the QP that it was posted to",
		.causes = {"an operation that the QP was not created or connected for, such as RDMA READ with "
			   "max_rd_atomic 0",
			   "an opcode that the transport or the adapter does not have",
			   "UD: the address handle belongs to another PD than the QP",
			   "a malformed request: inconsistent segments, a wrong inline length"},
		.steps = {"compare the opcode with the QP's type and with max_rd_atomic (ibv_query_qp)",
			  "adapter drivers say more in the kernel log: `dmesg`"},
		.see = "roci explain --provoke LOC_QP_OP_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_LOC_EEC_OP_ERR,
		.name = "IBV_WC_LOC_EEC_OP_ERR",
		.phrases = "local ee context operation error",
		.title = "an error of an end-to-end context, which only Reliable Datagram has",
		.meaning = "Of the Reliable Datagram service, which no current device offers.",
		.look = "the driver: a program cannot cause it",
		.causes = {"a wrong driver, or memory of the completion that was overwritten"},
		.steps = {"check that struct ibv_wc is read only when ibv_poll_cq() returned more than 0"},
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_LOC_PROT_ERR,
		.name = "IBV_WC_LOC_PROT_ERR",
		.phrases = "local protection error|local protection",
		.title = "a buffer of this side's own request is not registered as the request needs it",
		.meaning = "An SGE of the request names memory that its lkey does not cover, or not with the needed "
			   "right. The peer has nothing to do with it.",
		.look = "this side: the SGEs of the request (addr, length, lkey)",
		.causes = {"the lkey is wrong, or its region was deregistered while the request was outstanding",
			   "addr and length leave the region: check for an offset counted twice",
			   "the region belongs to another PD than the QP",
			   "a receive, a READ or an atomic writes into memory that was registered without "
			   "IBV_ACCESS_LOCAL_WRITE",
			   "GPU memory: the peer-memory mapping was revoked"},
		.steps = {"print addr, length and lkey of each SGE beside mr->addr, mr->length and mr->lkey",
			  "check that mr->pd == qp->pd", "`roci run --why` names the check that failed"},
		.see = "roci explain --provoke LOC_PROT_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_WR_FLUSH_ERR,
		.name = "IBV_WC_WR_FLUSH_ERR",
		.phrases = "work request flushed error|wr flushed|wr flush error|work request flushed|wr flush|flushed "
			   "error|flush err",
		.title = "the QP was in the error state, so the request was not executed: a consequence, not the cause",
		.meaning = "When a QP enters ERR, all requests that are still in its queues complete with this status. "
			   "What brought the QP into ERR is an earlier completion, an event, or a plain disconnect. "
			   "After a disconnect it is normal for each receive that was still posted.",
		.look = "the first completion of this QP that is neither SUCCESS nor WR_FLUSH_ERR, on either side",
		.causes = {"the connection was closed (rdma_disconnect() by either side) while receives were posted: "
			   "not an error",
			   "an earlier request of this QP failed: read that status",
			   "the peer's request failed here: the QP goes to ERR with an asynchronous event "
			   "(QP_ACCESS_ERR, QP_REQ_ERR)",
			   "the peer's process ended, and rdma_cm moved the QP to ERR",
			   "the program moved the QP to ERR itself",
			   "a request was posted to a QP that is in ERR already"},
		.steps = {"log every completion with its wr_id, and look for the first one that failed",
			  "look at the peer's log at the same time: it may hold the real error",
			  "at a planned disconnect, ignore this status",
			  "read asynchronous events (ibv_get_async_event)"},
		.see = "roci explain --provoke WR_FLUSH_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_MW_BIND_ERR,
		.name = "IBV_WC_MW_BIND_ERR",
		.phrases = "memory management operation error|memory bind operation error|memory window bind "
			   "error|memory bind error|mw bind",
		.title = "a memory window could not be bound",
		.meaning = "The bind request asks for more than the region or the window allows.",
		.look = "this side: the bind request, its region and its window",
		.causes = {"the region was registered without IBV_ACCESS_MW_BIND",
			   "the window's range leaves the region",
			   "the window asks for remote write or atomic, and the region has no IBV_ACCESS_LOCAL_WRITE",
			   "window, region and QP are not of one PD",
			   "a window of type 2 that is bound already: invalidate it first"},
		.steps = {"`roci run --why` names the check that failed"},
		.see = "roci explain --provoke MW_BIND_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_BAD_RESP_ERR,
		.name = "IBV_WC_BAD_RESP_ERR",
		.phrases = "bad response error|bad response",
		.title = "the peer answered with a packet that does not belong to the request",
		.meaning = "A response had an unexpected opcode or length, or the NAK code was not a defined one.",
		.look = "the peer's device, and what lies between",
		.causes = {"a defect in one of the two devices or their drivers",
			   "the QP numbers or PSNs of the two sides do not belong together", "somebody forges packets"},
		.steps = {"capture the packets of both sides and look at the last response"},
		.see = "roci explain --provoke BAD_RESP_ERR",
		.foreign = true,
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_LOC_ACCESS_ERR,
		.name = "IBV_WC_LOC_ACCESS_ERR",
		.phrases = "local access error|local access",
		.title = "the peer's WRITE with immediate data was not allowed here, and this receive was to report it",
		.meaning =
			"The responder refused an RDMA WRITE with immediate data: key, range or rights are wrong. The "
			"receive that it would have completed says so. The peer gets REM_ACCESS_ERR.",
		.look = "what this side gave to the peer (rkey, address, rights), and what the peer makes of it",
		.causes = {"the peer uses a wrong or old rkey", "the peer's address and length leave the region",
			   "the region was registered without IBV_ACCESS_REMOTE_WRITE",
			   "the region belongs to another PD than this QP"},
		.steps = {"see REM_ACCESS_ERR: it is the same error, seen from the other side"},
		.see = "roci explain --provoke LOC_ACCESS_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_REM_INV_REQ_ERR,
		.name = "IBV_WC_REM_INV_REQ_ERR",
		.phrases = "remote invalid request error|remote invalid request",
		.title = "the peer refused the request as invalid: no such right on its QP, or too long a message",
		.meaning =
			"The responder sent NAK Invalid Request: its QP does not allow the operation, or the message "
			"does not fit its receive, or the packet makes no sense to it.",
		.look = "the peer: qp_access_flags of its QP, and the size of its receives",
		.causes = {"the peer's QP was not given the right: qp_access_flags lacks REMOTE_WRITE, REMOTE_READ or "
			   "REMOTE_ATOMIC (which is not the same as the region's rights)",
			   "the message is longer than the receive that the peer posted (the peer sees LOC_LEN_ERR)",
			   "more READs or atomics are outstanding than the peer's max_dest_rd_atomic",
			   "an atomic on an address that is no multiple of 8", "the path MTU of the two QPs differs"},
		.steps = {"print qp_access_flags, max_dest_rd_atomic and path_mtu of the peer's QP (ibv_query_qp)",
			  "compare the message's length with the peer's receive"},
		.see = "roci explain --provoke REM_INV_REQ_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_REM_ACCESS_ERR,
		.name = "IBV_WC_REM_ACCESS_ERR",
		.phrases = "remote access error|remote access",
		.title = "the peer refused access to its memory: rkey, range, rights or PD are wrong",
		.meaning = "The responder sent NAK Remote Access Error: the rkey is unknown to it, or the range leaves "
			   "the region, or the region lacks the right, or it belongs to another PD.",
		.look = "both: what the peer registered, and what this side makes of it",
		.causes = {"the rkey is wrong, or of a region that was deregistered or registered again since",
			   "remote_addr and length leave the region: a wrong offset, or addresses sent without "
			   "conversion to one byte order",
			   "the region was registered without IBV_ACCESS_REMOTE_WRITE (READ, ATOMIC)",
			   "the region belongs to another PD than the peer's QP",
			   "a memory window was invalidated, or bound on another QP"},
		.steps = {"print rkey and address where the peer registers, and where this side uses them: they must "
			  "be equal",
			  "check mr->pd == qp->pd at the peer",
			  "`roci run --why` on the peer's side says which of the four it was"},
		.see = "roci explain --provoke REM_ACCESS_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_REM_OP_ERR,
		.name = "IBV_WC_REM_OP_ERR",
		.phrases = "remote operation error|remote operation|remote op",
		.title = "the peer could not carry the request out, although it was valid",
		.meaning =
			"The responder sent NAK Remote Operational Error: something of its own failed, most often the "
			"receive that it had posted.",
		.look = "the peer: the status of its own completion",
		.causes = {"the peer's receive names memory that its lkey does not cover (the peer sees LOC_PROT_ERR)",
			   "the peer's QP or CQ failed, for example because its CQ overflowed",
			   "Soft-RoCE as the peer: the message was longer than its receive"},
		.steps = {"read the peer's completions and asynchronous events"},
		.see = "roci explain --provoke REM_OP_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_RETRY_EXC_ERR,
		.name = "IBV_WC_RETRY_EXC_ERR",
		.phrases = "transport retry counter exceeded|transport retry count exceeded|transport retry "
			   "exceeded|retry "
			   "count exceeded|retry exceeded",
		.title = "the peer did not acknowledge, however often the packet was sent",
		.meaning =
			"Nothing came back within timeout x (retry_cnt + 1). Either the packets do not arrive, or the "
			"answers do not, or there is no such QP at the peer.",
		.look = "the way between the two sides first, then the peer",
		.causes =
			{"the peer's process has ended, or its QP is gone or in ERR (a look at its log tells)",
			 "the path is wrong: GID index, VLAN, or a route by another interface than the GID's",
			 "a firewall drops UDP port 4791",
			 "the peer's QP is not in RTR yet, or the QP number or PSN was exchanged wrongly",
			 "the path MTU is larger than the network carries: small messages pass, large ones do not",
			 "the network loses packets under load (PFC or ECN are not set up), and timeout x retry_cnt is "
			 "short"},
		.steps =
			{"`ping` the address of the peer's GID from the address of this GID",
			 "let both sides use the same GID type: RoCE v2, and the same family (IPv4 or IPv6)",
			 "`roci doctor HOST` looks at the way to the peer, and sends packets through it",
			 "`ping -M do -s 4128` for a path MTU of 4096, `-s 1056` for 1024: with the 28 bytes that ping "
			 "adds, that is the MTU and the 60 bytes of RoCE's headers. Does the network carry it?",
			 "`ibv_rc_pingpong -g INDEX` between the two machines",
			 "raise timeout (14 is 67 ms, each step doubles) and retry_cnt (at most 7)"},
		.see = "roci explain --provoke RETRY_EXC_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_RNR_RETRY_EXC_ERR,
		.name = "IBV_WC_RNR_RETRY_EXC_ERR",
		.phrases = "rnr retry counter exceeded|rnr retry count exceeded|rnr retry exceeded|receiver not ready "
			   "retry "
			   "count exceeded|receive no ready retry count exceeded|receiver not ready|receive not ready",
		.title = "the peer had no receive posted for this message",
		.meaning =
			"Each SEND, and each WRITE with immediate data, takes one receive of the peer. There was none, "
			"the peer answered RNR NAK, and rnr_retry attempts did not help. The peer lives, and the way "
			"to it works.",
		.look = "the peer: when and how many receives it posts",
		.causes =
			{"the peer posts its receives after the first message may arrive: post before the QP goes to "
			 "RTR, or before rdma_accept() or rdma_connect()",
			 "the sender has more messages on the way than the peer has receives: there is no flow control "
			 "in the program's protocol",
			 "the peer does not post a receive again after it took one",
			 "the receives went to another QP or SRQ", "rnr_retry is 0, so the first RNR NAK is fatal"},
		.steps = {"count: receives posted by the peer, messages sent",
			  "let the peer grant credits, and send only with a credit",
			  "rnr_retry 7 repeats without end: it hides the mistake, but the message arrives"},
		.see = "roci explain --provoke RNR_RETRY_EXC_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_LOC_RDD_VIOL_ERR,
		.name = "IBV_WC_LOC_RDD_VIOL_ERR",
		.phrases = "local rdd violation error",
		.title = "a Reliable Datagram domain does not fit, which only Reliable Datagram has",
		.meaning = "Of the Reliable Datagram service, which no current device offers.",
		.look = "the driver: a program cannot cause it",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_REM_INV_RD_REQ_ERR,
		.name = "IBV_WC_REM_INV_RD_REQ_ERR",
		.phrases = "remote invalid rd request",
		.title = "the peer refused a Reliable Datagram",
		.meaning = "Of the Reliable Datagram service, which no current device offers.",
		.look = "the driver: a program cannot cause it",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_REM_ABORT_ERR,
		.name = "IBV_WC_REM_ABORT_ERR",
		.phrases = "remote aborted error|operation aborted|remote aborted|aborted error",
		.title = "the responder aborted the operation",
		.meaning =
			"Of a UD or UC QP with an SRQ, and of a few operations that adapters carry out by themselves.",
		.look = "the peer's adapter and its kernel log",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_INV_EECN_ERR,
		.name = "IBV_WC_INV_EECN_ERR",
		.phrases = "invalid ee context number",
		.title = "an invalid end-to-end context, which only Reliable Datagram has",
		.meaning = "Of the Reliable Datagram service, which no current device offers.",
		.look = "the driver: a program cannot cause it",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_INV_EEC_STATE_ERR,
		.name = "IBV_WC_INV_EEC_STATE_ERR",
		.phrases = "invalid ee context state",
		.title = "an end-to-end context in the wrong state, which only Reliable Datagram has",
		.meaning = "Of the Reliable Datagram service, which no current device offers.",
		.look = "the driver: a program cannot cause it",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_FATAL_ERR,
		.name = "IBV_WC_FATAL_ERR",
		.phrases = "wc status fatal error",
		.title = "the device failed",
		.meaning = "The adapter is in a state that it does not leave by itself.",
		.look = "this side: the adapter, its firmware, the kernel log",
		.causes = {"the adapter was reset or removed", "a defect in the firmware or hardware"},
		.steps = {"`dmesg`", "close the device and open it again"},
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_RESP_TIMEOUT_ERR,
		.name = "IBV_WC_RESP_TIMEOUT_ERR",
		.phrases = "response timeout error",
		.title = "a response did not come in time",
		.meaning = "Used by a few adapters only. Programs on RC see RETRY_EXC_ERR for a peer that is silent.",
		.look = "the way to the peer, as for RETRY_EXC_ERR",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_GENERAL_ERR,
		.name = "IBV_WC_GENERAL_ERR",
		.phrases = "wc status general error",
		.title = "an error that fits no other status",
		.meaning =
			"The adapter's driver had no better word. The vendor error of the completion says more, to its "
			"maker.",
		.look = "this side: `dmesg`, and the driver's documents for the vendor error",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_TM_ERR,
		.name = "IBV_WC_TM_ERR",
		.phrases = "tm error",
		.title = "tag matching failed",
		.meaning = "A message that an adapter matched to a tag could not be delivered.",
		.look = "this side: the SRQ of type IBV_SRQT_TM",
	},
	{
		.kind = EXPLAIN_WC_STATUS,
		.code = IBV_WC_TM_RNDV_INCOMPLETE,
		.name = "IBV_WC_TM_RNDV_INCOMPLETE",
		.phrases = "tm software rendezvous",
		.title = "tag matching left a rendezvous to the program",
		.meaning = "The message was matched, but the program has to fetch its data itself.",
		.look = "nowhere: the program has to handle it",
	},
};

EXPLAIN_TABLE(explain_wc_statuses, rows);
