/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the ladder share: growing arrays, texts, the words of events. */
#ifndef LADDER_STORE_H
#define LADDER_STORE_H

#include <stdlib.h>

#include "explain/explain.h"
#include "ladder/ladder.h"

/* Makes room for one more item. False: no memory, and the ladder says so from now on. */
bool ladder_grow(struct ladder *l, void *items, size_t count, size_t *room, size_t size);
#define LADDER_GROW(l, items, stem)                                                                                    \
	ladder_grow(l, &(l)->items, (l)->stem##_count, &(l)->stem##_room, sizeof(*(l)->items))

__attribute__((format(printf, 2, 3))) ladder_text_t ladder_print(struct ladder *l, const char *format, ...);

/* The index of an explanation; 0 where there is none. */
int ladder_explain(struct ladder *l, const struct explanation *e);

/* Fills text, id, fields, severity and explanation of an event. */
void ladder_word_event(struct ladder *l, struct ladder_event *e);

/* Finds life lines, and gives each event its own: ends.c. */
void ladder_find_ends(struct ladder *l);
/* Finds which post and completion belong to which message: links.c. */
void ladder_find_links(struct ladder *l);
/* Finds what was lost, and sorts packets by time: lost.c. */
void ladder_find_lost(struct ladder *l);

/* Bytes of the well-formed character (RFC 3629) at `text`, which ends with NUL; 0: it is none, or none for XML. */
unsigned ladder_utf8_len(const unsigned char *text);

/* Writes a number of bytes as people do: "64 B", "1 MiB". */
#define LADDER_SIZE_CHARS 24
const char *ladder_size(char text[LADDER_SIZE_CHARS], uint64_t bytes);
#define LADDER_TIME_CHARS 24
const char *ladder_time(char text[LADDER_TIME_CHARS], uint64_t ns);
#define LADDER_GID_CHARS 48
const char *ladder_gid(char text[LADDER_GID_CHARS], const uint8_t gid[16]);

/* "WRITE", "READ": what a requester asks for. */
const char *ladder_kind_name(enum roci_kind kind);
/* "RC SEND Only"; of packets of connection management what they are. */
const char *ladder_packet_name(const struct ladder *l, const struct ladder_packet *p);

#endif
