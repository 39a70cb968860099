/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interposed C library functions: sysfs.h lists them, and says which paths they exchange and why.
 *
 * The wrappers may be called before any constructor, from within dlopen(), in a forked child and in a signal handler:
 * they take no lock and allocate nothing. There is one exception: in a program that has not read the device list yet,
 * or not since the GID table changed, the first use of an exchanged path writes the tree.
 *
 * The exported names are unversioned (gen_symbols.py), so that they serve whatever version a program asks for. They are
 * set by asm labels, because the C library's headers redirect and inline the plain names.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h> /* IWYU pragma: keep: struct statx */

#include "verbs/sysfs/sysfs.h"

#define SYSFS      "/sys"
#define PATH_BYTES 512 /* of an exchanged path: ours are far shorter, and signal stacks are small */

_Static_assert(sizeof(long) == sizeof(off_t), "open64() and its like are the same as open()");

/* Defines vb_NAME, exported as NAME; and the same function under another name. */
#define EXPORT(name)      __asm__(name) __attribute__((visibility("default")))
#define SAME(other, name) EXPORT(other) __attribute__((alias(name)))

int vb_open(const char *path, int flags, ...) EXPORT("open");
int vb_openat(int dir, const char *path, int flags, ...) EXPORT("openat");
int vb_open_2(const char *path, int flags) EXPORT("__open64_2");
FILE *vb_fopen(const char *path, const char *mode) EXPORT("fopen");
DIR *vb_opendir(const char *path) EXPORT("opendir");
int vb_stat(const char *path, struct stat *st) EXPORT("stat");
int vb_lstat(const char *path, struct stat *st) EXPORT("lstat");
int vb_fstatat(int dir, const char *path, struct stat *st, int flags) EXPORT("fstatat");
int vb_statx(int dir, const char *path, int flags, unsigned mask, struct statx *st) EXPORT("statx");
int vb_xstat(int version, const char *path, struct stat *st) EXPORT("__xstat");
int vb_lxstat(int version, const char *path, struct stat *st) EXPORT("__lxstat");
int vb_access(const char *path, int mode) EXPORT("access");
int vb_faccessat(int dir, const char *path, int mode, int flags) EXPORT("faccessat");
ssize_t vb_getxattr(const char *path, const char *name, void *value, size_t size) EXPORT("getxattr");
ssize_t vb_lgetxattr(const char *path, const char *name, void *value, size_t size) EXPORT("lgetxattr");
ssize_t vb_readlink(const char *path, char *buf, size_t size) EXPORT("readlink");
char *vb_realpath(const char *path, char *resolved) EXPORT("realpath");
char *vb_realpath_chk(const char *path, char *resolved, size_t size) EXPORT("__realpath_chk");

int vb_open64(const char *path, int flags, ...) SAME("open64", "open");
int vb_openat64(int dir, const char *path, int flags, ...) SAME("openat64", "openat");
FILE *vb_fopen64(const char *path, const char *mode) SAME("fopen64", "fopen");
int vb_stat64(const char *path, struct stat *st) SAME("stat64", "stat");
int vb_lstat64(const char *path, struct stat *st) SAME("lstat64", "lstat");
int vb_fstatat64(int dir, const char *path, struct stat *st, int flags) SAME("fstatat64", "fstatat");
int vb_xstat64(int version, const char *path, struct stat *st) SAME("__xstat64", "__xstat");
int vb_lxstat64(int version, const char *path, struct stat *st) SAME("__lxstat64", "__lxstat");

/* The next definition of each function: the C library's, or another interposer's. */
struct next {
	int (*open)(const char *path, int flags, ...);
	int (*openat)(int dir, const char *path, int flags, ...);
	int (*open_2)(const char *path, int flags);
	FILE *(*fopen)(const char *path, const char *mode);
	DIR *(*opendir)(const char *path);
	int (*stat)(const char *path, struct stat *st);
	int (*lstat)(const char *path, struct stat *st);
	int (*fstatat)(int dir, const char *path, struct stat *st, int flags);
	int (*statx)(int dir, const char *path, int flags, unsigned mask, struct statx *st);
	int (*access)(const char *path, int mode);
	int (*faccessat)(int dir, const char *path, int mode, int flags);
	ssize_t (*getxattr)(const char *path, const char *name, void *value, size_t size);
	ssize_t (*lgetxattr)(const char *path, const char *name, void *value, size_t size);
	ssize_t (*readlink)(const char *path, char *buf, size_t size);
	char *(*realpath)(const char *path, char *resolved);
	char *(*realpath_chk)(const char *path, char *resolved, size_t size);
};

static struct next found;
static atomic_bool found_all;

/* A constructor, so that no later call needs the dynamic loader, which takes locks. Calls before it run it themselves.
 */
