/* SPDX-License-Identifier: BSD-2-Clause */
/* The open folders of a tree. The last few stay open, because most files are in the same folder as the one before. A
 * folder is counted by its users, and outlives the cache. All calls lock the mutex. */
#ifndef ROCI_MOVER_FOLDER_H
#define ROCI_MOVER_FOLDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FOLDER_CACHE   16
#define FOLDER_CHANGED 8 /* folders to sync one by one; with more, sync the file systems */

struct folder {
	int fd;
	bool is_root;
	bool changed; /* is in folders->changed */
	bool whole;   /* ... and stands for all of its file system that have changed */
	dev_t dev;
	ino_t ino;
	unsigned users;
	uint64_t maker;  /* the session that made it, since it is in the cache; 0: it existed, or that is not known */
	uint64_t used;   /* the cache's clock at the last use */
	uint64_t looked; /* folders->look when it was last found in its place */
	char path[];     /* below the root, terminated; empty for the root */
};

struct folders {
	pthread_mutex_t lock;
	struct folder *root;
	struct folder *cache[FOLDER_CACHE];
	uint64_t clock;
	uint64_t look;                          /* counts mover_folders_look_again(); 0: every use looks */
	struct folder *changed[FOLDER_CHANGED]; /* since the last sync; each counts as a user */
	bool many_changed;                      /* the root's file system is to be synced as a whole */
	pthread_mutex_t sync_lock;              /* during a sync; taken before `lock` */
	unsigned sync_failures;                 /* so far */
	int sync_error;                         /* of the last of them */
};

/* Takes ownership of `root_fd`, even if it fails. 0 or -errno. */
int mover_folders_create(struct folders *folders, int root_fd);
void mover_folders_destroy(struct folders *folders);

/* From now on a folder that is in the cache is looked up once, and then believed to be in its place until the next
 * call: most files of a batch are in one folder. mover_folder_in_place() asks again before a file gets its name. */
void mover_folders_look_again(struct folders *folders);

/* Opens the folder in which `name` is; *leaf is the last component of `name`. A folder that was found to have
 * moved is opened anew. Give it back by mover_folder_put(). 0, -ENOENT, -ENOTDIR, -ELOOP, or another -errno. */
int mover_folder_get(struct folders *folders, const char *name, struct folder **folder, const char **leaf);
void mover_folder_put(struct folders *folders, struct folder *folder);

/* The session `maker` has made a folder, `name`, whose last component `leaf` is in `parent`: opens it, and remembers
 * who made it as long as it is in the cache. */
void mover_folder_made(struct folders *folders, const char *name, const struct folder *parent, const char *leaf,
		       uint64_t maker);

/* Whether the folder is still at its path, not moved and not replaced by a link. One system call. */
bool mover_folder_in_place(struct folders *folders, const struct folder *folder);

/* Names in the folder have changed: the next sync includes it. */
void mover_folder_changed(struct folders *folders, struct folder *folder);

/* How many syncs have failed so far. */
unsigned mover_folders_sync_failures(struct folders *folders);

/* Syncs the folders that changed since the last sync. Waits first for a sync that another thread is doing: it may
 * include the caller's changes. The kernel reports a failure only once, so the result is 0, or the -errno of the last
 * sync of any thread that has failed since there were `failures_before`. */
int mover_folders_sync(struct folders *folders, unsigned failures_before);

#endif
