/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "out_file.h"
#include "ticket_file.h"

/* Whether the ticket may take that name: nothing has it, or our ticket, or the ticket of an earlier receiver, or an
 * empty file. Anything else is somebody's, and would be gone at the end. */
static int check_place(const struct ticket_file *file)
{
	static const char *const ticket[] = {MOVER_TICKET_PREFIX};
	struct stat st;

	if (lstat(file->path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (file->ino && st.st_dev == file->dev && st.st_ino == file->ino)
		return 0;
	return S_ISREG(st.st_mode) ? out_file_ours(file->path, ticket, 1) : -EEXIST;
}

/* Writes the line to a new file `name`, and renames that to the ticket file. */
static int write_beside(struct ticket_file *file, char *name, const char *line, size_t len)
{
	struct stat st;
	int fd = mkostemp(name, O_CLOEXEC), err = 0; /* mode 0600 */

	if (fd < 0)
		return -errno;
	if (write(fd, line, len) != (ssize_t)len || fstat(fd, &st))
		err = errno ? -errno : -EIO;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(name, file->path))
		err = -errno;
	if (err) {
		unlink(name);
		return err;
	}
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	return 0;
}

int ticket_file_write(struct ticket_file *file, const struct mover_ticket *ticket)
{
	char line[MOVER_TICKET_CHARS + 1], *name;
	int err = check_place(file);

	if (err)
		return err;
	if (asprintf(&name, "%s.XXXXXX", file->path) < 0)
		return -ENOMEM;
	mover_ticket_print(ticket, line);
	size_t len = strlen(line);
	line[len] = '\n';
	errno = 0;
	err = write_beside(file, name, line, len + 1);
	explicit_bzero(line, sizeof(line));
	free(name);
	return err;
}

void ticket_file_remove(struct ticket_file *file)
{
	struct stat st;
	if (file->ino && !lstat(file->path, &st) && st.st_dev == file->dev && st.st_ino == file->ino)
		unlink(file->path);
	file->ino = 0;
}
