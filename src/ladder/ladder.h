/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ladder: the ends of a capture as life lines, and between them packets, posts and completions in the order of time.
 *
 *     struct ladder *l = ladder_create(&options);
 *     ladder_take_packet(l, &event)    for each packet that the tracker has taken
 *     ladder_take_record(l, &record)   for each record of the embedded device
 *     ladder_finish(l, tracker)        finds out who is who, and what belongs together
 *     ladder_write_page(l, file)       or ladder_write_svg(), ladder_write_text()
 *
 * Everything is kept in memory: some 300 bytes a packet. What comes from the capture is text to print, never markup.
 */
#ifndef LADDER_LADDER_H
#define LADDER_LADDER_H

#include <stdio.h>

#include "capture/tracker.h"
#include "wire/record.h"

/* What is to be seen of a packet. page/data.js has the same bits. */
enum ladder_flag {
	LADDER_AGAIN = 1 << 0,
	LADDER_DUPLICATE = 1 << 1,
	LADDER_OUT_OF_ORDER = 1 << 2,
	LADDER_LATE = 1 << 3,
	LADDER_NAK = 1 << 4,
	LADDER_RNR = 1 << 5,
	LADDER_BAD_ICRC = 1 << 6,
	LADDER_REJECT = 1 << 7,
	LADDER_CONGESTED = 1 << 8,
	LADDER_MALFORMED = 1 << 9,
	LADDER_LOST_BEFORE = 1 << 10,  /* on purpose, before it was sent: no packet of the capture */
	LADDER_LOST_AFTER = 1 << 11,   /* on purpose, as it arrived */
	LADDER_LOST_BETWEEN = 1 << 12, /* it left and did not arrive, and was sent again */
	LADDER_ACK = 1 << 13,
	LADDER_CM = 1 << 14,
};
#define LADDER_LOST (LADDER_LOST_BEFORE | LADDER_LOST_AFTER | LADDER_LOST_BETWEEN)
#define LADDER_BAD  (LADDER_NAK | LADDER_BAD_ICRC | LADDER_REJECT | LADDER_MALFORMED)

#define LADDER_PAIRS_MAX     4096       /* pairs of QPs; packets of later ones are counted and left out */
#define LADDER_NEVER         UINT64_MAX /* of a time */
#define LADDER_PAYLOAD_BYTES 16

/* Texts are offsets into one buffer, so that it may grow: ladder_text(). 0 is the empty text. */
typedef size_t ladder_text_t;

struct ladder_packet {
	uint64_t sent_ns, arrived_ns;    /* LADDER_NEVER: not seen there */
	uint64_t number, arrived_number; /* frames of the capture; 0: none */
	uint64_t order;                  /* among packets of one time */
	ladder_text_t meaning, fields;   /* fields: "name=value;name=value" */
	int message;                     /* index; -1: none */
	int conversation, end;           /* its sender */
	int from, to;                    /* life lines */
	int flow;
	int explanation;                  /* index; 0: none */
	unsigned flags;                   /* enum ladder_flag */
	uint32_t psn, qpn, bytes, length; /* payload; UDP payload */
	uint32_t from_pid, to_pid;        /* processes that captured it as it left, as it arrived; 0: not known */
	uint32_t cm_id;                   /* the sender's communication ID; 0: none */
	uint16_t pkey;
	uint8_t opcode, bits; /* AckReq 1, solicited 2, MigReq 4, FECN 8, BECN 16 */
	uint8_t icrc;         /* enum capture_icrc */
	uint8_t payload_len, payload[LADDER_PAYLOAD_BYTES];
};

/* page/data.js has the same numbers. */
enum ladder_event_kind {
	LADDER_POST_SEND = 1,
	LADDER_POST_RECV,
	LADDER_COMPLETION,
	LADDER_STATE,
	LADDER_CONNECTION,
	LADDER_FAULT,
};

enum ladder_severity { LADDER_GOOD, LADDER_NOTE, LADDER_ERROR };

