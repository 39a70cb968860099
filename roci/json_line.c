/* SPDX-License-Identifier: BSD-2-Clause */
#include "json_line.h"

#include <stdlib.h>
#include <time.h>

#include "text.h"

static json_t *now(void)
{
	char text[48];
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, sizeof(text) - len, ".%06ldZ", ts.tv_nsec / 1000);
	return json_string(text);
}

json_t *json_line(const char *event)
{
	json_t *object = json_object();

	json_object_set_new(object, "time", now());
	json_object_set_new(object, "event", json_string(event));
	return object;
}

json_t *json_line_text(const void *bytes, size_t len)
{
	size_t repaired_len = 0;
	char *repaired = text_repair(bytes, len, &repaired_len);
	json_t *string = repaired ? json_stringn(repaired, repaired_len) : NULL;

	free(repaired);
	return string;
}

void json_line_print(json_t *object, FILE *out)
{
	flockfile(out); /* the clients of roci serve have threads of their own */
	json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(9));
	fputc('\n', out);
	fflush(out);
	funlockfile(out);
	json_decref(object);
}
