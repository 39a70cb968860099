/* SPDX-License-Identifier: BSD-2-Clause */
/* `roci dump --stats`: a conversation in a few lines. */
#include <inttypes.h>

#include "capture/line.h"
#include "dump.h"
#include "units.h"
#include "wire/plural.h"

static const char *transport_name(enum roci_transport transport)
{
	switch (transport) {
	case ROCI_TRANSPORT_RC: return "RC";
	case ROCI_TRANSPORT_UC: return "UC";
	case ROCI_TRANSPORT_UD: return "UD";
	default: return "?";
	}
}

static void print_end(const struct capture_end *end, const char *after)
{
	char address[48];

	printf("%s", dump_address(end->gid, address));
	if (end->qpn_known)
		printf(" 0x%06" PRIx32 "%s", end->qpn, after);
	else
		printf(" ?%s", after);
}

static void print_state(const char *what, uint64_t count)
{
	if (count)
		printf(", %" PRIu64 " %s", count, what);
}

/* `what`: the singular. */
static void print_count(const char *what, uint64_t count)
{
	if (count)
		printf(", %" PRIu64 " %s%s", count, what, roci_plural(count));
}

static void print_round_trips(const struct capture_percentiles *p)
{
	static const double percents[] = {50, 90, 99};
	char text[128] = "";
	struct capture_line line = {text, sizeof(text), 0};

	if (!p->count)
		return;
	capture_put_time(&line, p->least);
	for (unsigned i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		capture_put(&line, ", %g%% ", percents[i]);
		capture_put_time(&line, capture_percentile(p, percents[i]));
	}
	capture_put(&line, ", most ");
	capture_put_time(&line, p->most);
	printf("      round trips: %" PRIu64 ": least %s\n", p->count, text);
}

static void print_half(const struct capture_conversation *c, unsigned i)
{
	const struct capture_end *end = &c->ends[i];
	char bytes[UNITS_CHARS];

	if (!end->packets)
		return;
	fputs("  ", stdout);
	print_end(end, ":");
	printf(" %" PRIu64 " packet%s, %" PRIu64 " message%s, %s", end->packets, roci_plural(end->packets),
	       end->messages, roci_plural(end->messages), units_bytes(bytes, end->bytes));
	print_count("acknowledgement", end->acks);
	print_state("sent again", end->sent_again);
	print_count("duplicate", end->duplicates);
	print_state("out of order", end->out_of_order);
	print_state("late", end->late);
	print_count("NAK", end->naks);
	print_count("RNR NAK", end->rnrs);
	print_count("CNP", end->cnps);
	print_state("damaged", end->bad_icrcs);
	putchar('\n');
	print_round_trips(&c->round_trips[i]);
}

void dump_conversation(void *context, const struct capture_conversation *c)
{
	char text[64] = "";
	struct capture_line line = {text, sizeof(text), 0};

	capture_put_time(&line, c->last_ns > c->first_ns ? c->last_ns - c->first_ns : 0);
	printf("%s ", transport_name(c->transport));
	print_end(&c->ends[0], " <> ");
	print_end(&c->ends[1], "");
	printf(", %s\n", text);
	print_half(c, 0);
	print_half(c, 1);
}
