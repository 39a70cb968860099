/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder of a fuzz target's own, in memory where the system has such a place. */
#ifndef ROCI_TESTS_ROOM_H
#define ROCI_TESTS_ROOM_H

/* It goes when the process ends. */
const char *room_path(void);
/* Removes what is in a folder. */
void room_empty(const char *dir);

#endif
