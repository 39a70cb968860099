/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mover/beneath.h"
#include "mover/entry.h"

/* Takes ownership of `fd`. NULL with errno. */
static struct folder *folder_of_fd(int fd, const char *path, size_t len)
{
	struct folder *folder = malloc(sizeof(*folder) + len + 1);
	struct stat st;

	if (!folder || fstat(fd, &st)) {
		free(folder);
		close(fd);
		return NULL;
	}
	*folder = (struct folder){.fd = fd, .dev = st.st_dev, .ino = st.st_ino, .users = 1};
	memcpy(folder->path, path, len);
	folder->path[len] = 0;
	return folder;
}

int mover_folders_create(struct folders *folders, int root_fd)
{
	memset(folders, 0, sizeof(*folders));
	folders->root = folder_of_fd(root_fd, "", 0);
	if (!folders->root)
		return -errno;
	folders->root->is_root = true;
	pthread_mutex_init(&folders->lock, NULL);
	pthread_mutex_init(&folders->sync_lock, NULL);
	return 0;
}

static void put_locked(struct folder *folder)
{
	if (!folder || --folder->users)
		return;
	close(folder->fd);
	free(folder);
}

void mover_folders_destroy(struct folders *folders)
{
	for (int i = 0; i < FOLDER_CACHE; i++)
		put_locked(folders->cache[i]);
	for (int i = 0; i < FOLDER_CHANGED; i++)
		put_locked(folders->changed[i]);
	put_locked(folders->root);
	pthread_mutex_destroy(&folders->lock);
	pthread_mutex_destroy(&folders->sync_lock);
}

bool mover_folder_in_place(struct folders *folders, const struct folder *folder)
{
	struct stat st;

	/* A path through links might lead to the same folder by accident. That is harmless. */
	return folder->is_root || (!fstatat(folders->root->fd, folder->path, &st, AT_SYMLINK_NOFOLLOW) &&
				   st.st_dev == folder->dev && st.st_ino == folder->ino);
}

void mover_folders_look_again(struct folders *folders)
{
	pthread_mutex_lock(&folders->lock);
	folders->look++;
	pthread_mutex_unlock(&folders->lock);
}

/* As mover_folder_in_place(), but believes what was found since mover_folders_look_again(). */
static bool still_there(struct folders *folders, struct folder *folder)
{
	if (folders->look && folder->looked == folders->look)
		return true;
	if (!mover_folder_in_place(folders, folder))
		return false;
	folder->looked = folders->look;
	return true;
}

