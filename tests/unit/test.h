/* SPDX-License-Identifier: BSD-2-Clause */
/* cmocka, with what it wants included before it. */
#ifndef ROCI_TESTS_TEST_H
#define ROCI_TESTS_TEST_H

/* IWYU pragma: begin_exports */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* IWYU pragma: end_exports */

#endif
