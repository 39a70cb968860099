/* SPDX-License-Identifier: BSD-2-Clause */
/* Which explanation belongs to the message of a failed transfer. */
#include "test.h"

#include "explain_hint.h"

static void network(void **state)
{
	const struct explanation *e;

	e = explain_hint(MOVER_LOST, "the other side no longer answers (RNR retry counter exceeded)");
	assert_string_equal(e->name, "IBV_WC_RNR_RETRY_EXC_ERR");
	e = explain_hint(MOVER_PROTOCOL, "a data transfer was refused (remote access error)");
	assert_string_equal(e->name, "IBV_WC_REM_ACCESS_ERR");
	e = explain_hint(MOVER_NO_CONNECT, "192.0.2.1 cannot be reached: Network is unreachable");
	assert_string_equal(e->name, "ENETUNREACH");
}

static void files(void **state)
{
	assert_null(explain_hint(MOVER_LOCAL_IO, "film.mkv: Permission denied"));
	assert_null(explain_hint(MOVER_FAILED, "Cannot allocate memory"));
	assert_null(explain_hint(MOVER_PROTOCOL, "Permission denied"));
}

static void nothing(void **state)
{
	assert_null(explain_hint(MOVER_LOST, NULL));
	assert_null(explain_hint(MOVER_LOST, "the connection was closed by the other side"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(network),
		cmocka_unit_test(files),
		cmocka_unit_test(nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
