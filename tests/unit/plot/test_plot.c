/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "plot/plot.h"

static void format(char label[PLOT_LABEL_CHARS], double value)
{
	snprintf(label, PLOT_LABEL_CHARS, "<%g>", value);
}

static char *picture(const struct plot_chart *chart)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	plot_svg(out, "a <title> & \"more\"", "sub", chart, 1);
	fclose(out);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static double points[][2] = {{1, 10}, {2, 20}, {4, 40}};
static struct plot_line line = {.name = "a & b", .count = 3, .points = points};

/* A line goes through its points: the first is at the left end, and the largest just below the top. */
static void a_line(void **state)
{
	struct plot_chart chart = {.title = "t",
				   .text = "x",
				   .x = {.label = "l", .low = 1, .high = 4, .format = format},
				   .y = {.format = format},
				   .lines = &line,
				   .line_count = 1,
				   .dots = true};
	char *text = picture(&chart);

	assert_int_equal(count(text, "<circle"), 3);
	assert_int_equal(count(text, "class=\"l c0\""), 1); /* one line has no legend */
	assert_non_null(strstr(text, "M100.0,"));
	assert_non_null(strstr(text, "L976.0,"));
	assert_non_null(strstr(text, "&#60;40&#62;</text>")); /* a round tick of y */
	free(text);
}

/* Each line has its name in the legend, in as many rows as that takes, and the plot begins below. */
static void a_long_legend(void **state)
{
	struct plot_line ten[10];
	struct plot_chart chart = {.title = "t",
				   .text = "x",
				   .x = {.label = "l", .low = 1, .high = 4, .format = format},
				   .y = {.format = format},
				   .lines = ten,
				   .line_count = 10};
	char *text;

	for (size_t i = 0; i < 10; i++)
		ten[i] = (struct plot_line){.name = "TCP 64 KiB", .count = 3, .points = points};
	text = picture(&chart);
	assert_int_equal(count(text, ">TCP 64 KiB</text>"), 10);
	assert_int_equal(count(text, ",126.0h26\""), 6); /* rows of the legend */
	assert_int_equal(count(text, ",146.0h26\""), 4);
	assert_non_null(strstr(text, "class=\"a\" d=\"M100,168.0V")); /* the axes */
	free(text);
}

/* Nothing that is written becomes markup. */
static void texts_are_escaped(void **state)
{
	struct plot_line two[] = {line, line};
	struct plot_chart chart = {.title = "</svg><script>",
				   .text = "&",
				   .x = {.label = "<", .low = 1, .high = 4, .log = true, .format = format},
				   .y = {.log = true, .format = format},
				   .lines = two,
				   .line_count = 2};
	char *text = picture(&chart);

	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "a & b"));
	assert_int_equal(count(text, "a &#38; b"), 2); /* the legend */
	assert_int_equal(count(text, "</svg>"), 1);
	free(text);
}

/* Values without any spread, or none at all, make a picture without numbers that are none. */
static void odd_values(void **state)
{
	double zeros[][2] = {{0, 0}, {1, 0}};
	struct plot_line flat = {.name = "0", .count = 2, .points = zeros};
	struct plot_chart chart = {.title = "t",
				   .text = "",
				   .x = {.label = "", .low = 0, .high = 1, .format = format},
				   .y = {.format = format},
				   .lines = &flat,
				   .line_count = 1};
	char *text = picture(&chart);

	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
}

/* The data of the page cannot end its script. */
static void the_page(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	plot_page(out, "{\"title\":\"</script><script>alert(1)</script>\"}");
	fclose(out);
	assert_null(strstr(text, "alert(1)</script>"));
	assert_non_null(strstr(text, "\\u003c/script>\\u003cscript>alert(1)"));
	assert_int_equal(count(text, "</script>"), 3); /* the data, the library, the page's own */
	assert_non_null(strstr(text, "Redistribution and use in source and binary forms")); /* the library's licence */
	assert_null(strstr(text, "http-equiv=\"refresh\""));
	assert_null(strstr(text, " src="));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line),     cmocka_unit_test(a_long_legend), cmocka_unit_test(texts_are_escaped),
		cmocka_unit_test(odd_values), cmocka_unit_test(the_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
