/* SPDX-License-Identifier: BSD-2-Clause */
/* Which versions meet here. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "doctor/doctor.h"

/* The file that libibverbs.so.1 is a name of: its version is in its name. */
static const char *verbs_library(char path[PATH_MAX])
{
	Dl_info info;

	if (!dladdr(dlsym(RTLD_DEFAULT, "ibv_get_device_list"), &info) || !realpath(info.dli_fname, path))
		return "an unknown libibverbs";
	return path;
}

void doctor_versions(struct findings *findings, const struct doctor_host *host)
{
	char path[PATH_MAX];
	struct utsname name;

	uname(&name);
	finding_proof(finding_add(findings, FINDING_OK, "versions", "roci %s on %s %s %s, with %s", ROCI_VERSION,
				  name.sysname, host->release, name.machine, verbs_library(path)),
		      "uname(2), and where ibv_get_device_list() was loaded from");
}
