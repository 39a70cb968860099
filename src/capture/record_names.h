/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what the records of a capture count: of requests, completions, states, events. Never NULL. */
#ifndef CAPTURE_RECORD_NAMES_H
#define CAPTURE_RECORD_NAMES_H

#include <stdint.h>

const char *capture_post_name(uint8_t opcode);       /* enum ibv_wr_opcode: "WRITE with immediate" */
const char *capture_completion_name(uint8_t opcode); /* enum ibv_wc_opcode: "receive" */
const char *capture_qp_state_name(uint32_t state);   /* enum ibv_qp_state: "RTR" */
const char *capture_cm_event_name(uint8_t event);    /* "connection request" */
const char *capture_fault_name(uint32_t fault);      /* enum roci_record_fault: "lost" */

#endif
