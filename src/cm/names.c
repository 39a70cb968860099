/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what comes from the wire or goes to people; every table checks its range. */
#include "cm/cm.h"

#define NAME_OF(table, value, otherwise)                                                                               \
	((value) < sizeof(table) / sizeof(*(table)) && (table)[value] ? (table)[value] : (otherwise))

static const char *const reasons[] = {
	[ROCI_REJ_NO_QP] = "no QP available",
	[ROCI_REJ_NO_EEC] = "no EE context available",
	[ROCI_REJ_NO_RESOURCES] = "no resources",
	[ROCI_REJ_TIMEOUT] = "timeout",
	[ROCI_REJ_UNSUPPORTED] = "unsupported request",
	[ROCI_REJ_INVALID_COMM_ID] = "invalid communication id",
	[ROCI_REJ_INVALID_COMM_INSTANCE] = "invalid communication instance",
	[ROCI_REJ_INVALID_SERVICE_ID] = "invalid service id",
	[ROCI_REJ_INVALID_TRANSPORT_TYPE] = "invalid transport service type",
	[ROCI_REJ_STALE_CONN] = "stale connection",
	[ROCI_REJ_RDC_NOT_EXIST] = "RDC does not exist",
	[ROCI_REJ_INVALID_GID] = "primary remote port GID rejected",
	[ROCI_REJ_INVALID_LID] = "primary remote port LID rejected",
	[ROCI_REJ_INVALID_SL] = "invalid primary service level",
	[ROCI_REJ_INVALID_TRAFFIC_CLASS] = "invalid primary traffic class",
	[ROCI_REJ_INVALID_HOP_LIMIT] = "invalid primary hop limit",
	[ROCI_REJ_INVALID_PACKET_RATE] = "invalid primary packet rate",
	[ROCI_REJ_INVALID_ALT_GID] = "alternate remote port GID rejected",
	[ROCI_REJ_INVALID_ALT_LID] = "alternate remote port LID rejected",
	[ROCI_REJ_INVALID_ALT_SL] = "invalid alternate service level",
	[ROCI_REJ_INVALID_ALT_TRAFFIC_CLASS] = "invalid alternate traffic class",
	[ROCI_REJ_INVALID_ALT_HOP_LIMIT] = "invalid alternate hop limit",
	[ROCI_REJ_INVALID_ALT_PACKET_RATE] = "invalid alternate packet rate",
	[ROCI_REJ_PORT_CM_REDIRECT] = "port and CM redirection",
	[ROCI_REJ_PORT_REDIRECT] = "port redirection",
	[ROCI_REJ_INVALID_MTU] = "invalid path MTU",
	[ROCI_REJ_INSUFFICIENT_RESP_RESOURCES] = "insufficient responder resources",
	[ROCI_REJ_CONSUMER_DEFINED] = "consumer reject",
	[ROCI_REJ_INVALID_RNR_RETRY] = "RNR retry count rejected",
	[ROCI_REJ_DUPLICATE_LOCAL_COMM_ID] = "duplicate local communication id",
	[ROCI_REJ_INVALID_CLASS_VERSION] = "unsupported class version",
	[ROCI_REJ_INVALID_FLOW_LABEL] = "invalid primary flow label",
	[ROCI_REJ_INVALID_ALT_FLOW_LABEL] = "invalid alternate flow label",
	[ROCI_REJ_VENDOR_OPTION] = "vendor option is not supported",
};

static const char *const events[ROCI_CM_EVENT_KINDS] = {
	[ROCI_CM_REQ_RECEIVED] = "REQ received",
	[ROCI_CM_REP_RECEIVED] = "REP received",
	[ROCI_CM_ESTABLISHED] = "established",
	[ROCI_CM_REJ_RECEIVED] = "REJ received",
	[ROCI_CM_REQ_ERROR] = "REQ error",
	[ROCI_CM_REP_ERROR] = "REP error",
	[ROCI_CM_DREQ_RECEIVED] = "DREQ received",
	[ROCI_CM_DREP_RECEIVED] = "DREP received",
	[ROCI_CM_DREQ_ERROR] = "DREQ error",
	[ROCI_CM_TIMEWAIT_EXIT] = "TIMEWAIT exit",
	[ROCI_CM_SIDR_REQ_RECEIVED] = "SIDR_REQ received",
	[ROCI_CM_SIDR_REP_RECEIVED] = "SIDR_REP received",
	[ROCI_CM_SIDR_ERROR] = "SIDR error",
};

static const char *const states[ROCI_CONN_STATES] = {
	[ROCI_CONN_CLOSED] = "closed",
	[ROCI_CONN_REQ_SENT] = "REQ sent",
	[ROCI_CONN_REQ_WAITING] = "REQ waiting",
	[ROCI_CONN_REQ_RECEIVED] = "REQ received",
	[ROCI_CONN_REP_SENT] = "REP sent",
	[ROCI_CONN_REP_RECEIVED] = "REP received",
	[ROCI_CONN_ESTABLISHED] = "established",
	[ROCI_CONN_DREQ_SENT] = "DREQ sent",
	[ROCI_CONN_DREQ_RECEIVED] = "DREQ received",
	[ROCI_CONN_TIMEWAIT] = "TIMEWAIT",
};

/* IBTA table 124 */
static const char *const sidr_statuses[] = {
	[ROCI_SIDR_SUCCESS] = "success",   [ROCI_SIDR_UNSUPPORTED] = "unsupported service id",
	[ROCI_SIDR_REJECT] = "rejected",   [ROCI_SIDR_NO_QP] = "no QP available",
	[ROCI_SIDR_REDIRECT] = "redirect", [ROCI_SIDR_UNSUPPORTED_VERSION] = "unsupported version",
};

const char *roci_cm_reason_str(unsigned reason)
{
	return NAME_OF(reasons, reason, "unknown reason");
}

const char *roci_cm_event_str(unsigned kind)
{
	return NAME_OF(events, kind, "unknown event");
}

const char *roci_conn_state_str(unsigned state)
{
	return NAME_OF(states, state, "unknown state");
}

const char *roci_cm_sidr_status_str(unsigned status)
{
	return NAME_OF(sidr_statuses, status, "unknown status");
}
