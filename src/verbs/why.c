/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/say.h"
#include "engine/why.h"

static void print(const char *line)
{
	roci_device_say("roci: why: %s\n", line);
}

/* Before the program's first call. */
static __attribute__((constructor)) void begin(void)
{
	const char *wish = getenv("ROCI_WHY");

	roci_why_sink = print;
	roci_why_on = wish && *wish;
}

/* Answers that are no mistake: nothing is there now, or the end of a table was reached. */
static bool is_ordinary(int err)
{
	return err == EAGAIN || err == ENODATA;
}

/* Where no check noted anything. Those of a field all do, so it was none of these. */
static const char *without_note(int err)
{
	switch (err) {
	case EINVAL: return "an argument is NULL, or an object of another device or context";
	case EOPNOTSUPP: return "roci0 does not have this";
	case ENOMEM: return "there is no memory, or there are as many of these objects as may be (ibv_devinfo -v)";
	case ENODEV:
		return "the device is not there; a child of fork() opens it anew, and makes its own objects and ids";
	default: return "no check says more";
	}
}

static void tell(const char *call, int err)
{
	const char *note = roci_why_take(), *prefix = "";

	if (is_ordinary(err))
		return;
	if (!strncmp(call, "vb_", 3)) /* vb_ibv_create_cq (renames.h), vb_post_send */
		call += 3;
	call += *call == '_';                                                            /* _ibv_query_gid_ex */
	if (strncmp(call, "ibv_", 4) && strncmp(call, "rdma_", 5) && !strchr(call, ' ')) /* wr_complete */
		prefix = "ibv_";
	roci_device_say("roci: why: %s%s answers %s: %s\n", prefix, call,
			strerrorname_np(err) ? strerrorname_np(err) : "an unknown error",
			*note ? note : without_note(err));
}

void roci_verbs_refused(const char *call, int err)
{
	if (__builtin_expect(roci_why_on, 0))
		tell(call, err);
	errno = err;
}

void roci_verbs_why(const char *format, ...)
{
	char text[ROCI_WHY_NAMES];
	va_list args;

	if (!roci_why_on)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	roci_why_note("%s", text);
}