struct ladder_event {
	struct roci_record record;
	enum ladder_event_kind kind;
	enum ladder_severity severity;
	int end;             /* life line */
	int conversation;    /* -1: none */
	int explanation;     /* index; 0: none */
	size_t order;        /* in the capture */
	unsigned count;      /* so many in a row, of which this is the first */
	uint64_t last_wr_id; /* of the last of them */
	ladder_text_t text, id, fields;
};

struct ladder_message {
	uint64_t id; /* the tracker's */
	uint64_t bytes;
	enum roci_kind kind;
	int conversation, end;         /* the requester */
	int post, completion, receive; /* events; -1: not known */
};

/* Addresses and ports of packets in one direction. */
struct ladder_flow {
	int conversation, end;
	struct roci_flow addresses;
};

struct ladder_conversation {
	struct capture_conversation about; /* its percentiles are not filled */
	bool cm;                           /* between QPs 1 */
	int lines[2];                      /* life lines of its ends */
	uint32_t pids[2];                  /* 0: not known */
	uint32_t merged;                   /* tracker's number of the one it turned out to be; 0: none */
};

/* A life line. */
struct ladder_line {
	uint32_t pid;    /* 0: not known */
	uint8_t gid[16]; /* zero: not known */
	unsigned side;   /* 1, 2: both ends of a conversation are in one process; 0: otherwise */
	ladder_text_t name, about;
};

struct ladder_options {
	const char *title;
	uint64_t max_packets; /* later ones are counted and left out */
};

struct ladder {
	struct ladder_options options;
	struct ladder_packet *packets;
	struct ladder_event *events;
	struct ladder_message *messages;
	struct ladder_flow *flows;
	struct ladder_conversation *conversations; /* the tracker's number - 1 */
	struct ladder_line *lines;
	struct roci_record *processes; /* ROCI_RECORD_PROCESS */
	ladder_text_t *explanations;   /* [0]: none */
	struct roci_record *lost;      /* ROCI_RECORD_FAULT, until the end */
	size_t packet_count, event_count, message_count, flow_count, conversation_count, line_count, process_count,
		explanation_count, lost_count;
	size_t packet_room, event_room, message_room, flow_room, conversation_room, line_room, process_room,
		explanation_room, lost_room;
	char *texts;
	size_t text_len, text_room;
	uint64_t start_ns;     /* the first time of all */
	uint64_t left_out;     /* packets above max_packets */
	uint64_t crowd;        /* packets of pairs of QPs above LADDER_PAIRS_MAX */
	uint64_t no_rdma;      /* packets that are no RDMA or not understood */
	bool out_of_memory;    /* then nothing is added any more, and ladder_finish() fails */
	int *packet_of_number; /* frame number -> its first packet, -1: none */
	size_t numbers, number_room;
};

/* NULL: no memory. */
struct ladder *ladder_create(const struct ladder_options *options);
void ladder_destroy(struct ladder *l);

void ladder_take_packet(struct ladder *l, const struct capture_event *event);
void ladder_take_record(struct ladder *l, const struct roci_record *record);
/* 0 or -ENOMEM. */
int ladder_finish(struct ladder *l, const struct capture_tracker *tracker);

static inline const char *ladder_text(const struct ladder *l, ladder_text_t text)
{
	return l->texts + text;
}

/* What is left out of the picture, in a sentence: `which` counts from 0. False: there is no more to say. */
#define LADDER_NOTE_CHARS 200
bool ladder_note(const struct ladder *l, unsigned which, char text[LADDER_NOTE_CHARS]);

/* Life lines that ladder_write_text() has room for; of more it returns -E2BIG, before it writes. */
#define LADDER_TEXT_LINES 64

/* All write the whole picture, and return 0 or a negative errno. */
int ladder_write_page(const struct ladder *l, FILE *out);
int ladder_write_svg(const struct ladder *l, FILE *out);
struct ladder_text_options {
	unsigned columns;
	bool color;
	bool ascii; /* the locale has no UTF-8 */
};
int ladder_write_text(const struct ladder *l, const struct ladder_text_options *options, FILE *out);

#endif
