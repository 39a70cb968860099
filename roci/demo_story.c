/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo_pair.h"
#include "demo_story.h"
#include "text.h"

#define INDENT "              "
#define WIDTH  92 /* columns of the explanations, indented */

/* In the order in which they are told of. */
static const struct lesson {
	const char *step, *meaning;
} lessons[] = {
	{"LISTEN",
	 "rdma_bind_addr() and rdma_listen(), as with TCP sockets. The receiver also writes a ticket into a file "
	 "that only its owner can read: address, port, and a secret that is good for one transfer."},
	{"CONNECT",
	 "rdma_connect() and rdma_accept(): three messages (ConnectRequest, ConnectReply, ReadyToUse) join a "
	 "queue pair (QP) of the sender to one of the receiver. Whatever follows passes between such pairs."},
	{"HELLO",
	 "A TLS 1.3 handshake in SEND messages: both sides prove that they know the ticket's secret, before any "
	 "name or size is looked at. All messages after it are encrypted."},
	{"TERMS", "What the sender would like (how data moves, over how many QPs, in how large chunks), and what the "
		  "receiver grants of it."},
	{"OFFER", "The sender says what it has: name, size, mode and time of the file."},
	{"VERDICT", "The receiver says what it wants of that; a file that is there already need not come again."},
	{"GRANT",
	 "A window: a buffer that ibv_reg_mr() has registered. Its owner tells the other side its address and its "
	 "rkey, the key that opens this buffer, for this one use, and nothing else."},
	{"WRITE",
	 "RDMA WRITE: the sender's adapter puts a chunk straight into the granted window. The receiver's program "
	 "takes no part in it, and learns of it by a short message behind it."},
	{"READ",
	 "RDMA READ: the receiver's adapter takes a chunk straight out of the granted window. The sender's program "
	 "takes no part in it."},
	{"SEND", "SEND: a chunk goes into whichever buffer the other side has posted with ibv_post_recv(). It takes no "
		 "rkey."},
	{"FIN",
	 "One is done with this window, and its rkey is revoked. The digest (XXH3-128) of what is in it comes along "
	 "with the FIN of a sender."},
	{"ACK",
	 "The receiver has checked the digests of these windows and written them to the file. An entry is stored when "
	 "all of it is there, synced to the disk, and has its name."},
	{"END", "Both agree that it is over, and on the totals. Then the QPs are disconnected."},
};
#define LESSON_COUNT (sizeof(lessons) / sizeof(lessons[0]))

struct telling {
	bool explained[LESSON_COUNT];
	bool told[DEMO_SIDES][LESSON_COUNT];
	bool repeated, closing; /* something was left out; the end has begun */
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

static double since_start_ms(const struct telling *t, const char *time)
{
	const int64_t day = 86400000000;
	return (double)((clock_us(time) - t->start_us + day) % day) / 1000;
}

static size_t find_lesson(const char *step, size_t len)
{
	size_t i = 0;
	while (i < LESSON_COUNT && (strlen(lessons[i].step) != len || memcmp(lessons[i].step, step, len)))
		i++;
	return i;
}

/* In lines of WIDTH columns, broken at spaces. */
static void explain(const char *meaning)
{
	size_t room = WIDTH - strlen(INDENT);
	while (*meaning) {
		size_t len = strlen(meaning);
		if (len > room) {
			len = room;
			while (len > 1 && meaning[len] != ' ')
				len--;
		}
		printf(INDENT "%.*s\n", (int)len, meaning);
		meaning += len + strspn(meaning + len, " ");
	}
}

/* One line for the first time that a side does this, with an explanation for the first time that either does. */
static void tell_step(struct telling *t, const struct demo_event *event, const char *step, const char *rest)
{
	static const char *const sides[] = {"receiver", "sender"};
	size_t len = strcspn(step, " "), lesson = find_lesson(step, len);

	if (lesson == LESSON_COUNT)
		return;
	if (t->told[event->side][lesson]) {
		t->repeated |= !t->closing;
		return;
	}
	if (!strcmp(lessons[lesson].step, "END") && !t->closing) {
		t->closing = true;
		if (t->repeated)
			puts(INDENT "... and so on with the other windows, several of them at a time, until all is "
				    "there ...\n");
	}
	t->told[event->side][lesson] = true;
	printf("%9.2f ms  %-8s  %s%-8.*s%s", since_start_ms(t, event->time), sides[event->side],
	       t->bold ? "\033[1m" : "", (int)len, step, t->bold ? "\033[0m" : "");
	text_print(stdout, rest, strlen(rest));
	putchar('\n');
	if (!t->explained[lesson]) {
		explain(lessons[lesson].meaning);
		putchar('\n');
	}
	t->explained[lesson] = true;
}

void demo_story_print(const struct demo_pair *pair)
{
	const char *no_color = getenv("NO_COLOR");
	size_t count;
	const struct demo_event *events = demo_pair_events(pair, &count);
	struct telling t = {
		.bold = isatty(STDOUT_FILENO) && (!no_color || !*no_color),
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
			tell_step(&t, &events[i], "LISTEN", listening);
		} else if (!strcmp(event, "step") && text) {
			const char *rest = text + strcspn(text, " ");
			tell_step(&t, &events[i], text, *rest ? rest + 1 : rest);
		}
	}
	putchar('\n');
}
