/* SPDX-License-Identifier: BSD-2-Clause */
/* The ladder as a still picture. A row is a moment; where both ends were captured, arrows go from row to row. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ladder/rows.h"
#include "ladder/store.h"

#define WIDTH    1200
#define GUTTER   100
#define SIDE     250
#define HEAD     76
#define ROW      24
#define ROWS_MAX 3000 /* viewers become slow */

static const char *const colors[] = {"#2f6fde", "#0b8f6a", "#9a45c0", "#a86500",
				     "#067f9c", "#b8356f", "#557a12", "#5a5de0"};

#define BAD     "#d12f2f"
#define WARN    "#bd5b00"
#define DIM     "#667085"
#define NEUTRAL "#475067"

struct drawing {
	const struct ladder *l;
	FILE *out;
	size_t *row_of_arrival; /* of a packet; 0: it has none */
	size_t rows;
};

/* At most `most` characters, as text between tags. */
static void escaped(FILE *out, const char *text, int most)
{
	int n = 0;
	unsigned len;

	for (const unsigned char *c = (const unsigned char *)text; *c && n < most; c += len ? len : 1, n++) {
		len = ladder_utf8_len(c);
		if (*c == '<' || *c == '>' || *c == '&' || *c == '"')
			fprintf(out, "&#%u;", *c);
		else if (!len || *c < 0x20 || *c == 0x7f)
			fputc('?', out);
		else
			fwrite(c, 1, len, out);
	}
}

static int rail(const struct drawing *d, int line)
{
	int n = (int)d->l->line_count, left = n > 2 ? GUTTER + 60 : SIDE + GUTTER, right = WIDTH - SIDE;

	return n == 1 ? (left + right) / 2 : left + (right - left) * line / (n - 1);
}

static int row_y(size_t row)
{
	return HEAD + 16 + (int)row * ROW;
}

static const char *color_of(const struct drawing *d, int conversation)
{
	return conversation < 0 || d->l->conversations[conversation].cm
		       ? NEUTRAL
		       : colors[(unsigned)conversation % (sizeof(colors) / sizeof(colors[0]))];
}

static void text(const struct drawing *d, int x, int y, const char *anchor, const char *color, const char *more)
{
	fprintf(d->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" fill=\"%s\"%s>", x, y, anchor, color, more);
}

static void draw_time(const struct drawing *d, uint64_t ns, size_t row)
{
	char time[LADDER_TIME_CHARS];

	text(d, GUTTER - 8, row_y(row) + 4, "end", DIM, " font-size=\"12\"");
	fprintf(d->out, "%s</text>\n", ladder_time(time, ns - d->l->start_ns));
}

static void draw_packet(const struct drawing *d, const struct ladder_packet *p, size_t index, size_t row)
{
	int x0 = rail(d, p->from), x1 = rail(d, p->to), dir = x1 < x0 ? -1 : 1, y0 = row_y(row),
	    y1 = d->row_of_arrival[index] ? row_y(d->row_of_arrival[index]) : y0 + 6, most = (abs(x1 - x0) - 40) / 8;
	const char *color = p->flags & (LADDER_LOST | LADDER_BAD) ? BAD
			    : p->flags & LADDER_AGAIN             ? WARN
								  : color_of(d, p->conversation);
	char size[LADDER_SIZE_CHARS], remark[LADDER_REMARK_CHARS], label[512];
	bool ack = p->flags & LADDER_ACK, cut = p->flags & (LADDER_LOST_BEFORE | LADDER_LOST_BETWEEN);

	if (cut) {
		x1 = x0 + (x1 - x0) * (p->flags & LADDER_LOST_BEFORE ? 1 : 5) / 9;
		y1 = y0 + 3;
	}
	fprintf(d->out, "<path d=\"M%d %dL%d %d\" stroke=\"%s\" stroke-width=\"%s\"%s%s/>\n", x0, y0, x1 - dir, y1,
		color, ack ? "1.2" : "1.8", ack || p->flags & LADDER_LOST ? " stroke-dasharray=\"5 4\"" : "",
		cut ? "" : " marker-end=\"url(#tip)\"");
	if (p->flags & LADDER_LOST)
		fprintf(d->out, "<path d=\"m%d %dl12 12m0 -12l-12 12\" stroke=\"" BAD "\" stroke-width=\"2.5\"/>\n",
			(cut ? x1 : x1 - dir * 16) - 6, y1 - 6);
	snprintf(label, sizeof(label), "%s%s%s%s%s", ladder_packet_name(d->l, p),
		 p->bytes && !ack && !(p->flags & LADDER_CM) ? "  " : "",
		 p->bytes && !ack && !(p->flags & LADDER_CM) ? ladder_size(size, p->bytes) : "",
		 *ladder_remark(p, remark) ? "  " : "", remark);
	text(d, x0 + dir * (p->flags & LADDER_LOST_BEFORE ? 80 : 12), y0 - 3, dir > 0 ? "start" : "end", color,
	     " class=\"halo\"");
	escaped(d->out, label, most);
	fputs("</text>\n", d->out);
}

