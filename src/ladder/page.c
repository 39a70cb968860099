/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page: one HTML file. Its script reads the data from a script element of type application/json, so nothing of the
 * capture is ever markup or code: json_text() writes no '<', '>' or '&', and no byte that is not UTF-8.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "ladder/store.h"
#include "ladder/template.h"

static void json_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		unsigned len = ladder_utf8_len(c);

		if (len == 0)
			fputs("\\ufffd", out);
		else if (len > 1)
			fwrite(c, 1, len, out);
		else if (*c < 0x20 || *c == 0x7f || strchr("\"\\<>&'", *c))
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
		c += len ? len : 1;
	}
	fputc('"', out);
}

static void member_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, "\"%s\":", name);
	json_text(out, text);
}

/* ---- what packets belong to ---- */

static void write_ends(const struct ladder *l, FILE *out)
{
	fputs("\"ends\":[", out);
	for (size_t i = 0; i < l->line_count; i++) {
		fputs(i ? ",{" : "{", out);
		member_text(out, "name", ladder_text(l, l->lines[i].name));
		fputc(',', out);
		member_text(out, "about", ladder_text(l, l->lines[i].about));
		fputc('}', out);
	}
	fputs("],\n", out);
}

#define QPN_CHARS 12

static const char *qpn_text(char text[QPN_CHARS], const struct capture_end *end)
{
	snprintf(text, QPN_CHARS, end->qpn_known ? "0x%06x" : "?", end->qpn);
	return text;
}

static void write_conversations(const struct ladder *l, FILE *out)
{
	unsigned color = 0;

	fputs("\"conversations\":[", out);
	for (size_t i = 0; i < l->conversation_count; i++) {
		const struct ladder_conversation *c = &l->conversations[i];
		char name[64] = "connection management", one[QPN_CHARS], other[QPN_CHARS];

		if (!c->cm)
			snprintf(name, sizeof(name), "QP %s ↔ %s", qpn_text(one, &c->about.ends[0]),
				 qpn_text(other, &c->about.ends[1]));
		fputs(i ? ",{" : "{", out);
		member_text(out, "name", name);
		fprintf(out, ",\"ends\":[%d,%d],\"qpns\":[%u,%u],\"color\":%d,\"used\":%s}",
			c->lines[0] < 0 ? 0 : c->lines[0], c->lines[1] < 0 ? 0 : c->lines[1], c->about.ends[0].qpn,
			c->about.ends[1].qpn, c->cm ? -1 : (int)(c->about.number ? color++ : 0),
			c->about.number ? "true" : "false");
	}
	fputs("],\n", out);
}

static void write_flows(const struct ladder *l, FILE *out)
{
	char gid[LADDER_GID_CHARS];

	fputs("\"flows\":[", out);
	for (size_t i = 0; i < l->flow_count; i++) {
		const struct ladder_flow *f = &l->flows[i];

		fprintf(out, "%s{\"conversation\":%d,\"end\":%d,", i ? "," : "", f->conversation, f->end);
		member_text(out, "source", ladder_gid(gid, f->addresses.src));
		fputc(',', out);
		member_text(out, "destination", ladder_gid(gid, f->addresses.dst));
		fprintf(out, ",\"sourcePort\":%u,\"destinationPort\":%u}", f->addresses.src_port,
			f->addresses.dst_port);
	}
	fputs("],\n", out);
}

static void write_messages(const struct ladder *l, FILE *out)
{
	fputs("\"messages\":[", out);
	for (size_t i = 0; i < l->message_count; i++) {
		const struct ladder_message *m = &l->messages[i];

		fprintf(out,
			"%s{\"kind\":\"%s\",\"bytes\":%" PRIu64
			",\"end\":%d,\"post\":%d,\"completion\":%d,\"receive\":%d}",
			i ? "," : "", ladder_kind_name(m->kind), m->bytes, m->end, m->post, m->completion, m->receive);
	}
	fputs("],\n", out);
}

static void write_opcodes(FILE *out)
{
	bool any = false;

	fputs("\"opcodes\":{", out);
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct roci_opcode_info *op = roci_opcode_info((uint8_t)opcode);

		if (!op)
			continue;
		fprintf(out, "%s\"%u\":", any ? "," : "", opcode);
		json_text(out, op->name);
		any = true;
	}
	fputs("},\n", out);
}

static void write_explanations(const struct ladder *l, FILE *out)
{
	fputs("\"explanations\":[", out);
	for (size_t i = 0; i < l->explanation_count; i++) {
		if (i)
			fputc(',', out);
		json_text(out, ladder_text(l, l->explanations[i]));
	}
	fputs("],\n", out);
}

/* ---- columns ---- */

#define COLUMN(out, name, count, format, ...)                                                                          \
	do {                                                                                                           \
		fputs("\"" name "\":[", out);                                                                          \
		for (size_t i = 0; i < (count); i++)                                                                   \
			fprintf(out, "%s" format, i ? "," : "", __VA_ARGS__);                                          \
		fputs("],\n", out);                                                                                    \
	} while (0)
