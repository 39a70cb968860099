/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Under `roci run`: /sys/class/infiniband has roci0's files, the device's file can be opened, and all other paths are
 * unchanged.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CLASS "/sys/class/infiniband"
#define TYPE  CLASS "/roci0/hca_type"
#define FILE_ "/dev/infiniband/uverbs-roci0"

static int failed;

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("FAIL: line %d: %s (errno %d)\n", __LINE__, #condition, errno);                         \
			failed = 1;                                                                                    \
		}                                                                                                      \
	} while (0)

static int reads_type(int fd)
{
	char text[32] = "";
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && !strcmp(text, "Rocinante\n");
}

static void test_open(void)
{
	CHECK(reads_type(open(TYPE, O_RDONLY)));
	CHECK(reads_type(open64(TYPE, O_RDONLY)));
	CHECK(reads_type(openat(AT_FDCWD, TYPE, O_RDONLY)));
	CHECK(reads_type(openat64(-1, TYPE, O_RDONLY)));
	FILE *f = fopen(TYPE, "r");
	CHECK(f && reads_type(dup(fileno(f))));
	if (f)
		fclose(f);
	errno = 0;
	CHECK(open(CLASS "/roci1/hca_type", O_RDONLY) == -1 && errno == ENOENT);
	CHECK(open(CLASS "/roci0/ports/1/gid_attrs/types/250", O_RDONLY) == -1 && errno == ENOENT);
}

static int lists(const char *path, const char *wanted)
{
	int found = 0;
	DIR *dir = opendir(path);
	if (!dir)
		return 0;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		found |= !strcmp(entry->d_name, wanted);
	closedir(dir);
	return found;
}

static void test_directory(void)
{
	CHECK(lists(CLASS, "roci0"));
	CHECK(lists(CLASS "/", "roci0"));
	CHECK(lists(CLASS "/roci0/ports", "1"));
	CHECK(lists("/sys/class/infiniband_verbs", "uverbs-roci0"));
	CHECK(!lists("/sys/class/infiniband_verb", "uverbs-roci0"));
	CHECK(!lists("/sys/class/infiniband_mad", "roci0"));
}

static void test_names(void)
{
	struct stat st;
	struct statx stx;
	char real[PATH_MAX], text[8];
	CHECK(!stat(CLASS "/roci0", &st) && S_ISDIR(st.st_mode));
	CHECK(!lstat(TYPE, &st) && S_ISREG(st.st_mode));
	CHECK(!fstatat(AT_FDCWD, TYPE, &st, 0) && S_ISREG(st.st_mode));
	CHECK(!statx(AT_FDCWD, TYPE, 0, STATX_TYPE, &stx) && S_ISREG(stx.stx_mode));
	CHECK(!access(TYPE, R_OK));
	CHECK(!faccessat(AT_FDCWD, TYPE, R_OK, 0));
	CHECK(realpath(CLASS "/roci0", real) && !access(real, R_OK));
	errno = 0;
	CHECK(readlink(CLASS "/roci0", real, sizeof(real)) == -1 && errno == EINVAL);
	errno = 0;
	CHECK(getxattr(TYPE, "user.none", text, sizeof(text)) == -1 && errno != ENOENT);
}

/* As libfabric reads it: the real path of `device` ends with a PCI address. */
static void test_pci_address(void)
{
	char real[PATH_MAX];
	unsigned domain, bus, slot, function;
	char rest;
	const char *slash = NULL;
	CHECK(realpath(CLASS "/roci0/device", real) && (slash = strrchr(real, '/')));
	CHECK(slash && sscanf(slash + 1, "%x:%x:%x.%x%c", &domain, &bus, &slot, &function, &rest) == 4);
	CHECK(!access(CLASS "/roci0/device/numa_node", R_OK) && !access(CLASS "/roci0/device/net", R_OK));
}

static void test_device_file(void)
{
	struct stat st;
	CHECK(!stat(FILE_, &st) && S_ISCHR(st.st_mode));
	CHECK(!access(FILE_, R_OK | W_OK));
	int fd = open(FILE_, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	close(fd);
	errno = 0;
	CHECK(stat("/dev/infiniband/uverbs-roci", &st) == -1 && errno == ENOENT);
}

static void test_others(const char *dir)
{
	struct stat st;
	char path[PATH_MAX], text[PATH_MAX];
	snprintf(path, sizeof(path), "%s/paths-test-%d", dir, (int)getpid());
	umask(0);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0641);
	CHECK(fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0777) == 0641);
	close(fd);
	unlink(path);
	fd = openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0604);
	CHECK(fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0777) == 0604);
	close(fd);
	CHECK(realpath(path, text) && strstr(text, "paths-test"));
	unlink(path);
	/* Not exchanged, whether it exists or not. */
	fd = open("/dev/infiniband/rdma_cm", O_PATH);
	if (fd >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		CHECK(readlink(path, text, sizeof(text)) > 0 && !strncmp(text, "/dev/infiniband/", 16));
	}
	errno = 77;
	CHECK(!stat("/", &st) && errno == 77); /* success does not change errno */
}

/* Runs before all constructors, as an allocator may. */
static int early_fd = -1;
static void early(void)
{
	early_fd = open("/dev/null", O_RDONLY);
}
__attribute__((section(".preinit_array"), used)) static void (*early_pointer)(void) = early;

int main(void)
{
	CHECK(early_fd >= 0);
	test_open();
	test_directory();
	test_names();
	test_pci_address();
	test_device_file();
	test_others(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	pid_t child = fork();
	if (!child) {
		failed = 0;
		test_open();
		_exit(failed);
	}
	int status = 1;
	CHECK(waitpid(child, &status, 0) == child && !status);
	return failed;
}
