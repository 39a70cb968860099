/* SPDX-License-Identifier: BSD-2-Clause */
/* Which explanation belongs to the message of a failed transfer. */
#include "test.h"

#include <string.h>

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

/* What `roci send` and `roci recv` say in words of their own. */
static void in_own_words(void **state)
{
	static const struct {
		enum mover_status status;
		const char *text, *name;
	} rows[] = {
		{MOVER_NO_CONNECT, "nobody listens at 127.0.0.1 port 22222 by IPv4; is `roci recv` running there?",
		 "IB_CM_REJ_INVALID_SERVICE_ID"},
		{MOVER_NO_CONNECT, "no RDMA program runs at 10.0.0.7: nothing listens there on UDP port 4791",
		 "RDMA_CM_EVENT_UNREACHABLE"},
		{MOVER_NO_CONNECT, "no answer from 10.0.0.7 port 22222; is `roci recv` running there?",
		 "RDMA_CM_EVENT_UNREACHABLE"},
		{MOVER_NO_DEVICE, "port 22222 of 10.0.0.7: another program listens there already", "EADDRINUSE"},
		{MOVER_NO_DEVICE, "no RDMA device leads to 10.0.0.7", "rdma_resolve_addr: ENODEV"},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct explanation *e = explain_hint(rows[i].status, rows[i].text);

		if (!e || strcmp(e->name, rows[i].name))
			fail_msg("%s: %s", rows[i].text, e ? e->name : "nothing");
	}
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
		cmocka_unit_test(in_own_words),
		cmocka_unit_test(files),
		cmocka_unit_test(nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
