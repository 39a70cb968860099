/* SPDX-License-Identifier: BSD-2-Clause */
/* What a message of connection management means. */
#ifndef CAPTURE_CM_MEANING_H
#define CAPTURE_CM_MEANING_H

#include "capture/line.h"
#include "cm/msg.h"

/* "CM REJ: no listener at this port ..." */
void capture_put_cm(struct capture_line *line, const struct roci_cm_msg *msg);

/* "REQ", "SIDR_REP"; "?" where there is none. */
const char *capture_cm_name(unsigned attribute);

#endif
