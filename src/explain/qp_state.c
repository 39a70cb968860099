/* SPDX-License-Identifier: BSD-2-Clause */
/* States of a QP: enum ibv_qp_state, IBTA 10.3.1, ibv_modify_qp(3). */
#include "explain/table.h"

#include <infiniband/verbs.h>

static const struct explanation rows[] = {
	{
		.kind = EXPLAIN_QP_STATE,
		.code = IBV_QPS_RESET,
		.name = "IBV_QPS_RESET",
		.phrases = "state reset",
		.title = "a new QP: nothing can be posted",
		.meaning = "To INIT with IBV_QP_STATE, PKEY_INDEX, PORT and ACCESS_FLAGS (UD: QKEY).",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke RESET",
	},
	{
		.kind = EXPLAIN_QP_STATE,
		.code = IBV_QPS_INIT,
		.name = "IBV_QPS_INIT",
		.phrases = "state init",
		.title = "receives can be posted; nothing is received or sent yet",
		.meaning = "To RTR with STATE, AV, PATH_MTU, DEST_QPN, RQ_PSN, and for RC MAX_DEST_RD_ATOMIC and "
			   "MIN_RNR_TIMER. Post the receives now: messages may come as soon as the QP is in RTR.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke INIT",
	},
	{
		.kind = EXPLAIN_QP_STATE,
		.code = IBV_QPS_RTR,
		.name = "IBV_QPS_RTR",
		.phrases = "state rtr",
		.title = "ready to receive: requests of the peer are executed, posted sends are refused",
		.meaning = "To RTS with STATE, SQ_PSN, and for RC TIMEOUT, RETRY_CNT, RNR_RETRY and MAX_QP_RD_ATOMIC.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke RTR",
	},
	{
		.kind = EXPLAIN_QP_STATE,
		.code = IBV_QPS_RTS,
		.name = "IBV_QPS_RTS",
		.phrases = "state rts",
		.title = "ready to send: the QP works in both directions",
		.meaning = "It stays here until it is modified, or a request fails.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke RTS",
	},
	{
		.kind = EXPLAIN_QP_STATE,
		.code = IBV_QPS_SQD,
		.name = "IBV_QPS_SQD",
		.phrases = "state sqd",
		.title = "the send queue drains: what has begun is finished, nothing new begins",
		.meaning = "Attributes such as the path can be changed, then the QP goes back to RTS. The event "
			   "SQ_DRAINED tells when the queue is empty.",
		.look = "nowhere: this is not an error",
		.see = "roci explain --provoke SQD",
	},
	{
		.kind = EXPLAIN_QP_STATE,
		.code = IBV_QPS_SQE,
		.name = "IBV_QPS_SQE",
		.phrases = "state sqe",
		.title = "a send of a UC or UD QP failed; receives still work",
		.meaning = "Posted sends are flushed. ibv_modify_qp() to RTS makes the QP usable again.",
		.look = "the first send completion that is not SUCCESS",
		.see = "roci explain --provoke SQE",
	},
	{
		.kind = EXPLAIN_QP_STATE,
		.code = IBV_QPS_ERR,
		.name = "IBV_QPS_ERR",
		.phrases = "state err|state error|error state",
		.title = "the QP has failed or was closed: all requests are flushed with WR_FLUSH_ERR",
		.meaning = "Only RESET leads out of it. The reason is the first failed completion, an asynchronous "
			   "event, or a disconnect.",
		.look = "the first completion of this QP that is neither SUCCESS nor WR_FLUSH_ERR, on either side",
		.causes = {"a request failed, here or as the peer's responder", "rdma_disconnect() by either side",
			   "the program moved it to ERR"},
		.steps = {"see WR_FLUSH_ERR"},
		.see = "roci explain --provoke ERR",
	},
};

EXPLAIN_TABLE(explain_qp_states, rows);