static int open_folder(struct folders *folders, const char *path, size_t len, struct folder **folder)
{
	char terminated[MOVER_PATH_MAX + 1];
	int fd;

	memcpy(terminated, path, len);
	terminated[len] = 0;
	fd = mover_beneath_open(folders->root->fd, terminated, O_RDONLY | O_DIRECTORY);
	if (fd == -EACCES) /* it may be searched but not read */
		fd = mover_beneath_open(folders->root->fd, terminated, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	*folder = folder_of_fd(fd, path, len);
	return *folder ? 0 : -errno;
}

/* The slot that has the folder, else the slot to replace. */
static struct folder **cache_slot(struct folders *folders, const char *path, size_t len)
{
	struct folder **slot = &folders->cache[0];

	for (int i = 0; i < FOLDER_CACHE; i++) {
		struct folder *folder = folders->cache[i];

		if (folder && !strncmp(folder->path, path, len) && !folder->path[len])
			return &folders->cache[i];
		if (*slot && (!folder || folder->used < (*slot)->used))
			slot = &folders->cache[i];
	}
	return slot;
}

static int get_locked(struct folders *folders, const char *path, size_t len, struct folder **folder)
{
	struct folder **slot;
	int err;

	if (len == 0) {
		*folder = folders->root;
		(*folder)->users++;
		return 0;
	}
	slot = cache_slot(folders, path, len);
	if (!*slot || strncmp((*slot)->path, path, len) || (*slot)->path[len] || !still_there(folders, *slot)) {
		put_locked(*slot);
		*slot = NULL;
		err = open_folder(folders, path, len, slot);
		if (err)
			return err;
		(*slot)->looked = folders->look;
	}
	(*slot)->used = ++folders->clock;
	(*slot)->users++;
	*folder = *slot;
	return 0;
}

int mover_folder_get(struct folders *folders, const char *name, struct folder **folder, const char **leaf)
{
	const char *slash = strrchr(name, '/');
	int err;

	*leaf = slash ? slash + 1 : name;
	pthread_mutex_lock(&folders->lock);
	err = get_locked(folders, name, slash ? (size_t)(slash - name) : 0, folder);
	pthread_mutex_unlock(&folders->lock);
	return err;
}

void mover_folder_made(struct folders *folders, const char *name, const struct folder *parent, const char *leaf,
		       uint64_t maker)
{
	int fd = openat(parent->fd, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct folder *folder = fd < 0 ? NULL : folder_of_fd(fd, name, strlen(name)), **slot;

	if (!folder)
		return;
	pthread_mutex_lock(&folders->lock);
	slot = cache_slot(folders, name, strlen(name));
	put_locked(*slot);
	*slot = folder;
	folder->maker = maker;
	folder->looked = folders->look;
	folder->used = ++folders->clock;
	pthread_mutex_unlock(&folders->lock);
}

void mover_folder_put(struct folders *folders, struct folder *folder)
{
	pthread_mutex_lock(&folders->lock);
	put_locked(folder);
	pthread_mutex_unlock(&folders->lock);
}

static void take_place(struct folder **place, struct folder *folder)
{
	if (*place) {
		(*place)->changed = false;
		put_locked(*place);
	}
	*place = folder;
	folder->changed = true;
	folder->users++;
}

/* There is no place left: its file system will be synced as a whole. */
static void change_whole(struct folders *folders, struct folder *folder)
{
	struct folder **of_root = NULL;

	if (folder->dev == folders->root->dev) {
		folders->many_changed = true;
		return;
	}
	for (int i = 0; i < FOLDER_CHANGED; i++) {
		struct folder **place = &folders->changed[i];

		if ((*place)->dev == folder->dev) {
			(*place)->whole = true;
			return;
		}
		if ((*place)->dev == folders->root->dev)
			of_root = place;
	}
	/* Without a place of the root's there are as many other file systems as places: very rare, so it may wait here.
	 */
	if (of_root) {
		folders->many_changed = true;
		take_place(of_root, folder);
	} else if (fsync(folder->fd) && errno != EBADF && errno != EINVAL) {
		folders->sync_error = -errno;
		folders->sync_failures++;
	}
}

void mover_folder_changed(struct folders *folders, struct folder *folder)
{
	pthread_mutex_lock(&folders->lock);
	for (int i = 0; i < FOLDER_CHANGED && !folder->changed; i++)
		if (!folders->changed[i])
			take_place(&folders->changed[i], folder);
	if (!folder->changed)
		change_whole(folders, folder);
	pthread_mutex_unlock(&folders->lock);
}

static int sync_changed(struct folders *folders)
{
	bool whole[FOLDER_CHANGED] = {false};
	struct folder *changed[FOLDER_CHANGED];
	int err = 0;
	bool many;

	pthread_mutex_lock(&folders->lock);
	memcpy(changed, folders->changed, sizeof(changed));
	memset(folders->changed, 0, sizeof(folders->changed));
	for (int i = 0; i < FOLDER_CHANGED; i++)
		if (changed[i]) {
			whole[i] = changed[i]->whole;
			changed[i]->changed = changed[i]->whole = false;
		}
	many = folders->many_changed;
	folders->many_changed = false;
	pthread_mutex_unlock(&folders->lock);

	if (many && syncfs(folders->root->fd))
		err = -errno;
	for (int i = 0; i < FOLDER_CHANGED && changed[i]; i++) {
		/* EBADF: it could not be opened for reading; EINVAL: this file system cannot sync folders */
		if ((!many || changed[i]->dev != folders->root->dev) && (whole[i] ? syncfs : fsync)(changed[i]->fd) &&
		    !err && errno != EBADF && errno != EINVAL)
			err = -errno;
		mover_folder_put(folders, changed[i]);
	}
	return err;
}

unsigned mover_folders_sync_failures(struct folders *folders)
{
	unsigned failures;

	pthread_mutex_lock(&folders->lock);
	failures = folders->sync_failures;
	pthread_mutex_unlock(&folders->lock);
	return failures;
}

int mover_folders_sync(struct folders *folders, unsigned failures_before)
{
	int err;

	pthread_mutex_lock(&folders->sync_lock);
	err = sync_changed(folders);
	pthread_mutex_lock(&folders->lock);
	if (err) {
		folders->sync_error = err;
		folders->sync_failures++;
	} else if (folders->sync_failures != failures_before) {
		err = folders->sync_error;
	}
	pthread_mutex_unlock(&folders->lock);
	pthread_mutex_unlock(&folders->sync_lock);
	return err;
}