__attribute__((constructor)) static void find_next(void)
{
	struct next n = {
		.open = dlsym(RTLD_NEXT, "open"),
		.openat = dlsym(RTLD_NEXT, "openat"),
		.open_2 = dlsym(RTLD_NEXT, "__open64_2"),
		.fopen = dlsym(RTLD_NEXT, "fopen"),
		.opendir = dlsym(RTLD_NEXT, "opendir"),
		.stat = dlsym(RTLD_NEXT, "stat"),
		.lstat = dlsym(RTLD_NEXT, "lstat"),
		.fstatat = dlsym(RTLD_NEXT, "fstatat"),
		.statx = dlsym(RTLD_NEXT, "statx"),
		.access = dlsym(RTLD_NEXT, "access"),
		.faccessat = dlsym(RTLD_NEXT, "faccessat"),
		.getxattr = dlsym(RTLD_NEXT, "getxattr"),
		.lgetxattr = dlsym(RTLD_NEXT, "lgetxattr"),
		.readlink = dlsym(RTLD_NEXT, "readlink"),
		.realpath = dlsym(RTLD_NEXT, "realpath"),
		.realpath_chk = dlsym(RTLD_NEXT, "__realpath_chk"),
	};
	if (!atomic_load_explicit(&found_all, memory_order_acquire)) {
		found = n;
		atomic_store_explicit(&found_all, true, memory_order_release);
	}
}

static const struct next *next(void)
{
	if (!atomic_load_explicit(&found_all, memory_order_acquire))
		find_next();
	return &found;
}

/* Does the path lie at or below `prefix`? */
static bool below(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);
	return !strncmp(path, prefix, len) && (path[len] == '/' || !path[len]);
}

/* The path to use instead of `path`, perhaps written to `buf`. Keeps errno. */
static const char *exchange(const char *path, char buf[PATH_BYTES])
{
	if (!path || (strncmp(path, SYSFS "/class/infiniband", 21) && strncmp(path, "/dev/infiniband/", 16)))
		return path;
	if (!strcmp(path, "/dev/infiniband/uverbs-roci0"))
		return "/dev/null";
	if (!below(path, SYSFS "/class/infiniband") && !below(path, SYSFS "/class/infiniband_verbs"))
		return path;
	int saved = errno;
	const char *tree = vb_sysfs_root();
	errno = saved;
	size_t len = tree ? strlen(tree) : 0, rest = strlen(path + strlen(SYSFS));
	if (!tree || len + rest >= PATH_BYTES)
		return path;
	memcpy(buf, tree, len);
	memcpy(buf + len, path + strlen(SYSFS), rest + 1);
	return buf;
}

static bool has_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

int vb_open(const char *path, int flags, ...)
{
	char exchanged[PATH_BYTES];
	va_list args;
	va_start(args, flags);
	mode_t mode = has_mode(flags) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return next()->open(exchange(path, exchanged), flags, mode);
}

int vb_openat(int dir, const char *path, int flags, ...)
{
	char exchanged[PATH_BYTES];
	va_list args;
	va_start(args, flags);
	mode_t mode = has_mode(flags) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return next()->openat(dir, exchange(path, exchanged), flags, mode);
}

int vb_open_2(const char *path, int flags)
{
	char exchanged[PATH_BYTES];
	return next()->open_2(exchange(path, exchanged), flags);
}

FILE *vb_fopen(const char *path, const char *mode)
{
	char exchanged[PATH_BYTES];
	return next()->fopen(exchange(path, exchanged), mode);
}

DIR *vb_opendir(const char *path)
{
	char exchanged[PATH_BYTES];
	return next()->opendir(exchange(path, exchanged));
}

int vb_stat(const char *path, struct stat *st)
{
	char exchanged[PATH_BYTES];
	return next()->stat(exchange(path, exchanged), st);
}

int vb_lstat(const char *path, struct stat *st)
{
	char exchanged[PATH_BYTES];
	return next()->lstat(exchange(path, exchanged), st);
}

int vb_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	char exchanged[PATH_BYTES];
	return next()->fstatat(dir, exchange(path, exchanged), st, flags);
}

int vb_statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	char exchanged[PATH_BYTES];
	return next()->statx(dir, exchange(path, exchanged), flags, mask, st);
}

/* Programs built before glibc 2.33 (Python wheels) call these. On 64 bits there is only one version of the structure.
 */
int vb_xstat(int version, const char *path, struct stat *st)
{
	return vb_stat(path, st);
}

int vb_lxstat(int version, const char *path, struct stat *st)
{
	return vb_lstat(path, st);
}

int vb_access(const char *path, int mode)
{
	char exchanged[PATH_BYTES];
	return next()->access(exchange(path, exchanged), mode);
}

int vb_faccessat(int dir, const char *path, int mode, int flags)
{
	char exchanged[PATH_BYTES];
	return next()->faccessat(dir, exchange(path, exchanged), mode, flags);
}

/* `ls -l` reads the access control list. */
ssize_t vb_getxattr(const char *path, const char *name, void *value, size_t size)
{
	char exchanged[PATH_BYTES];
	return next()->getxattr(exchange(path, exchanged), name, value, size);
}

ssize_t vb_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	char exchanged[PATH_BYTES];
	return next()->lgetxattr(exchange(path, exchanged), name, value, size);
}

ssize_t vb_readlink(const char *path, char *buf, size_t size)
{
	char exchanged[PATH_BYTES];
	return next()->readlink(exchange(path, exchanged), buf, size);
}

char *vb_realpath(const char *path, char *resolved)
{
	char exchanged[PATH_BYTES];
	return next()->realpath(exchange(path, exchanged), resolved);
}

char *vb_realpath_chk(const char *path, char *resolved, size_t size)
{
	char exchanged[PATH_BYTES];
	return next()->realpath_chk(exchange(path, exchanged), resolved, size);
}
