/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of a message of connection management. */
#ifndef CAPTURE_CM_FIELDS_H
#define CAPTURE_CM_FIELDS_H

#include "capture/field_out.h"

/* `mad`: its ROCI_CM_MAD_BYTES. */
void capture_cm_fields(struct capture_field_out *out, const struct roci_cm_msg *msg, const uint8_t *mad);

#endif
