/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mover/ticket.h"

static int parse(const char *text, struct mover_ticket *ticket)
{
	const char *why;
	int rc = mover_ticket_parse(text, strlen(text), ticket, &why);

	assert_true(rc == 0 || rc == -EINVAL);
	assert_true(rc ? why != NULL : why == NULL);
	return rc;
}

static void what_is_printed_is_read(void **state)
{
	const char *hosts[] = {"localhost", "10.0.0.1", "fe80::1%eth0", "::1", "", "Some-Host.example.org", NULL};
	char line[MOVER_TICKET_CHARS], spaced[MOVER_TICKET_CHARS + 8], long_host[256];
	struct mover_ticket made, read;

	memset(long_host, 'h', sizeof(long_host) - 1);
	long_host[255] = 0;
	hosts[6] = long_host;
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(mover_ticket_create(&made, hosts[i], i ? 65535 : 1), 0);
		mover_ticket_print(&made, line);
		assert_null(strpbrk(line, " \n"));
		snprintf(spaced, sizeof(spaced), " \t%s\r\n", line);
		assert_int_equal(parse(spaced, &read), 0);
		assert_memory_equal(&made, &read, sizeof(made));
	}
}

static void a_known_ticket(void **state)
{
	struct mover_ticket ticket = {.host = "host", .port = 22222}, read;
	char line[MOVER_TICKET_CHARS];

	for (int i = 0; i < MOVER_SECRET_BYTES; i++)
		ticket.secret[i] = (uint8_t)(i * 17);
	mover_ticket_print(&ticket, line);
	assert_string_equal(line, "roci1:host:22222:008J4CT4ANK7F24SNAXWSQFEZW23");
	/* as people write it down */
	assert_int_equal(parse("ROCI1:HOST:22222:oo8j4ct4-ANK7F24S-Naxwsqfezw23", &read), 0);
	assert_memory_equal(read.secret, ticket.secret, sizeof(read.secret));
}

static void expect_every_typing_error_noticed(const struct mover_ticket *ticket)
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	char line[MOVER_TICKET_CHARS], wrong[MOVER_TICKET_CHARS];
	struct mover_ticket read;
	size_t len, begin;

	mover_ticket_print(ticket, line);
	len = strlen(line);
	begin = len - 28;
	for (size_t i = begin; i < len; i++) {
		for (const char *d = digits; *d; d++) {
			strcpy(wrong, line);
			wrong[i] = *d;
			assert_int_equal(parse(wrong, &read), *d == line[i] ? 0 : -EINVAL);
		}
		for (size_t k = begin; k < i; k++) {
			strcpy(wrong, line);
			wrong[i] = line[k];
			wrong[k] = line[i];
			assert_int_equal(parse(wrong, &read), line[i] == line[k] ? 0 : -EINVAL);
		}
		strcpy(wrong, line);
		memmove(wrong + i, wrong + i + 1, len - i);
		assert_int_equal(parse(wrong, &read), -EINVAL);
	}
	strcpy(wrong, line);
	wrong[10] = '8'; /* of the host */
	assert_int_equal(parse(wrong, &read), -EINVAL);
	wrong[10] = '7';
	wrong[13] = '3'; /* of the port */
	assert_int_equal(parse(wrong, &read), -EINVAL);
}

/* With many tickets: for a single one, a check that misses some errors could pass. */
static void every_typing_error_is_noticed(void **state)
{
	struct mover_ticket ticket;

	for (int i = 0; i < 300; i++) {
		assert_int_equal(mover_ticket_create(&ticket, "host7", 22222), 0);
		expect_every_typing_error_noticed(&ticket);
	}
}

static void what_is_no_ticket(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"roci1",
		"roci1:",
		"roci2:host:22222:008J4CT4ANK7F24SNAXWSQFEZW23",
		"roci1:host",
		"roci1:host:22222",
		"roci1:host:22222:",
		"roci1:host:0:008J4CT4ANK7F24SNAXWSQFEZW23",
		"roci1:host:65536:008J4CT4ANK7F24SNAXWSQFEZW23",
		"roci1:host:99999999999999999999:008J4CT4ANK7F24SNAXWSQFEZW23",
		"roci1:host::008J4CT4ANK7F24SNAXWSQFEZW23",
		"roci1:[::1:22222:008J4CT4ANK7F24SNAXWSQFEZW23",
		"roci1:[host]:22222:008J4CT4ANK7F24SNAXWSQFEZW23",
		"roci1:[::1]",
		"roci1:ho st:22222:008J4CT4ANK7F24SNAXWSQFEZW23",
		"roci1:host:22222:008J4CT4ANK7F24SNAXWSQFEZW23X",
		"roci1:host:22222:008J4CT4ANK7F24SNAXWSQFEZWC",
		"roci1:host:22222:----------------------------",
	};
	struct mover_ticket ticket;
	const char *why;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(parse(texts[i], &ticket), -EINVAL);
	assert_int_equal(mover_ticket_parse("roci1:h\0st:22222:008J4CT4ANK7F24SNAXWSQFEZW23", 45, &ticket, &why),
			 -EINVAL);
	assert_int_equal(mover_ticket_create(&ticket, "host", 0), -EINVAL);
}

static void secrets_differ_and_are_forgotten(void **state)
{
	const uint8_t zeros[MOVER_SECRET_BYTES] = {0};
	struct mover_ticket a, b;

	assert_int_equal(mover_ticket_create(&a, "h", 1) | mover_ticket_create(&b, "h", 1), 0);
	assert_memory_not_equal(a.secret, b.secret, sizeof(a.secret));
	mover_ticket_forget(&a);
	assert_memory_equal(a.secret, zeros, sizeof(zeros));
	assert_string_equal(a.host, "h");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_read),          cmocka_unit_test(a_known_ticket),
		cmocka_unit_test(every_typing_error_is_noticed),    cmocka_unit_test(what_is_no_ticket),
		cmocka_unit_test(secrets_differ_and_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
