/* SPDX-License-Identifier: BSD-2-Clause */
/* The timers of RNR NAKs: a 5-bit code stands for the time that the requester must wait (IBTA 9.7.5.2.8, table 45). */
#ifndef ROCI_WIRE_RNR_TIMER_H
#define ROCI_WIRE_RNR_TIMER_H

#include <stdint.h>

/* Nanoseconds. Only the low five bits of `code` count. */
uint64_t roci_rnr_timer_ns(unsigned code);
/* "RNR NAK 0.64 ms"; static. */
const char *roci_rnr_nak_str(unsigned code);

#endif
