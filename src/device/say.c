/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

void roci_device_say(const char *format, ...)
{
	char line[1536];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (len >= (int)sizeof(line)) {
		len = sizeof(line) - 1;
		line[len - 1] = '\n';
	}
	if (len > 0)
		(void)!syscall(SYS_write, STDERR_FILENO, line, len);
}
