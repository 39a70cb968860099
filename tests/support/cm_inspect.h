/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests see of a connection manager from inside, and names for their messages. */
#ifndef ROCI_TESTS_CM_INSPECT_H
#define ROCI_TESTS_CM_INSPECT_H

#include "cm/conn_state.h" /* IWYU pragma: export */
#include "cm/manager.h"

/* Listeners, connections (in TimeWait too), SIDR exchanges and pending requests: 0 when everything is over. */
static inline unsigned cm_object_count(const struct roci_cm *cm)
{
	return cm->exchange_count + cm->listener_count + cm->pending.waiting;
}

static inline const char *cm_event_name(unsigned kind)
{
	static const char *const names[ROCI_CM_EVENT_KINDS] = {
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

	return kind < ROCI_CM_EVENT_KINDS && names[kind] ? names[kind] : "unknown event";
}

static inline const char *cm_message_name(unsigned attribute)
{
	static const char *const names[] = {"REQ",  "MRA",      "REJ",      "REP", "RTU", "DREQ",
					    "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
	unsigned i = attribute - ROCI_CM_ATTR_REQ;

	return i < sizeof(names) / sizeof(*names) ? names[i] : "unknown message";
}

#endif
