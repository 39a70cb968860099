/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile sender: connects to a `roci recv --open`, sends one wrong thing, and checks the reaction. Exit status 0:
 * the receiver reacted as it should; 1: it did not; 2: the test itself failed.
 *
 *     hostile_sender HOST PORT CASE OUTSIDE       OUTSIDE: a folder that nothing may be written to
 *     hostile_sender --list
 */
#include <stdio.h>
#include <stdlib.h>

#include "hostile_sender.h"
#include "honest_sender.h"

unsigned hostile_variant;
const char *hostile_outside;

static struct hostile *const h = &hostile;

static bool reacted(enum reaction reaction)
{
	switch (reaction) {
	case CHECKED: return !h->error;
	case REJECTED: return h->refused && h->reject == PROTO_REJECT_UNKNOWN;
	case ACCESS_ERROR: return hostile_wait_closed(h) && h->failed == IBV_WC_REM_ACCESS_ERR;
	case CLOSED: return hostile_wait_closed(h) && !h->error;
	default: return hostile_wait_closed(h) && h->error && h->end.status == (enum mover_status)reaction;
	}
}

static _Noreturn void run(const struct scenario *s)
{
	bool ok;

	if (hostile_variant >= s->variants)
		hostile_fail("no such hostile_variant");
	s->run();
	ok = reacted(s->reaction);
	printf("%s: %s%s%s%s; our work: %s\n", ok ? "as it should" : "WRONG", h->closed ? "closed" : "open",
	       h->refused ? ", rejected" : "", h->error ? ", ERROR " : "",
	       h->error ? mover_status_name(h->end.status) : "", ibv_wc_status_str(h->failed));
	if (*h->text)
		printf("%s\n", h->text);
	fflush(stdout);
	_Exit(ok ? 0 : 1); /* without an orderly disconnect */
}

int main(int argc, char **argv)
{
	static const struct scenario *const tables[] = {hostile_messages, hostile_offers, hostile_content};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (const struct scenario *s = tables[i]; s->name; s++) {
			size_t len = strlen(s->name);

			if (argc == 2 && strcmp(argv[1], "--list") == 0)
				printf("%s %u\n", s->name, s->variants);
			if (argc != 5 || strncmp(argv[3], s->name, len) || argv[3][len] != ':')
				continue;
			honest_host = argv[1];
			honest_port = (unsigned)atoi(argv[2]);
			hostile_variant = (unsigned)atoi(argv[3] + len + 1);
			hostile_outside = argv[4];
			run(s);
		}
	return argc == 2 ? 0 : 2;
}
