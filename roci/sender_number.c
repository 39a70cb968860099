/* SPDX-License-Identifier: BSD-2-Clause */
#include "sender_number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/rundir.h"
#include "mover/secure.h"
#include "wire/fnv.h"

#define FILES 64 /* so many at most are left behind, whatever is killed; two receivers seldom have the same one */

/* What a file has. */
struct record {
	char receiver[240];
	uint8_t number[MOVER_TRANSFER_BYTES];
};

static void name_receiver(char *name, size_t size, const struct mover_ticket *ticket, const char *host, uint16_t port)
{
	char identity[17];

	if (!ticket) {
		snprintf(name, size, "%u of %s", port, host);
		return;
	}
	mover_secure_identity(ticket->secret, identity);
	snprintf(name, size, "ticket %s", identity);
}

static unsigned file_of(const char *receiver)
{
	return roci_fnv(ROCI_FNV_BEGIN, receiver, strlen(receiver)) % FILES;
}

/* In the first run directory that works. */
static int open_file(struct sender_number *n, unsigned file)
{
	char dir[ROCI_RUNDIR_MAX + 1];
	int fd = -1, err;

	for (unsigned i = 0; fd < 0 && (err = roci_rundir_name(i, dir, sizeof(dir))) != -ERANGE; i++) {
		if (err || roci_rundir_take(dir))
			continue;
		snprintf(n->path, sizeof(n->path), "%s/sender-%u", dir, file);
		fd = open(n->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	return fd;
}

/* Whether the file is this process's alone, and still has its name: its last owner may have removed it just now. */
static bool lock_file(int fd)
{
	struct stat st;

	return !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && st.st_nlink;
}

/* A number for that receiver from the file, or a new one into it. */
static bool take_number(struct sender_number *n, const struct record *own)
{
	struct record record;

	n->found = pread(n->fd, &record, sizeof(record), 0) == sizeof(record) &&
		   !memcmp(record.receiver, own->receiver, sizeof(record.receiver));
	if (!n->found) {
		record = *own;
		if (getrandom(record.number, sizeof(record.number), 0) != sizeof(record.number) ||
		    pwrite(n->fd, &record, sizeof(record), 0) != sizeof(record))
			return false;
	}
	memcpy(n->bytes, record.number, sizeof(n->bytes));
	return true;
}

bool sender_number_take(struct sender_number *n, const struct mover_ticket *ticket, const char *host, uint16_t port)
{
	struct record own = {0};

	name_receiver(own.receiver, sizeof(own.receiver), ticket, host, port);
	n->fd = open_file(n, file_of(own.receiver));
	if (n->fd < 0)
		return false;
	if (lock_file(n->fd) && take_number(n, &own))
		return true;
	close(n->fd);
	n->fd = -1;
	return false;
}

void sender_number_end(struct sender_number *n, enum mover_status status)
{
	bool over = status == MOVER_OK || status == MOVER_PARTLY;
	bool keep = status == MOVER_LOST || status == MOVER_INTERRUPTED || (n->found && !over);

	if (n->fd < 0)
		return;
	if (!keep)
		unlink(n->path);
	close(n->fd);
	n->fd = -1;
}
