/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/cm_meaning.h"

#include <inttypes.h>

#include "cm/cm_ip.h"
#include "explain/explain.h"

const char *capture_cm_name(unsigned attribute)
{
	static const char *const names[] = {"REQ",  "MRA",      "REJ",      "REP", "RTU", "DREQ",
					    "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
	unsigned at = attribute - ROCI_CM_ATTR_REQ;

	return at < sizeof(names) / sizeof(names[0]) ? names[at] : "?";
}

/* "port 7471 (RDMA_PS_TCP)" */
static void put_service(struct capture_line *line, uint64_t service_id)
{
	unsigned ps = roci_cm_service_ps(service_id);

	if (!roci_cm_service_is_ip(service_id)) {
		capture_put(line, "service 0x%016" PRIx64, service_id);
		return;
	}
	capture_put(line, "port %u", roci_cm_service_port(service_id));
	if (ps != ROCI_PS_TCP)
		capture_put(line, " (%s)",
			    ps == ROCI_PS_UDP  ? "RDMA_PS_UDP"
			    : ps == ROCI_PS_IB ? "RDMA_PS_IB"
					       : "RDMA_PS_IPOIB");
}

static void put_req(struct capture_line *line, const struct roci_cm_msg *msg)
{
	capture_put(line, "connects to ");
	put_service(line, msg->service_id);
	capture_put(line, ", QP 0x%06" PRIx32 ", begins with PSN %" PRIu32, msg->qpn, msg->starting_psn);
	if (msg->transport == ROCI_CM_UC)
		capture_put(line, ", UC");
}

static void put_rej(struct capture_line *line, const struct roci_cm_msg *msg)
{
	const struct explanation *row = explain_code(EXPLAIN_CM_REJECT, msg->reason);

	capture_put(line, "rejects, reason %u", msg->reason);
	if (row)
		capture_put(line, ": %s", row->title);
}

/* IBTA 12.11.2.1, table 132 */
static const char *sidr_status(unsigned status)
{
	static const char *const texts[] = {"here it is",          "nobody provides the service at this port",
					    "the service refused", "no QP is available",
					    "ask another port",    "the version is not supported"};

	return status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : "unknown status";
}

/* 4.096 us * 2^code: IBTA 12.7 */
static uint64_t time_of(unsigned code)
{
	return 4096ull << (code & 31);
}

static void put_sidr_rep(struct capture_line *line, const struct roci_cm_msg *msg)
{
	if (msg->outcome)
		capture_put(line, "refuses, status %u: %s", msg->outcome, sidr_status(msg->outcome));
	else
		capture_put(line, "datagrams go to QP 0x%06" PRIx32 ", Q_Key 0x%" PRIx32, msg->qpn, msg->qkey);
}

void capture_put_cm(struct capture_line *line, const struct roci_cm_msg *msg)
{
	capture_put(line, "CM %s: ", capture_cm_name(msg->attribute));
	switch (msg->attribute) {
	case ROCI_CM_ATTR_REQ: put_req(line, msg); break;
	case ROCI_CM_ATTR_MRA:
		capture_put(line, "got it, the answer may take ");
		capture_put_time(line, time_of(msg->service_timeout));
		break;
	case ROCI_CM_ATTR_REJ: put_rej(line, msg); break;
	case ROCI_CM_ATTR_REP:
		capture_put(line, "accepts, QP 0x%06" PRIx32 ", begins with PSN %" PRIu32, msg->qpn, msg->starting_psn);
		break;
	case ROCI_CM_ATTR_RTU: capture_put(line, "the connection is ready to use"); break;
	case ROCI_CM_ATTR_DREQ: capture_put(line, "disconnects QP 0x%06" PRIx32, msg->qpn); break;
	case ROCI_CM_ATTR_DREP: capture_put(line, "is disconnected"); break;
	case ROCI_CM_ATTR_SIDR_REQ:
		capture_put(line, "asks for the QP of ");
		put_service(line, msg->service_id);
		break;
	case ROCI_CM_ATTR_SIDR_REP: put_sidr_rep(line, msg); break;
	case ROCI_CM_ATTR_LAP: capture_put(line, "offers an alternate path"); break;
	case ROCI_CM_ATTR_APR: capture_put(line, "answers the offer of a path, status %u", msg->outcome); break;
	default: break;
	}
}
