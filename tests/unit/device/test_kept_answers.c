/* SPDX-License-Identifier: BSD-2-Clause */
/* How long answers of the kernel about routes are kept: kept_answers.h. */
#include "../test.h"

#include "device/kept_answers.h"

#define NOW 1000000

static const struct roci_kept question = {{1, 2, 3}}, other = {{1, 2, 4}}, answer = {{7}};

static void an_answer_is_kept_for_a_moment(void **state)
{
	struct roci_kept_answers k = {0};

	assert_null(roci_kept_find(&k, NOW, &question));
	roci_kept_add(&k, NOW, &question, &answer);
	assert_memory_equal(roci_kept_find(&k, NOW + ROCI_KEPT_NS - 1, &question), &answer, sizeof(answer));
	assert_null(roci_kept_find(&k, NOW + ROCI_KEPT_NS, &question));
}

static void an_answer_is_that_to_its_question(void **state)
{
	struct roci_kept_answers k = {0};
	struct roci_kept same_place = other;

	roci_kept_add(&k, NOW, &question, &answer);
	assert_null(roci_kept_find(&k, NOW, &other));
	while (roci_kept_place(&same_place) != roci_kept_place(&question))
		same_place.bytes[ROCI_KEPT_BYTES - 1]++;
	assert_null(roci_kept_find(&k, NOW, &same_place));
	roci_kept_add(&k, NOW, &same_place, &answer); /* takes the place */
	assert_null(roci_kept_find(&k, NOW, &question));
}

static void what_changed_is_asked_again(void **state)
{
	struct roci_kept_answers k = {0};

	roci_kept_add(&k, NOW, &question, &answer);
	roci_kept_forget(&k);
	assert_null(roci_kept_find(&k, NOW, &question));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_kept_for_a_moment),
		cmocka_unit_test(an_answer_is_that_to_its_question),
		cmocka_unit_test(what_changed_is_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
