/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo_pair.h"
#include "demo_story.h"
#include "text.h"

#define INDENT "              "
#define WIDTH  100 /* columns of the explanations, with their indent */

/* What a step of the protocol means. `call` and `wire` are NULL where a step only sends one more message. */
static const struct lesson {
	const char *step;
	const char *mode; /* NULL: the same in every mode */
	const char *meaning;
	const char *call; /* the functions that do it */
	const char *wire; /* the packets that cross the network */
} lessons[] = {
	{"LISTEN", NULL,
	 "The receiver waits for a sender. It writes a ticket to a file: its address, its port and a one-time secret.",
	 "rdma_bind_addr(), rdma_listen()", "nothing yet"},
	{"CONNECT", NULL,
	 "The sender connects, much as with TCP. Each side has a queue pair (QP); from now on the two QPs exchange "
	 "messages.",
	 "rdma_connect(), rdma_accept()", "ConnectRequest, ConnectReply, ReadyToUse"},
	{"HELLO", NULL,
	 "In a TLS 1.3 handshake, both sides prove that they know the secret. All later messages are encrypted. (The "
	 "content of the file is not, because of --no-encrypt: so you find it in the capture. Nobody can change it.)",
	 "ibv_post_recv(), ibv_post_send()", "SEND; an ACK comes back"},
	{"TERMS", NULL, "Both sides agree how to move the file. Then the sender connects more QPs for the data.", NULL,
	 NULL},
	{"OFFER", NULL, "The sender describes the file: name, size, mode and time.", NULL, NULL},
	{"VERDICT", NULL, "The receiver wants the file. It would skip a file that it already has.", NULL, NULL},
	{"GRANT", "write",
	 "The receiver registers a buffer, here called a window. It sends the sender the address of the window and "
	 "its rkey: a key to this window only, for one use.",
	 "ibv_reg_mr()", "SEND, with address and rkey"},
	{"GRANT", "read",
	 "The sender registers a buffer with a piece of the file, here called a window. It sends the receiver the "
	 "address of the window and its rkey: a key to this window only, for one use.",
	 "ibv_reg_mr()", "SEND, with address and rkey"},
	{"GRANT", "send",
	 "The receiver posts a buffer, here called a window, and tells the sender that it is free. The sender needs "
	 "no address and no rkey.",
	 "ibv_post_recv()", "SEND"},
	{"WRITE", NULL,
	 "The sender's adapter writes a piece of the file straight into the window. The receiver's program does "
	 "nothing for it; a short SEND behind the data announces the piece. When the ACKs are back, the WRITE is "
	 "complete, and ibv_poll_cq() tells the sender so.",
	 "ibv_post_send() with IBV_WR_RDMA_WRITE, ibv_poll_cq()", "RDMA WRITE First, Middle ... Last; ACKs come back"},
	{"READ", NULL,
	 "The receiver's adapter reads a piece of the file straight out of the window. The sender's program does "
	 "nothing for it. When the last response is there, the READ is complete, and ibv_poll_cq() tells the receiver "
	 "so.",
	 "ibv_post_send() with IBV_WR_RDMA_READ, ibv_poll_cq()", "READ Requests; READ Responses come back"},
	{"SEND", NULL,
	 "The sender sends a piece of the file. The receiver's adapter puts it into the buffer that was posted for it.",
	 "ibv_post_send() with IBV_WR_SEND", "SEND First, Middle ... Last; ACKs come back"},
	{"FIN", "write",
	 "The sender sends a digest of what it wrote. The receiver closes the window: its rkey is no longer valid.",
	 "ibv_dereg_mr()", "SEND"},
	{"FIN", "read", "The receiver has read the window. The sender closes it: its rkey is no longer valid.",
	 "ibv_dereg_mr()", "SEND"},
	{"FIN", "send", "The sender sends a digest of what it sent.", NULL, NULL},
	{"ACK", NULL, "The receiver has compared the digest, and has written the piece to its file.", NULL, NULL},
	{"END", NULL,
	 "The receiver says that the whole file is on its disk. The sender says that it has heard it; then both "
	 "disconnect.",
	 "rdma_disconnect()", "SEND; DisconnectRequest, DisconnectReply"},
};
#define LESSON_COUNT (sizeof(lessons) / sizeof(lessons[0]))

