/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <arpa/inet.h>
#include <string.h>

#include "mover/admission.h"

static struct admission_place place(bool proved, uint8_t last)
{
	return (struct admission_place){.proved = proved, .from = {[10] = 0xff, 0xff, 10, 0, 0, last}};
}

static void nobody_goes_while_there_is_room(void **state)
{
	struct admission_place places[ADMISSION_MAX - 1], next = place(true, 99);

	for (unsigned i = 0; i < ADMISSION_MAX - 1; i++)
		places[i] = place(true, (uint8_t)i);
	for (unsigned count = 0; count < ADMISSION_MAX; count++)
		assert_int_equal(admission_choose(places, count, &next, 0), -1);
}

/* No place is safe by its age. */
static void anybody_may_go(void **state)
{
	struct admission_place places[ADMISSION_MAX], next = place(true, 99);
	bool chosen[ADMISSION_MAX] = {false};

	for (unsigned i = 0; i < ADMISSION_MAX; i++)
		places[i] = place(true, (uint8_t)i);
	for (uint32_t random = 0; random < ADMISSION_MAX; random++)
		chosen[admission_choose(places, ADMISSION_MAX, &next, UINT32_MAX - random)] = true;
	for (unsigned i = 0; i < ADMISSION_MAX; i++)
		assert_true(chosen[i]);
}

/* One address competes with itself first. */
static void an_address_has_a_quota(void **state)
{
	struct admission_place places[ADMISSION_MAX], next = place(true, 7);

	for (unsigned i = 0; i < ADMISSION_MAX; i++)
		places[i] = place(true, i % 2 ? 7 : (uint8_t)(100 + i));
	for (uint32_t random = 0; random < 100; random++)
		assert_int_equal(admission_choose(places, ADMISSION_MAX, &next, random) % 2, 1);
	assert_int_equal(admission_choose(places, 2 * ADMISSION_PER_ADDRESS - 2, &next, 0), -1);
}

static void strangers_do_not_take_the_places_of_those_with_proof(void **state)
{
	struct admission_place places[2 * ADMISSION_MAX], next = place(true, 7);

	for (unsigned i = 0; i < ADMISSION_MAX; i++)
		places[i] = place(false, 7);
	assert_int_equal(admission_choose(places, ADMISSION_MAX, &next, 5), -1);
	for (unsigned i = 0; i < ADMISSION_MAX; i++)
		places[ADMISSION_MAX + i] = place(true, 7);
	next.proved = false;
	for (uint32_t random = 0; random < 100; random++)
		assert_in_range(admission_choose(places, 2 * ADMISSION_MAX, &next, random), 0, ADMISSION_MAX - 1);
}

static void owner(const char *address, uint8_t from[16])
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

	if (inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
		admission_address((struct sockaddr *)&v4, from);
	} else {
		assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
		admission_address((struct sockaddr *)&v6, from);
	}
}

static bool same_owner(const char *a, const char *b)
{
	uint8_t from_a[16], from_b[16];

	owner(a, from_a);
	owner(b, from_b);
	return memcmp(from_a, from_b, 16) == 0;
}

static void a_host_has_a_network_of_ipv6_addresses(void **state)
{
	assert_true(same_owner("2001:db8::1", "2001:db8::ffff:2"));
	assert_false(same_owner("2001:db8::1", "2001:db8:0:1::1"));
	assert_false(same_owner("fe80::1", "fe80::2"));
	assert_false(same_owner("10.0.0.1", "10.0.0.2"));
	assert_true(same_owner("10.0.0.1", "::ffff:10.0.0.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_goes_while_there_is_room),
		cmocka_unit_test(anybody_may_go),
		cmocka_unit_test(an_address_has_a_quota),
		cmocka_unit_test(strangers_do_not_take_the_places_of_those_with_proof),
		cmocka_unit_test(a_host_has_a_network_of_ipv6_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
