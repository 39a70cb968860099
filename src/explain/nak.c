/* SPDX-License-Identifier: BSD-2-Clause */
/* Acknowledgements and NAKs: the AETH syndrome, IBTA 9.7.5.1.1 tables 44 to 46. The code is the whole syndrome. */
#include "explain/table.h"

static const struct explanation rows[] = {
	{
		.kind = EXPLAIN_NAK,
		.code = 0x1f,
		.name = "ACK",
		.phrases = "aeth ack|ack syndrome",
		.title = "an acknowledgement; its low five bits are credits for further SENDs (31: no limit)",
		.meaning =
			"Everything up to the packet's PSN has arrived. 0x00 to 0x1e encode how many more SENDs the "
			"responder has receives for; 0x1f says that the credits are not valid, so they limit nothing.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke SUCCESS",
	},
	{
		.kind = EXPLAIN_NAK,
		.code = 0x20,
		.name = "RNR NAK",
		.phrases = "rnr nak|nak receiver not ready",
		.title = "the responder has no receive posted: wait, then send again",
		.meaning =
			"The low five bits are the code of the time to wait (the responder's min_rnr_timer): 0 is 655 "
			"ms, 1 is 0.01 ms, 12 is 0.64 ms, 31 is 491 ms. After rnr_retry of them the requester gives up "
			"with RNR_RETRY_EXC_ERR.",
		.look = "the responder: when and how many receives it posts",
		.causes = {"a SEND or a WRITE with immediate data arrived before a receive was posted",
			   "the SRQ ran empty"},
		.steps = {"see RNR_RETRY_EXC_ERR"},
		.see = "roci explain --provoke RNR_RETRY_EXC_ERR",
	},
	{
		.kind = EXPLAIN_NAK,
		.code = 0x60,
		.name = "NAK PSN SEQUENCE ERROR",
		.phrases = "nak psn sequence error|psn sequence error|sequence error nak|nak sequence error",
		.title = "a packet is missing: the requester sends again from the PSN that the NAK names",
		.meaning = "Packets were lost or changed their order on the way. This is repaired, and no program sees "
			   "it; many of them cost throughput.",
		.look = "the network between the two sides",
		.causes = {"loss in a switch or in a socket buffer", "packets took two paths and changed their order"},
		.steps = {"look at the counters: `ROCI_STATS=1`, or out_of_sequence in /sys/class/infiniband/*/ports/1/"
			  "hw_counters"},
		.see = "roci explain --provoke \"NAK PSN SEQUENCE ERROR\"",
	},
	{
		.kind = EXPLAIN_NAK,
		.code = 0x61,
		.name = "NAK INVALID REQUEST",
		.phrases = "nak invalid request|invalid request",
		.title = "the responder found the request invalid; the requester completes with REM_INV_REQ_ERR",
		.meaning =
			"The QP does not allow the operation, the message does not fit the receive, or the packets do "
			"not follow each other.",
		.look = "the responder: its QP's qp_access_flags, the size of its receives",
		.causes = {"qp_access_flags of the responder's QP lacks the right",
			   "the message is longer than the receive", "more READs than max_dest_rd_atomic"},
		.steps = {"see REM_INV_REQ_ERR"},
		.see = "roci explain --provoke REM_INV_REQ_ERR",
	},
	{
		.kind = EXPLAIN_NAK,
		.code = 0x62,
		.name = "NAK REMOTE ACCESS ERROR",
		.phrases = "nak remote access error|nak remote access",
		.title = "the responder refused access to its memory; the requester completes with REM_ACCESS_ERR",
		.meaning = "Key, range, rights or protection domain are wrong.",
		.look = "both: what was registered, and what the requester makes of it",
		.causes = {"a wrong or old rkey", "a range outside of the region", "a region without the right",
			   "a region of another PD"},
		.steps = {"see REM_ACCESS_ERR"},
		.see = "roci explain --provoke REM_ACCESS_ERR",
	},
	{
		.kind = EXPLAIN_NAK,
		.code = 0x63,
		.name = "NAK REMOTE OPERATIONAL ERROR",
		.phrases = "nak remote operational error|nak remote operation error|remote operational error",
		.title = "the responder failed while it carried the request out; the requester completes with "
			 "REM_OP_ERR",
		.meaning = "The request was valid, but something of the responder's own failed, such as its receive.",
		.look = "the responder: the status of its own completion",
		.causes = {"the receive names memory that its lkey does not cover"},
		.steps = {"see REM_OP_ERR"},
		.see = "roci explain --provoke REM_OP_ERR",
	},
	{
		.kind = EXPLAIN_NAK,
		.code = 0x64,
		.name = "NAK INVALID RD REQUEST",
		.phrases = "nak invalid rd request",
		.title = "of the Reliable Datagram service, which no current device offers",
		.meaning = "An RC requester that gets it completes with BAD_RESP_ERR.",
		.look = "the responder's device",
		.see = "roci explain --provoke \"NAK INVALID RD REQUEST\"",
		.foreign = true,
	},
};

EXPLAIN_TABLE(explain_naks, rows);
