/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"
#include "device/abstract_name.h"
#include "device/say.h"
#include "device/sweep.h"
#include "device/sys.h"

#define LAYOUT      7    /* in the file's name: processes of another layout have another file */
#define SWEEP_TRIES 2000 /* a millisecond apart */
#define TABLE_BYTE  0    /* the byte whose lock guards the file's contents */
#define DIRS        3    /* candidates of rundir.h, at most */

#define WAIT_NS  1000000000 /* for the lock: its holders have it for a millisecond at most, unless they are stopped */
#define PAUSE_NS 200000     /* between attempts */

/* Open file description locks belong to the descriptor. Those of the process would be lost when some library closes
 * another descriptor of the file. */
static int lock_byte(int fd, int command, short type, unsigned byte)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	while (fcntl(fd, command, &lock))
		if (errno != EINTR)
			return -errno;
	return command == F_OFD_GETLK ? lock.l_type != F_UNLCK : 0;
}

/* -ETIMEDOUT: somebody has held the lock all the time. */
static int wait_for_byte(int fd, unsigned byte)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t end = roci_now() + WAIT_NS;
	int err;

	while ((err = lock_byte(fd, F_OFD_SETLK, F_WRLCK, byte)) == -EAGAIN || err == -EACCES) {
		if (roci_now() > end)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return err;
}

/* Not every file system can reserve. There, zeros are written up to the file's length, and nobody maps the file before
 * that. The lock is for two who write them at once: the later would overwrite what the first one's process wrote. */
static int write_zeros(int fd)
{
	static const char zeros[65536];
	const off_t len = sizeof(struct roci_registry_file);
	struct stat st = {0};
	int err;

	err = wait_for_byte(fd, TABLE_BYTE);
	if (err)
		return err;
	if (fstat(fd, &st))
		err = -errno;
	for (off_t at = st.st_size; !err && at < len;) {
		ssize_t n = pwrite(fd, zeros,
				   (size_t)(len - at < (off_t)sizeof(zeros) ? len - at : (off_t)sizeof(zeros)), at);

		if (n < 0 && errno != EINTR)
			err = -errno;
		at += n > 0 ? n : 0;
	}
	lock_byte(fd, F_OFD_SETLK, F_UNLCK, TABLE_BYTE);
	return err;
}

/* Gives the file its length, and room on the disk: a page of a mapping that finds no room there is SIGBUS. (Not
 * posix_fallocate(): where the file system cannot do it, that writes into a file which others use.) */
static int reserve(int fd, off_t len_now)
{
	if (len_now < (off_t)sizeof(struct roci_registry_file) &&
	    !roci_rundir_may_hold(sizeof(struct roci_registry_file)))
		return -EFBIG;
	while (fallocate(fd, 0, 0, sizeof(struct roci_registry_file)))
		if (errno != EINTR)
			return errno == EOPNOTSUPP || errno == ENOSYS ? write_zeros(fd) : -errno;
	return 0;
}

static void name_file(const struct roci_registry *reg, char *path, size_t size)
{
	snprintf(path, size, "%s/host-%lu-%d", reg->dir, reg->netns, LAYOUT);
}

