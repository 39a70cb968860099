/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of calls. CHECK and FAILS count failures and go on; MUST ends the program. The program defines `unsigned
 * failures`. */
#ifndef ROCI_TESTS_CHECKS_H
#define ROCI_TESTS_CHECKS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		if (!(condition)) {                                                                                    \
			printf("%s:%d: %s (errno %d, %s)\n", __FILE__, __LINE__, #condition, errno, strerror(errno));  \
			failures++;                                                                                    \
		}                                                                                                      \
	} while (0)
#define FAILS(call, error) CHECK((call) == -1 && errno == (error))
#define MUST(call)                                                                                                     \
	do {                                                                                                           \
		if (call) {                                                                                            \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(errno));                         \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#endif
