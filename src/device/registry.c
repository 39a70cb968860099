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
#include "device/sweep.h"

#define LAYOUT     2  /* in the file's name: processes of another layout have another file */
#define TRIES      10 /* while somebody sweeps the file away, which takes a moment */
#define TABLE_BYTE 0  /* the byte whose lock guards the file's contents */

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

static int open_file(struct roci_registry *reg)
{
	char path[ROCI_RUNDIR_MAX + 48];
	struct stat st;
	int fd, err;

	snprintf(path, sizeof(path), "%s/host-%lu-%d", reg->dir, reg->netns, LAYOUT);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = -EPERM;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		goto err_close;
	/* Each process sets the same length, so it does not matter which is first. */
	if (ftruncate(fd, sizeof(*reg->file))) {
		err = -errno;
		goto err_close;
	}
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

/* From a random slot on, so that the numbers of a dead process are not used again at once. */
static int take_slot(struct roci_registry *reg)
{
	unsigned start = roci_random32();

	for (unsigned i = 0; i < ROCI_SLOTS - 1; i++) {
		unsigned slot = 1 + (start + i) % (ROCI_SLOTS - 1);
		int err = lock_byte(reg->fd, F_OFD_SETLK, F_WRLCK, slot);

		if (!err) {
			reg->slot = slot;
			return 0;
		}
		if (err != -EAGAIN && err != -EACCES)
			return err;
	}
	return -ENOSPC;
}

/* -EAGAIN: somebody sweeps the file away (sweep.h). */
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

int roci_registry_open(struct roci_registry *reg)
{
	struct timespec pause = {.tv_nsec = 1000000};
	struct stat st;
	int err;

	*reg = (struct roci_registry){.fd = -1};
	if (stat("/proc/self/ns/net", &st))
		return -errno;
	reg->netns = st.st_ino;
	err = roci_rundir(reg->dir, sizeof(reg->dir));
	if (err)
		return err;
	err = open_and_take(reg);
	/* A process that sweeps holds all slots for a moment. */
	for (int i = 0; i < TRIES && (err == -EAGAIN || err == -ENOSPC); i++) {
		nanosleep(&pause, NULL);
		err = open_and_take(reg);
	}
	if (!err)
		roci_sweep(reg->dir, reg->netns);
	return err;
}

void roci_registry_close(struct roci_registry *reg)
{
	if (reg->fd < 0)
		return;
	munmap(reg->file, sizeof(*reg->file));
	close(reg->fd);
	reg->fd = -1;
	reg->slot = 0;
}

bool roci_registry_alive(const struct roci_registry *reg, unsigned slot)
{
	if (slot == 0 || slot >= ROCI_SLOTS)
		return false;
	/* Our own lock does not conflict with us. */
	return slot == reg->slot || lock_byte(reg->fd, F_OFD_GETLK, F_WRLCK, slot) == 1;
}

int roci_registry_lock(struct roci_registry *reg)
{
	return lock_byte(reg->fd, F_OFD_SETLKW, F_WRLCK, TABLE_BYTE);
}

void roci_registry_unlock(struct roci_registry *reg)
{
	lock_byte(reg->fd, F_OFD_SETLK, F_UNLCK, TABLE_BYTE);
}
