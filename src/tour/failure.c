/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fail(struct failure *f, int err, const char *format, ...)
{
	va_list arguments;

	*f = (struct failure){.err = err, .reject = -1};
	va_start(arguments, format);
	vsnprintf(f->text, sizeof(f->text), format, arguments);
	va_end(arguments);
	return err < 0 ? err : -EIO;
}

int fail_call(struct failure *f, const char *call, int err)
{
	err = err > 0 ? -err : err ? err : -EIO;
	fail(f, err, "%s(): %s%s", call, strerror(-err),
	     err == -ENOMEM ? "; is `ulimit -l` too small for the memory that is registered?" : "");
	f->call = call;
	return err;
}

int fail_wc(struct failure *f, const char *what, enum ibv_wc_status status)
{
	fail(f, -EIO, "%s completed with status %d: %s", what, status, ibv_wc_status_str(status));
	f->completed = true;
	f->status = status;
	return -EIO;
}