static int open_file(struct roci_registry *reg)
{
	char path[ROCI_RUNDIR_MAX + 48];
	struct stat st;
	int fd, err;

	name_file(reg, path, sizeof(path));
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = -EPERM;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		goto err_close;
	err = reserve(fd, st.st_size);
	if (err)
		goto err_close;
	reg->file = mmap(NULL, sizeof(*reg->file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (reg->file == MAP_FAILED) {
		err = -errno;
		goto err_close;
	}
	reg->fd = fd;
	return 0;
err_close:
	close(fd);
	return err;
}

/* -EAGAIN: a process of this registry has the slot; -EADDRINUSE: one of another registry has its door. */
static int take_one(struct roci_registry *reg, unsigned slot)
{
	struct roci_abstract_name name = roci_abstract_name_door(slot);
	int err = lock_byte(reg->fd, F_OFD_SETLK, F_WRLCK, slot);

	if (err)
		return err == -EACCES ? -EAGAIN : err;
	reg->door_fd = roci_abstract_name_take(&name);
	if (reg->door_fd < 0) {
		lock_byte(reg->fd, F_OFD_SETLK, F_UNLCK, slot);
		return reg->door_fd;
	}
	reg->slot = slot;
	return 0;
}

/* Whether it was a process that sweeps (sweep.h) which had all slots: it locks the whole file at once. It may be done
 * by now. */
static bool is_swept(int fd)
{
	struct flock slots = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = ROCI_SLOTS - 1};

	return !fcntl(fd, F_OFD_GETLK, &slots) && (slots.l_type == F_UNLCK || !slots.l_len);
}

/* From a random slot on, so that the numbers of a dead process are not used again at once. -EAGAIN: all slots are
 * locked by somebody who sweeps. */
static int take_slot(struct roci_registry *reg)
{
	unsigned start = roci_random32();
	bool by_neighbour = false;

	for (unsigned i = 0; i < ROCI_SLOTS - 1; i++) {
		int err = take_one(reg, 1 + (start + i) % (ROCI_SLOTS - 1));

		if (err != -EAGAIN && err != -EADDRINUSE)
			return err;
		by_neighbour |= err == -EADDRINUSE;
	}
	return !by_neighbour && is_swept(reg->fd) ? -EAGAIN : -EUSERS;
}

/* -EAGAIN: somebody sweeps the file away. */
static int open_and_take(struct roci_registry *reg)
{
	struct stat st;
	int err = open_file(reg);

	if (err)
		return err;
	err = take_slot(reg);
	if (!fstat(reg->fd, &st) && !st.st_nlink)
		err = -EAGAIN;
	if (err)
		roci_registry_close(reg);
	return err;
}

static int open_in_dir(struct roci_registry *reg)
{
	struct timespec pause = {.tv_nsec = 1000000};
	int err = open_and_take(reg);

	/* On a busy machine, a process that sweeps may wait for a processor with the slots in its hand. */
	for (int i = 0; i < SWEEP_TRIES && err == -EAGAIN; i++) {
		nanosleep(&pause, NULL);
		err = open_and_take(reg);
	}
	return err;
}

/* A process holds a slot in the registry of reg->dir. */
static bool somebody_lives(const struct roci_registry *reg)
{
	struct flock slots = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = ROCI_SLOTS - 1};
	char path[ROCI_RUNDIR_MAX + 48];
	bool lives;
	int fd;

	name_file(reg, path, sizeof(path));
	if (access(path, F_OK) || roci_rundir_take(reg->dir))
		return false;
	fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	lives = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &slots) && slots.l_type != F_UNLCK;
	if (fd >= 0)
		close(fd);
	return lives;
}

/* A directory that was full when another process began may have room by now; all processes must share one registry. */
static int open_where_others_are(struct roci_registry *reg)
{
	int err;

	for (unsigned i = 0; (err = roci_rundir_name(i, reg->dir, sizeof(reg->dir))) != -ERANGE; i++)
		if (!err && somebody_lives(reg))
			return open_in_dir(reg);
	return -ENOENT;
}

/* Once for each reason: a program that tries again to open the device has heard it. The device's lock is held. */
static void say_why_not(unsigned i, int err, const char *instead)
{
	static int told[DIRS];
	char dir[ROCI_RUNDIR_MAX + 1] = "";

	if (told[i] == err && !*instead)
		return;
	told[i] = err;
	roci_rundir_name(i, dir, sizeof(dir));
	roci_device_say("roci: %s cannot hold the host registry: %s%s%s\n", dir, roci_rundir_reason(err),
			*instead ? "; it is in " : "", instead);
}

