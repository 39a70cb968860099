/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define YAMA "/proc/sys/kernel/yama/ptrace_scope"

/* A filter of system calls (seccomp) may refuse them. */
static bool may_copy(void)
{
	uint64_t from = 1, to = 0;
	struct iovec mine = {&to, sizeof(to)}, theirs = {&from, sizeof(from)};

	if (process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) != sizeof(to))
		return false;
	to = 2;
	return process_vm_writev(getpid(), &mine, 1, &theirs, 1, 0) == sizeof(to) && from == 2;
}

static char yama_scope(void)
{
	char scope = '0';
	int fd = open(YAMA, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, &scope, 1) != 1)
		scope = '3';
	if (fd >= 0)
		close(fd);
	return scope;
}

/* A filter may refuse the call. There is no process -1, so nothing happens. */
static bool may_allow_peers(void)
{
	return prctl(PR_SET_PTRACER, INT_MAX, 0, 0, 0) && errno == EINVAL;
}

int roci_local_allow_peers(void)
{
	if (yama_scope() == '1' && prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0))
		return -errno;
	return 0;
}

bool roci_local_try_copy(int32_t pid, uint64_t address, uint64_t value)
{
	uint64_t got = 0;
	struct iovec mine = {&got, sizeof(got)}, theirs = {(void *)(uintptr_t)address, sizeof(got)};

	if (yama_scope() == '1')
		return true;
	return process_vm_readv(pid, &mine, 1, &theirs, 1, 0) == sizeof(got) && got == value;
}

static void mix(uint64_t *sum, uint64_t value)
{
	*sum = (*sum ^ value) * UINT64_C(0x100000001b3);
	*sum ^= *sum >> 29;
}

static void mix_namespace(uint64_t *sum, const char *path)
{
	struct stat st;

	mix(sum, stat(path, &st) ? 0 : st.st_ino);
}

static void mix_capabilities(uint64_t *sum)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	syscall(SYS_capget, &header, data);
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		mix(sum, data[i].permitted);
}

/* A security module (AppArmor, SELinux) lets processes of one label copy, or does not. */
static void mix_label(uint64_t *sum)
{
	char label[512];
	int fd = open("/proc/self/attr/current", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, label, sizeof(label));

	for (ssize_t i = 0; i < n; i++)
		mix(sum, (uint8_t)label[i]);
	if (fd >= 0)
		close(fd);
}

static void mix_ids(uint64_t *sum)
{
	uid_t u[3];
	gid_t g[3];

	if (getresuid(&u[0], &u[1], &u[2]) || getresgid(&g[0], &g[1], &g[2]))
		return;
	for (unsigned i = 0; i < 3; i++) {
		mix(sum, u[i]);
		mix(sum, g[i]);
	}
}

uint64_t roci_local_rights(const char **why)
{
	const char *path = getenv("ROCI_PATH"), *capture = getenv("ROCI_CAPTURE"), *fault = getenv("ROCI_FAULT");
	uint64_t sum = UINT64_C(0xcbf29ce484222325);
	char scope = yama_scope();

	*why = "";
	if (path && *path && strcmp(path, "local"))
		*why = "ROCI_PATH asks for the wire";
	else if (capture && *capture)
		*why = "ROCI_CAPTURE captures packets";
	else if (fault && *fault)
		*why = "ROCI_FAULT is about packets";
	else if (prctl(PR_GET_DUMPABLE) != 1)
		*why = "the process is not dumpable";
	else if (!may_copy())
		*why = "the kernel or a filter refuses process_vm_readv(2)";
	else if (scope > '1' || (scope == '1' && !may_allow_peers()))
		*why = YAMA " forbids it";
	if (**why)
		return 0;
	mix(&sum, (uint64_t)scope);
	mix_label(&sum);
	mix_ids(&sum);
	mix_capabilities(&sum);
	mix_namespace(&sum, "/proc/self/ns/pid");
	mix_namespace(&sum, "/proc/self/ns/user");
	return sum | 1;
}