struct story {
	const char *mode; /* "write", "read" or "send" */
	bool explained[LESSON_COUNT];
	unsigned pieces; /* how often a side began to move data */
	int64_t start_us;
	bool bold;
};

/* Microseconds of the day. "2026-11-21T15:51:53.093985Z" */
static int64_t clock_us(const char *time)
{
	unsigned h = 0, m = 0, s = 0, us = 0;
	const char *at = strchr(time, 'T');
	if (!at || sscanf(at, "T%2u:%2u:%2u.%6uZ", &h, &m, &s, &us) != 4)
		return 0;
	return ((int64_t)h * 3600 + m * 60 + s) * 1000000 + us;
}

static double since_start_ms(const struct story *story, const char *time)
{
	const int64_t day = 86400000000;
	return (double)((clock_us(time) - story->start_us + day) % day) / 1000;
}

static size_t find_lesson(const struct story *story, const char *step, size_t len)
{
	for (size_t i = 0; i < LESSON_COUNT; i++) {
		const struct lesson *lesson = &lessons[i];
		if (strlen(lesson->step) == len && !memcmp(lesson->step, step, len) &&
		    (!lesson->mode || !strcmp(lesson->mode, story->mode)))
			return i;
	}
	return LESSON_COUNT;
}

/* Prints a text in lines of WIDTH columns, broken at spaces. */
static void print_wrapped(const char *text)
{
	size_t room = WIDTH - strlen(INDENT);
	while (*text) {
		size_t len = strlen(text);
		if (len > room) {
			len = room;
			while (len > 1 && text[len] != ' ')
				len--;
		}
		printf(INDENT "%.*s\n", (int)len, text);
		text += len + strspn(text + len, " ");
	}
}

static void explain(const struct lesson *lesson)
{
	print_wrapped(lesson->meaning);
	if (lesson->call)
		printf(INDENT "call: %s\n" INDENT "wire: %s\n", lesson->call, lesson->wire);
	putchar('\n');
}

/* Whether a side begins to move a piece of the file. (The receiver's WRITE and SEND report what has arrived.) */
static bool moves_data(enum demo_side side, const char *step)
{
	if (side == DEMO_RECEIVER)
		return !strcmp(step, "READ");
	return !strcmp(step, "WRITE") || !strcmp(step, "SEND");
}

/* Prints and explains a step the first time that one of the sides takes it. */
static void print_step(struct story *story, const struct demo_event *event, const char *step, const char *rest)
{
	static const char *const sides[] = {"receiver", "sender"};
	size_t len = strcspn(step, " "), lesson = find_lesson(story, step, len);

	if (lesson == LESSON_COUNT)
		return;
	story->pieces += moves_data(event->side, lessons[lesson].step);
	if (story->explained[lesson])
		return;
	story->explained[lesson] = true;
	if (!strcmp(lessons[lesson].step, "END") && story->pieces > 1)
		puts(INDENT "... the same for the other pieces of the file, several at a time ...\n");
	printf("%9.2f ms  %-8s  %s%-8.*s%s", since_start_ms(story, event->time), sides[event->side],
	       story->bold ? "\033[1m" : "", (int)len, step, story->bold ? "\033[0m" : "");
	text_print(stdout, rest, strlen(rest));
	putchar('\n');
	explain(&lessons[lesson]);
}

void demo_story_print(const struct demo_pair *pair, const char *mode)
{
	size_t count;
	const struct demo_event *events = demo_pair_events(pair, &count);
	struct story story = {
		.mode = mode,
		.bold = text_has_colors(stdout),
		.start_us = count ? clock_us(events[0].time) : 0,
	};

	for (size_t i = 0; i < count; i++) {
		const char *event = json_string_value(json_object_get(events[i].object, "event"));
		const char *text = json_string_value(json_object_get(events[i].object, "text"));
		char listening[64];

		if (!strcmp(event, "listening")) {
			snprintf(listening, sizeof(listening), "port %lld, device %.20s",
				 (long long)json_integer_value(json_object_get(events[i].object, "port")),
				 demo_pair_string(pair, DEMO_RECEIVER, "listening", "device"));
			print_step(&story, &events[i], "LISTEN", listening);
		} else if (!strcmp(event, "step") && text) {
			const char *rest = text + strcspn(text, " ");
			print_step(&story, &events[i], text, *rest ? rest + 1 : rest);
		}
	}
}
