/* SPDX-License-Identifier: BSD-2-Clause */
/* The ladder in characters, for a terminal. A line is a packet or an event; a packet stands where it leaves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ladder/rows.h"
#include "ladder/store.h"

#define COLUMNS_MIN  60
#define COLUMNS_MAX  400
#define TIME_COLUMNS 13
#define CELL_BYTES   5 /* a character of UTF-8, and NUL */

#define RED    "\x1b[31m"
#define YELLOW "\x1b[33m"
#define DIM    "\x1b[2m"
#define PLAIN  "\x1b[0m"

struct page {
	const struct ladder *l;
	FILE *out;
	bool color, ascii;
	unsigned columns;
	int rails[LADDER_TEXT_LINES]; /* columns of the life lines */
	unsigned rail_count;
	char cells[COLUMNS_MAX][CELL_BYTES];
};

static void clear(struct page *p)
{
	for (unsigned i = 0; i < p->columns; i++)
		strcpy(p->cells[i], " ");
	for (unsigned i = 0; i < p->rail_count; i++)
		strcpy(p->cells[p->rails[i]], "|");
}

static int length(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* Puts a text at `at`, at most `room` characters: of a longer one the last is an ellipsis, so that no number ends
 * early. What would control a terminal becomes '?'. Returns the characters. */
static int put(struct page *p, int at, int room, const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	int n = 0, whole = length(text);

	for (; *c && n < room; n++) {
		char cell[CELL_BYTES] = "?";
		unsigned len = *c < 0x80                 ? 1
			       : *c >= 0xc2 && *c < 0xe0 ? 2
			       : (*c & 0xf0) == 0xe0     ? 3
			       : *c >= 0xf0 && *c < 0xf5 ? 4
							 : 1;

		for (unsigned i = 1; i < len; i++)
			if ((c[i] & 0xc0) != 0x80)
				len = 1;
		if ((len == 1 && *c >= 0x20 && *c < 0x7f) || (len > 1 && !(c[0] == 0xc2 && c[1] < 0xa0))) {
			memcpy(cell, c, len);
			cell[len] = 0;
		}
		if (n == room - 1 && whole > room)
			strcpy(cell, "…");
		if (at + n >= 0 && at + n < (int)p->columns)
			memcpy(p->cells[at + n], cell, CELL_BYTES);
		c += len;
	}
	return n;
}

/* In ASCII each other character becomes one that is as wide. */
static void print_text(struct page *p, const char *text)
{
	static const char *const known[][2] = {{"→", ">"}, {"…", "."}, {"×", "x"}, {"•", "*"}};

	for (; p->ascii && *text; text++) {
		char plain = (*text & 0x80) ? '?' : *text;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (!strncmp(text, known[i][0], strlen(known[i][0])))
				plain = *known[i][1];
		if ((*text & 0xc0) != 0x80)
			fputc(plain, p->out);
	}
	fputs(text, p->out);
}

static void print_line(struct page *p, const char *color)
{
	int end = (int)p->columns;

	while (end > 0 && !strcmp(p->cells[end - 1], " "))
		end--;
	if (p->color && color)
		fputs(color, p->out);
	for (int i = 0; i < end; i++)
		print_text(p, p->cells[i]);
	if (p->color && color)
		fputs(PLAIN, p->out);
	fputc('\n', p->out);
}

static void put_time(struct page *p, uint64_t ns)
{
	char text[LADDER_TIME_CHARS];

	ladder_time(text, ns - p->l->start_ns);
	put(p, TIME_COLUMNS - 1 - length(text), TIME_COLUMNS, text);
}

static void draw_packet(struct page *p, const struct ladder_packet *k)
{
	int from = p->rails[k->from], to = p->rails[k->to], left = from < to ? from : to, right = from < to ? to : from,
	    room = right - left - 1;
	char label[512], size[LADDER_SIZE_CHARS], remark[LADDER_REMARK_CHARS];
	bool lost = k->flags & LADDER_LOST;
	int len, before = lost ? 4 : 2, behind = lost ? 3 : 1; /* characters of the arrow that stay to be seen */

	clear(p);
	put_time(p, k->sent_ns);
	for (int i = left + 1; i < right; i++)
		put(p, i, 1, k->flags & LADDER_ACK ? "." : "-");
	if (lost)
		put(p,
		    k->flags & LADDER_LOST_AFTER ? (from < to ? right - 2 : left + 2)
						 : (from < to ? left + 3 : right - 3),
		    1, "X");
	if (!lost || k->flags & LADDER_LOST_AFTER)
		put(p, from < to ? right - 1 : left + 1, 1, from < to ? ">" : "<");
	snprintf(label, sizeof(label), " %s%s%s%s%s ", ladder_packet_name(p->l, k),
		 k->bytes && !(k->flags & (LADDER_CM | LADDER_ACK)) ? " " : "",
		 k->bytes && !(k->flags & (LADDER_CM | LADDER_ACK)) ? ladder_size(size, k->bytes) : "",
		 *ladder_remark(k, remark) ? ", " : "", remark);
	len = length(label);
	len = len < room - before - behind ? len : room - before - behind;
	put(p, from < to ? left + 1 + before : right - before - len, len, label);
	print_line(p, k->flags & (LADDER_LOST | LADDER_BAD) ? RED
		      : k->flags & LADDER_AGAIN             ? YELLOW
		      : k->flags & LADDER_ACK               ? DIM
							    : NULL);
}

/* Makes two spaces one. */
static void squeeze(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (text[0] != ' ' || text[1] != ' ')
			*to++ = *text;
	*to = 0;
}

static void draw_event(struct page *p, const struct ladder_event *e)
{
	static const char *const marks[] = {"?", "#", "o", "*", "+", "+", "!"};
	bool left = p->rail_count == 2 && e->end == 0;
	int rail = p->rails[e->end], room = left ? rail - TIME_COLUMNS - 1 : (int)p->columns - rail - 2, len;
	char label[512];

	snprintf(label, sizeof(label), "%s%s%s", ladder_text(p->l, e->text), e->id ? ", " : "",
		 ladder_text(p->l, e->id));
	squeeze(label);
	len = length(label);
	clear(p);
	put_time(p, e->record.time_ns);
	put(p, rail, 1, e->severity == LADDER_ERROR ? "!" : marks[e->kind]);
	if (left)
		put(p, len < room ? rail - 1 - len : TIME_COLUMNS, room, label);
	else
		put(p, rail + 2, room, label);
	print_line(p, e->severity == LADDER_ERROR                                 ? RED
		      : e->severity == LADDER_NOTE || e->kind == LADDER_POST_RECV ? DIM
										  : NULL);
}

/* Where a head begins: in the middle above its life line. Of two, each stays on its side of the page. */
static int head_at(const struct page *p, unsigned rail, int len)
{
	int at = p->rails[rail] - len / 2, middle = (p->rails[0] + p->rails[p->rail_count - 1]) / 2;

	if (p->rail_count != 2)
		return at;
	if (rail)
		return at > middle ? at : middle + 1;
	return at + len < middle ? at : middle - 1 - len;
}

static void draw_heads(struct page *p)
{
	for (unsigned line = 0; line < 2; line++) {
		int after = 0;

		for (unsigned i = 0; i < p->columns; i++)
			strcpy(p->cells[i], " ");
		for (unsigned i = 0; i < p->rail_count; i++) {
			const struct ladder_line *x = &p->l->lines[i];
			const char *text = ladder_text(p->l, line ? x->about : x->name);
			int at = head_at(p, i, length(text));

			at = at < after                            ? after
			     : at + length(text) > (int)p->columns ? (int)p->columns - length(text)
								   : at;
			after = at + put(p, at, (int)p->columns - at, text) + 2;
		}
		print_line(p, NULL);
	}
}

/* What is to be learned of an error, once each. */
static void print_explanations(struct page *p)
{
	bool *told = calloc(p->l->explanation_count, sizeof(*told));

	for (size_t i = 0; told && i < p->l->packet_count; i++)
		told[p->l->packets[i].explanation] = true;
	for (size_t i = 0; told && i < p->l->event_count; i++)
		if (p->l->events[i].severity == LADDER_ERROR)
			told[p->l->events[i].explanation] = true;
	for (size_t i = 1; told && i < p->l->explanation_count; i++) {
		if (!told[i])
			continue;
		fputc('\n', p->out);
		print_text(p, ladder_text(p->l, p->l->explanations[i]));
		fputc('\n', p->out);
	}
	free(told);
}

static void place_rails(struct page *p)
{
	unsigned n = p->rail_count;
	int side = n == 2 ? (int)p->columns / 4 : 3, left = TIME_COLUMNS + side,
	    right = (int)p->columns - (n == 2 ? side : 26);

	for (unsigned i = 0; i < n; i++)
		p->rails[i] = n == 1 ? left + 10 : left + (right - left) * (int)i / (int)(n - 1);
}

int ladder_write_text(const struct ladder *l, const struct ladder_text_options *options, FILE *out)
{
	size_t count;
	struct ladder_row *rows = ladder_rows(l, false, &count);
	struct page *p = calloc(1, sizeof(*p));
	unsigned columns = options->columns;

	if (!rows || !p || l->line_count > LADDER_TEXT_LINES) {
		bool many = rows && p;

		free(rows);
		free(p);
		return many ? -E2BIG : -ENOMEM;
	}
	p->l = l;
	p->out = out;
	p->color = options->color;
	p->ascii = options->ascii;
	p->columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
	p->rail_count = (unsigned)l->line_count;
	place_rails(p);
	fputs("# RDMA ladder\n\n", out);
	draw_heads(p);
	for (size_t i = 0; i < count; i++) {
		if (rows[i].kind == LADDER_ROW_EVENT)
			draw_event(p, &l->events[rows[i].index]);
		else
			draw_packet(p, &l->packets[rows[i].index]);
	}
	print_explanations(p);
	free(rows);
	free(p);
	return ferror(out) || fflush(out) ? -EIO : 0;
}
