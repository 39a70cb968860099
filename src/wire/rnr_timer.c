/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/rnr_timer.h"

#include "wire/packet.h"

/* Milliseconds and hundredths, for the time and its text alike. */
/* clang-format off */
#define RNR_TIMERS(X)                                                                                                  \
	X(655, 36) X(0, 01)  X(0, 02)  X(0, 03)   X(0, 04)   X(0, 06)   X(0, 08)   X(0, 12)                            \
	X(0, 16)   X(0, 24)  X(0, 32)  X(0, 48)   X(0, 64)   X(0, 96)   X(1, 28)   X(1, 92)                            \
	X(2, 56)   X(3, 84)  X(5, 12)  X(7, 68)   X(10, 24)  X(15, 36)  X(20, 48)  X(30, 72)                           \
	X(40, 96)  X(61, 44) X(81, 92) X(122, 88) X(163, 84) X(245, 76) X(327, 68) X(491, 52)
/* clang-format on */

uint64_t roci_rnr_timer_ns(unsigned code)
{
/* 1##hundredths: 08 alone would be a bad octal number */
#define TIMER_NS(ms, hundredths) (ms * 100 + 1##hundredths - 100) * UINT64_C(10000),
	static const uint64_t timers_ns[32] = {RNR_TIMERS(TIMER_NS)};
#undef TIMER_NS

	return timers_ns[code & ROCI_AETH_VALUE_MASK];
}

const char *roci_rnr_nak_str(unsigned code)
{
#define TIMER_TEXT(ms, hundredths) "RNR NAK " #ms "." #hundredths " ms",
	static const char *const texts[32] = {RNR_TIMERS(TIMER_TEXT)};
#undef TIMER_TEXT

	return texts[code & ROCI_AETH_VALUE_MASK];
}
