/* SPDX-License-Identifier: BSD-2-Clause */
/* For fuzz targets: a condition that does not hold ends the program by a signal, so that fuzzers notice. */
#ifndef ROCI_TESTS_CHECK_H
#define ROCI_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

#endif
