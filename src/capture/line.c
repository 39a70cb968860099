/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void capture_put(struct capture_line *line, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line->text + line->len, line->size - line->len, format, args);
	va_end(args);
	if (n > 0)
		line->len += (size_t)n;
	if (line->len >= line->size)
		line->len = line->size - 1;
}

void capture_put_bytes(struct capture_line *line, uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
	unsigned unit = 0;
	uint64_t value = bytes;

	while (unit < 3 && value >= 1024 && value % 1024 == 0) {
		value /= 1024;
		unit++;
	}
	if (value < 10000)
		capture_put(line, " %" PRIu64 " %s", value, value == 1 && !unit ? "byte" : units[unit]);
	else if (bytes < 10 << 20)
		capture_put(line, " %.1f KiB", (double)bytes / 1024);
	else if (bytes < 10ull << 30)
		capture_put(line, " %.1f MiB", (double)bytes / (1 << 20));
	else
		capture_put(line, " %.1f GiB", (double)bytes / (1 << 30));
}

void capture_put_time(struct capture_line *line, uint64_t ns)
{
	if (ns < 1000)
		capture_put(line, "%" PRIu64 " ns", ns);
	else if (ns < 100000)
		capture_put(line, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		capture_put(line, "%.3g ms", (double)ns / 1e6);
	else
		capture_put(line, "%.3g s", (double)ns / 1e9);
}
