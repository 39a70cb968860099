/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of this process, of its sockets, and of where it may write. */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "device/rundir.h"
#include "doctor/doctor.h"
#include "doctor/files.h"
#include "units.h"

#define BUFFER_ENOUGH  (1 << 20)
#define BUFFER_BYTES   (8 << 20)   /* what roci0 asks for */
#define MEMLOCK_ENOUGH (64u << 20) /* a few large regions */
#define FILES_ENOUGH   256

static void examine_memlock(struct findings *findings, const struct doctor_host *host)
{
	struct rlimit limit;
	char text[UNITS_CHARS];
	bool devices = file_access(host, F_OK, "/dev/infiniband");
	struct finding *finding;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= MEMLOCK_ENOUGH)
		return;
	finding = finding_add(findings, devices ? FINDING_WARNING : FINDING_NOTE, "memlock",
			      "this process may lock %s of memory: adapters cannot register more; roci0 locks none",
			      units_bytes(text, limit.rlim_cur));
	finding_proof(finding, "`ulimit -l` is %llu KiB", (unsigned long long)limit.rlim_cur / 1024);
	finding_fix(finding,
		    "add \"* - memlock unlimited\" to /etc/security/limits.conf and log in again; in a container: "
		    "--ulimit memlock=-1");
}

static void examine_files(struct findings *findings)
{
	struct rlimit limit;
	struct finding *finding;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= FILES_ENOUGH)
		return;
	finding = finding_add(findings, FINDING_WARNING, "files", "this process may open only %llu files",
			      (unsigned long long)limit.rlim_cur);
	finding_proof(finding, "`ulimit -n` is %llu", (unsigned long long)limit.rlim_cur);
	finding_fix(finding, "ulimit -n 1024");
}

/* The size that the kernel grants to who asks for BUFFER_BYTES as roci0 does; -1: no socket. */
static int granted(int option, int force)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), want = BUFFER_BYTES, got = -1;
	socklen_t len = sizeof(got);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, force, &want, sizeof(want)))
		setsockopt(fd, SOL_SOCKET, option, &want, sizeof(want));
	if (getsockopt(fd, SOL_SOCKET, option, &got, &len))
		got = -1;
	close(fd);
	return got < 0 ? got : got / 2; /* socket(7): the kernel doubles the value */
}

static void examine_buffer(struct findings *findings, const char *id, const char *what, const char *sysctl, int bytes)
{
	char text[UNITS_CHARS];
	struct finding *finding;

	if (bytes < 0 || bytes >= BUFFER_BYTES)
		return;
	finding = finding_add(findings, bytes < BUFFER_ENOUGH ? FINDING_WARNING : FINDING_NOTE, id,
			      "a UDP socket of this user gets %s to %s: of larger bursts a part is lost and sent again",
			      units_bytes(text, (uint64_t)bytes), what);
	finding_proof(finding, "setsockopt(2) for %d bytes granted %d", BUFFER_BYTES, bytes);
	finding_fix(finding, "sudo sysctl -w %s=%d", sysctl, BUFFER_BYTES);
}

/* Why the folder cannot be used; NULL: it can. Makes nothing. */
static const char *rundir_fault(const char *path)
{
	char parent[PATH_MAX];
	struct statvfs fs;
	struct stat st;

	if (!lstat(path, &st)) {
		if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
			return roci_rundir_reason(-EPERM);
		snprintf(parent, sizeof(parent), "%s", path);
	} else {
		snprintf(parent, sizeof(parent), "%s", path);
		*strrchr(parent, '/') = '\0';
	}
	if (access(*parent ? parent : "/", W_OK | X_OK))
		return strerror(errno);
	if (statvfs(*parent ? parent : "/", &fs))
		return strerror(errno);
	return (uint64_t)fs.f_bavail * fs.f_frsize < ROCI_RUNDIR_BYTES ? "less than 4 MiB are free there" : NULL;
}

/* Processes find each other by the first folder that can be used. */
static void examine_rundir(struct findings *findings)
{
	char path[ROCI_RUNDIR_MAX + 1], first[ROCI_RUNDIR_MAX + 1] = "";
	const char *fault, *first_fault = NULL;
	struct finding *finding;
	int err;

	for (unsigned i = 0; (err = roci_rundir_name(i, path, sizeof(path))) != -ERANGE; i++) {
		fault = err ? strerror(-err) : *path == '/' ? rundir_fault(path) : NULL;
		if (!fault) {
			finding = finding_add(findings, first_fault ? FINDING_WARNING : FINDING_OK, "rundir",
					      "processes of this user find each other by %s", path);
			if (first_fault) {
				finding_proof(finding, "%s cannot be used: %s", first, first_fault);
				finding_fix(
					finding,
					"`ls -ld %s; df -h` shows more. Programs that are to find each other need the "
					"same folder: set ROCI_RUNDIR=DIR for all of them",
					first);
			} else {
				finding_proof(finding,
					      "it is this user's alone, or can be made; at least 4 MiB are free there");
			}
			return;
		}
		if (!first_fault) {
			snprintf(first, sizeof(first), "%s", path);
			first_fault = fault;
		}
	}
	finding = finding_add(findings, FINDING_PROBLEM, "rundir",
			      "roci0 has no folder for the files that processes share");
	finding_proof(finding, "%s: %s", first, first_fault ? first_fault : "");
	finding_fix(finding, "mkdir -m 0700 DIR, where there is room, and set ROCI_RUNDIR=DIR for all programs");
}

static void examine_ptrace(struct findings *findings, const struct doctor_host *host)
{
	char line[16];
	struct finding *finding;
	int scope;

	if (!file_line(host, line, sizeof(line), "/proc/sys/kernel/yama/ptrace_scope"))
		return;
	scope = atoi(line);
	if (!scope)
		return;
	/* With 1 a process can allow it for itself, which roci0 does: device/local/rights.c. */
	finding =
		finding_add(findings, FINDING_NOTE, "ptrace",
			    "processes may not copy from each other's memory: UCX and MPI use their slower ways on one "
			    "host; %s",
			    scope == 1 ? "the local path of roci0 allows it to processes of this user"
				       : "roci0 takes the wire in place of its local path");
	finding_proof(finding, "/proc/sys/kernel/yama/ptrace_scope is %s", line);
	finding_fix(finding, "sudo sysctl -w kernel.yama.ptrace_scope=0");
}

void doctor_limits(struct findings *findings, const struct doctor_host *host)
{
	examine_rundir(findings);
	examine_memlock(findings, host);
	examine_files(findings);
	examine_buffer(findings, "receive-buffer", "receive", "net.core.rmem_max", granted(SO_RCVBUF, SO_RCVBUFFORCE));
	examine_buffer(findings, "send-buffer", "send", "net.core.wmem_max", granted(SO_SNDBUF, SO_SNDBUFFORCE));
	examine_ptrace(findings, host);
}