static void draw_event(const struct drawing *d, const struct ladder_event *e, size_t row)
{
	bool left = d->l->line_count == 2 && e->end == 0, done = e->kind == LADDER_COMPLETION;
	int x = rail(d, e->end), y = row_y(row), dir = left ? -1 : 1;
	const char *color = e->severity == LADDER_ERROR ? BAD : done ? "#15803d" : color_of(d, e->conversation);

	if (done)
		fprintf(d->out, "<circle cx=\"%d\" cy=\"%d\" r=\"6\" fill=\"%s\"/>\n", x, y, color);
	else
		fprintf(d->out,
			"<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" rx=\"2\" fill=\"%s\" stroke=\"%s\"/>\n",
			x - 5, y - 5, e->kind == LADDER_POST_SEND ? color : "#fff", color);
	text(d, x + dir * 14, y + 4, left ? "end" : "start", e->severity == LADDER_ERROR ? BAD : "#1b2130",
	     " class=\"halo\"");
	escaped(d->out, ladder_text(d->l, e->text), 30);
	if (e->id && strlen(ladder_text(d->l, e->text)) < 18) {
		fputs("<tspan fill=\"" DIM "\" font-size=\"12\">  ", d->out);
		escaped(d->out, ladder_text(d->l, e->id), 14);
		fputs("</tspan>", d->out);
	}
	fputs("</text>\n", d->out);
}

static void draw_head(const struct drawing *d, int height)
{
	fprintf(d->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"roci-ladder\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" font-family=\"system-ui, "
		"DejaVu Sans, sans-serif\" font-size=\"13\" fill=\"none\">\n<title>",
		WIDTH, height, WIDTH, height);
	escaped(d->out, d->l->options.title, 200);
	fputs("</title>\n<style>.halo{paint-order:stroke;stroke:#fff;stroke-width:4px}</style>\n"
	      "<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"6\" "
	      "markerHeight=\"6\" orient=\"auto\">"
	      "<path d=\"M0 0L10 5L0 10z\" fill=\"context-stroke\"/></marker></defs>\n<rect width=\"100%\" "
	      "height=\"100%\" fill=\"#fff\"/>\n",
	      d->out);
	for (size_t i = 0; i < d->l->line_count; i++) {
		int x = rail(d, (int)i);

		fprintf(d->out, "<path d=\"M%d %dV%d\" stroke=\"#b8c0cf\" stroke-width=\"2\"/>\n", x, HEAD - 16,
			height);
		fprintf(d->out,
			"<rect x=\"%d\" y=\"10\" width=\"220\" height=\"48\" rx=\"9\" fill=\"#fff\" "
			"stroke=\"#b8c0cf\"/>\n",
			x - 110);
		text(d, x, 30, "middle", "#1b2130", " font-weight=\"650\"");
		escaped(d->out, ladder_text(d->l, d->l->lines[i].name), 28);
		fputs("</text>\n", d->out);
		text(d, x, 48, "middle", DIM, " font-size=\"12\"");
		escaped(d->out, ladder_text(d->l, d->l->lines[i].about), 34);
		fputs("</text>\n", d->out);
	}
}

static void draw_rows(const struct drawing *d, const struct ladder_row *rows)
{
	for (size_t i = 0; i < d->rows; i++) {
		draw_time(d, rows[i].time_ns, i);
		if (rows[i].kind == LADDER_ROW_LEAVES)
			draw_packet(d, &d->l->packets[rows[i].index], rows[i].index, i);
	}
	for (size_t i = 0; i < d->rows; i++)
		if (rows[i].kind == LADDER_ROW_EVENT)
			draw_event(d, &d->l->events[rows[i].index], i);
}

int ladder_write_svg(const struct ladder *l, FILE *out)
{
	struct drawing d = {.l = l, .out = out};
	size_t count;
	struct ladder_row *rows = ladder_rows(l, true, &count);

	d.row_of_arrival = calloc(l->packet_count + 1, sizeof(*d.row_of_arrival));
	if (!rows || !d.row_of_arrival) {
		free(rows);
		free(d.row_of_arrival);
		return -ENOMEM;
	}
	d.rows = count < ROWS_MAX ? count : ROWS_MAX;
	for (size_t i = 0; i < d.rows; i++)
		if (rows[i].kind == LADDER_ROW_ARRIVES)
			d.row_of_arrival[rows[i].index] = i;
	draw_head(&d, row_y(d.rows) + (d.rows < count ? 30 : 10));
	draw_rows(&d, rows);
	if (d.rows < count) {
		text(&d, WIDTH / 2, row_y(d.rows) + 8, "middle", WARN, "");
		fprintf(out, "%zu more rows are left out; the page (roci ladder without --svg) has them</text>\n",
			count - d.rows);
	}
	fputs("</svg>\n", out);
	free(rows);
	free(d.row_of_arrival);
	return ferror(out) || fflush(out) ? -EIO : 0;
}