/* -EUSERS is not a reason to try the next one: the slots of one registry are all there are. */
static int open_first(struct roci_registry *reg)
{
	int errs[DIRS], err = -ENOENT;
	unsigned n;

	for (n = 0; n < DIRS; n++) {
		err = roci_rundir_name(n, reg->dir, sizeof(reg->dir));
		if (err == -ERANGE)
			break;
		err = err ? err : roci_rundir_take(reg->dir);
		err = err ? err : open_in_dir(reg);
		if (!err || err == -EUSERS)
			break;
		errs[n] = err;
	}
	if (err == -EUSERS)
		return err;
	for (unsigned i = 0; i < n; i++)
		if (err || errs[i] != -ENOENT) /* a system without /dev/shm is nothing to talk about */
			say_why_not(i, errs[i], err ? "" : reg->dir);
	if (!err)
		return 0;
	err = errs[0];
	for (unsigned i = 1; err == -ENOENT && i < n; i++)
		err = errs[i]; /* the reason is that of a directory which is there */
	return err;
}

int roci_registry_open(struct roci_registry *reg)
{
	struct stat st;
	int err;

	*reg = (struct roci_registry){.fd = -1, .door_fd = -1, .pid = (uint32_t)getpid()};
	if (stat("/proc/self/ns/net", &st))
		return -ENXIO;
	reg->netns = st.st_ino;
	roci_slot_key_read(&reg->slot_key, reg->netns);
	err = open_where_others_are(reg);
	if (err && err != -EUSERS)
		err = open_first(reg);
	if (!err)
		roci_sweep(reg->dir, reg->netns);
	return err;
}

void roci_registry_close(struct roci_registry *reg)
{
	if (reg->fd < 0)
		return;
	if (reg->door_fd >= 0)
		roci_sys_close(reg->door_fd);
	munmap(reg->file, sizeof(*reg->file));
	close(reg->fd);
	reg->fd = reg->door_fd = -1;
	reg->slot = 0;
}

bool roci_registry_alive(const struct roci_registry *reg, unsigned slot)
{
	if (slot == 0 || slot >= ROCI_SLOTS)
		return false;
	/* Our own lock does not conflict with us. */
	return slot == reg->slot || lock_byte(reg->fd, F_OFD_GETLK, F_WRLCK, slot) == 1;
}

/* The names are what the last holder wrote; one that was stopped between the two steps has not written its own yet. */
static void say_who_holds(const struct roci_registry *reg)
{
	roci_device_say(
		"roci: process %u (slot %u of the host registry) keeps the lock of %s; it is stopped or hangs. Until "
		"it "
		"goes on or ends, binding a port fails, and packets may reach other processes by way of a third.\n",
		atomic_load(&reg->file->holder_pid), atomic_load(&reg->file->holder_slot), reg->dir);
}

int roci_registry_try_lock(struct roci_registry *reg)
{
	int err = lock_byte(reg->fd, F_OFD_SETLK, F_WRLCK, TABLE_BYTE);

	if (err)
		return err == -EACCES ? -EAGAIN : err;
	reg->stuck = false;
	atomic_store(&reg->file->holder_slot, reg->slot);
	atomic_store(&reg->file->holder_pid, reg->pid);
	return 0;
}

int roci_registry_lock(struct roci_registry *reg)
{
	int err = roci_registry_try_lock(reg);

	if (err != -EAGAIN)
		return err;
	if (reg->stuck)
		return -ETIMEDOUT;
	err = wait_for_byte(reg->fd, TABLE_BYTE);
	if (!err)
		return roci_registry_try_lock(reg);
	if (err == -ETIMEDOUT) {
		reg->stuck = true;
		say_who_holds(reg);
	}
	return err;
}

void roci_registry_unlock(struct roci_registry *reg)
{
	lock_byte(reg->fd, F_OFD_SETLK, F_UNLCK, TABLE_BYTE);
}