#define TEXT_COLUMN(out, name, count, text)                                                                            \
	do {                                                                                                           \
		fputs("\"" name "\":[", out);                                                                          \
		for (size_t i = 0; i < (count); i++) {                                                                 \
			if (i)                                                                                         \
				fputc(',', out);                                                                       \
			json_text(out, text);                                                                          \
		}                                                                                                      \
		fputs("],\n", out);                                                                                    \
	} while (0)

static const char *payload_hex(char text[2 * LADDER_PAYLOAD_BYTES + 1], const struct ladder_packet *p)
{
	text[0] = 0;
	for (unsigned i = 0; i < p->payload_len; i++)
		snprintf(text + (size_t)2 * i, 3, "%02x", p->payload[i]);
	return text;
}

static void write_packets(const struct ladder *l, FILE *out)
{
	const struct ladder_packet *p = l->packets;
	char hex[2 * LADDER_PAYLOAD_BYTES + 1];

	fputs("\"packets\":{", out);
	COLUMN(out, "t", l->packet_count, "%" PRIu64, p[i].sent_ns - l->start_ns);
	COLUMN(out, "arrived", l->packet_count, "%" PRId64,
	       p[i].arrived_ns == LADDER_NEVER ? -1 : (int64_t)(p[i].arrived_ns - l->start_ns));
	COLUMN(out, "number", l->packet_count, "%" PRIu64, p[i].number);
	COLUMN(out, "arrivedNumber", l->packet_count, "%" PRIu64, p[i].arrived_number);
	COLUMN(out, "from", l->packet_count, "%d", p[i].from);
	COLUMN(out, "to", l->packet_count, "%d", p[i].to);
	COLUMN(out, "flow", l->packet_count, "%d", p[i].flow);
	COLUMN(out, "message", l->packet_count, "%d", p[i].message);
	COLUMN(out, "explain", l->packet_count, "%d", p[i].explanation);
	COLUMN(out, "flags", l->packet_count, "%u", p[i].flags);
	COLUMN(out, "opcode", l->packet_count, "%u", p[i].opcode);
	COLUMN(out, "psn", l->packet_count, "%u", p[i].psn);
	COLUMN(out, "qpn", l->packet_count, "%u", p[i].qpn);
	COLUMN(out, "bytes", l->packet_count, "%u", p[i].bytes);
	COLUMN(out, "length", l->packet_count, "%u", p[i].length);
	COLUMN(out, "bits", l->packet_count, "%u", (unsigned)p[i].pkey << 8 | p[i].bits);
	COLUMN(out, "icrc", l->packet_count, "%u", p[i].icrc);
	TEXT_COLUMN(out, "text", l->packet_count, ladder_text(l, p[i].meaning));
	TEXT_COLUMN(out, "fields", l->packet_count, ladder_text(l, p[i].fields));
	TEXT_COLUMN(out, "payload", l->packet_count, payload_hex(hex, &p[i]));
	fputs("\"end\":0},\n", out);
}

static void write_events(const struct ladder *l, FILE *out)
{
	const struct ladder_event *e = l->events;

	fputs("\"events\":{", out);
	COLUMN(out, "t", l->event_count, "%" PRIu64, e[i].record.time_ns - l->start_ns);
	COLUMN(out, "end", l->event_count, "%d", e[i].end);
	COLUMN(out, "conversation", l->event_count, "%d", e[i].conversation);
	COLUMN(out, "kind", l->event_count, "%d", (int)e[i].kind);
	COLUMN(out, "bad", l->event_count, "%d", (int)e[i].severity);
	COLUMN(out, "explain", l->event_count, "%d", e[i].explanation);
	TEXT_COLUMN(out, "text", l->event_count, ladder_text(l, e[i].text));
	TEXT_COLUMN(out, "id", l->event_count, ladder_text(l, e[i].id));
	TEXT_COLUMN(out, "fields", l->event_count, ladder_text(l, e[i].fields));
	fputs("\"last\":0},\n", out);
}

static void write_notes(const struct ladder *l, FILE *out)
{
	char text[LADDER_NOTE_CHARS];

	fputs("\"notes\":[", out);
	for (unsigned i = 0; ladder_note(l, i, text); i++) {
		fputs(i ? "," : "", out);
		json_text(out, text);
	}
	fputs("],\n", out);
}

int ladder_write_page(const struct ladder *l, FILE *out)
{
	time_t seconds = (time_t)(l->start_ns / 1000000000);
	char start[64] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(start, sizeof(start), "%Y-%m-%d %H:%M:%S UTC", &tm);
	fwrite(ladder_page_head, 1, ladder_page_head_len, out);
	fputc('{', out);
	member_text(out, "title", l->options.title);
	fputc(',', out);
	member_text(out, "start", start);
	fputs(",\n", out);
	write_notes(l, out);
	write_ends(l, out);
	write_conversations(l, out);
	write_flows(l, out);
	write_opcodes(out);
	write_explanations(l, out);
	write_messages(l, out);
	write_packets(l, out);
	write_events(l, out);
	fputs("\"version\":1}", out);
	fwrite(ladder_page_tail, 1, ladder_page_tail_len, out);
	return ferror(out) || fflush(out) ? -EIO : 0;
}
