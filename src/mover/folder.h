/* SPDX-License-Identifier: BSD-2-Clause */
/* The folders of a tree that are open at the moment: the last few stay so, for most files lie where the one before did.
 * A folder that is held by its users goes on existing though it left the cache. Locked by its own mutex. */
#ifndef ROCI_MOVER_FOLDER_H
#define ROCI_MOVER_FOLDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FOLDER_CACHE   16
#define FOLDER_CHANGED 8 /* folders that are synced one by one; of more, their file system is */

struct folder {
	int fd;
	bool is_root;
	bool changed; /* is in folders->changed */
	dev_t dev;
	ino_t ino;
	unsigned users;
	uint64_t used; /* the cache's clock when it was last asked for */
	char path[];   /* below the root, terminated; empty for the root */
};

struct folders {
	pthread_mutex_t lock;
	struct folder *root;
	struct folder *cache[FOLDER_CACHE];
	uint64_t clock;
	struct folder *changed[FOLDER_CHANGED]; /* since the last sync; held */
	bool many_changed;
	pthread_mutex_t sync_lock; /* held while one syncs; taken before `lock` */
	unsigned sync_failures;    /* so far */
	int sync_error;            /* of the last of them */
};

/* Takes `root_fd` over, also when it fails. 0 or -errno. */
int mover_folders_create(struct folders *folders, int root_fd);
void mover_folders_destroy(struct folders *folders);

/* The folder in which `name` (checked, terminated) lies; *leaf is its last component. A folder that is not where it was
 * any more is opened anew. To be given back. 0, -ENOENT, -ENOTDIR, -ELOOP, or another -errno. */
int mover_folder_get(struct folders *folders, const char *name, struct folder **folder, const char **leaf);
void mover_folder_put(struct folders *folders, struct folder *folder);

/* Whether the folder still is where its path says: nobody has moved it, or put a link in its place. One system call. */
bool mover_folder_in_place(struct folders *folders, const struct folder *folder);

/* Says that names in it have changed. */
void mover_folder_changed(struct folders *folders, struct folder *folder);

/* Syncs that have failed so far. */
unsigned mover_folders_sync_failures(struct folders *folders);

/* Syncs the folders that changed since the last time, after whoever is syncing now: what the caller has changed may be
 * with him. 0, or the -errno of the last sync, whosever, that has failed since there were `failures_before`: the disk
 * tells of a failure only once. */
int mover_folders_sync(struct folders *folders, unsigned failures_before);

#endif
