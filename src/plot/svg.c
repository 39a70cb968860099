/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "plot/plot.h"

#define WIDTH      1000
#define HEAD       64  /* the title of all */
#define CHART      400 /* height of a chart, with its title, legend and axes */
#define LEFT       100
#define RIGHT      24
#define LEGEND     62 /* the first row of a chart's legend */
#define LEGEND_ROW 20
#define BOTTOM     52
#define MAX_TICKS  24u
#define LEGEND_GAP 26

#define PLOT_WIDTH (WIDTH - LEFT - RIGHT)

/* The colours are those of the page; they follow the reader's choice of light and dark, and are light on paper. */
static const char style[] =
	"svg{background:#fff;font:14px system-ui,\"DejaVu "
	"Sans\",sans-serif}text{fill:#5b6579}.h{fill:#1b2130;font-weight:600}"
	".g{stroke:#e3e7ef}.a{stroke:#98a2b5;fill:none}.l{fill:none;stroke-width:2.2;stroke-linejoin:round}"
	".t{stroke-dasharray:7 5}.d{stroke:#fff;stroke-width:1.5}"
	".c0{stroke:#2f6fde}.c1{stroke:#0b8f6a}.c2{stroke:#c2571a}.c3{stroke:#9a45c0}.c4{stroke:#067f9c}.c5{stroke:#"
	"b8356f}"
	".c6{stroke:#557a12}.c7{stroke:#6b5f4b}.d.c0{fill:#2f6fde}.d.c1{fill:#0b8f6a}.d.c2{fill:#c2571a}.d.c3{fill:#"
	"9a45c0}"
	".d.c4{fill:#067f9c}.d.c5{fill:#b8356f}.d.c6{fill:#557a12}.d.c7{fill:#6b5f4b}circle.d{stroke:#fff}"
	"@media screen and (prefers-color-scheme:dark){svg{background:#12151c}text{fill:#a4aec0}.h{fill:#e7eaf1}"
	".g{stroke:#2c3240}.a{stroke:#667085}.c0{stroke:#7aa7ff}.c1{stroke:#4fd1a5}.c2{stroke:#ff9d5c}.c3{stroke:#"
	"d59bf0}"
	".c4{stroke:#5cd0e6}.c5{stroke:#f48fb8}.c6{stroke:#b4d455}.c7{stroke:#cbbfa8}.d.c0{fill:#7aa7ff}.d.c1{fill:#"
	"4fd1a5}"
	".d.c2{fill:#ff9d5c}.d.c3{fill:#d59bf0}.d.c4{fill:#5cd0e6}.d.c5{fill:#f48fb8}.d.c6{fill:#b4d455}.d.c7{fill:#"
	"cbbfa8}"
	"circle.d{stroke:#12151c}}";

struct drawing {
	FILE *out;
	const struct plot_chart *chart;
	double top;    /* of the chart in the picture */
	double legend; /* its last row; the plot begins below it */
	struct plot_axis x, y;
};

static void put_text(FILE *out, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '<' || *c == '>' || *c == '&' || *c == '"')
			fprintf(out, "&#%u;", *c);
		else
			fputc(*c < 0x20 || *c == 0x7f ? '?' : *c, out);
	}
}

/* ---- scales ---- */

static double part(const struct plot_axis *a, double value)
{
	if (a->log)
		return (log(value) - log(a->low)) / (log(a->high) - log(a->low));
	return (value - a->low) / (a->high - a->low);
}

static double at_x(const struct drawing *d, double value)
{
	return LEFT + part(&d->x, value) * PLOT_WIDTH;
}

static double plot_top(const struct drawing *d)
{
	return d->legend + 22;
}

static double at_y(const struct drawing *d, double value)
{
	return plot_top(d) + (1 - part(&d->y, value)) * (d->top + CHART - BOTTOM - plot_top(d));
}

/* From what the lines need: with zero, or on a logarithmic axis a little around. */
static void find_range(struct plot_axis *y, const struct plot_chart *c)
{
	double low = HUGE_VAL, high = 0;

	for (size_t i = 0; i < c->line_count; i++) {
		for (size_t p = 0; p < c->lines[i].count; p++) {
			double value = c->lines[i].points[p][1];
			low = value < low ? value : low;
			high = value > high ? value : high;
		}
	}
	high = high > 0 ? high : 1;
	y->low = y->log ? (low > 0 ? low : high / 10) * 0.85 : 0;
	y->high = high * (y->log ? 1.18 : 1.06);
}

/* Round numbers: of a linear axis about six, of a logarithmic one powers of ten with 2 and 5 between. */
static size_t round_ticks(const struct plot_axis *a, double ticks[MAX_TICKS])
{
	static const double steps[] = {1, 2, 5};
	double power = pow(10, floor(log10(a->log ? a->low : (a->high - a->low) / 6)));
	size_t count = 0;

	if (a->log) {
		bool sparse = a->high / a->low > 2000;
		for (; power <= a->high; power *= 10) {
			for (size_t s = 0; s < (sparse ? 1 : 3); s++) {
				double tick = power * steps[s];
				if (tick >= a->low && tick <= a->high && count < MAX_TICKS)
					ticks[count++] = tick;
			}
		}
		return count;
	}
	for (size_t s = 0; (a->high - a->low) / power > 8; s++)
		power *= s % 3 == 1 ? 2.5 : 2; /* 1, 2, 5, 10 */
	for (double tick = ceil(a->low / power) * power; tick <= a->high && count < MAX_TICKS; tick += power)
		ticks[count++] = tick;
	return count;
}

/* ---- parts of a chart ---- */

static void draw_axis(const struct drawing *d, bool is_x)
{
	const struct plot_axis *a = is_x ? &d->x : &d->y;
	double round[MAX_TICKS], bottom = d->top + CHART - BOTTOM;
	const double *ticks = a->ticks ? a->ticks : round;
	size_t count = a->ticks ? a->tick_count : round_ticks(a, round);

	for (size_t i = 0; i < count; i++) {
		char label[PLOT_LABEL_CHARS];
		a->format(label, ticks[i]);
		if (is_x)
			fprintf(d->out,
				"<path class=\"g\" d=\"M%.1f,%.1fV%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
				"text-anchor=\"middle\">",
				at_x(d, ticks[i]), bottom, plot_top(d), at_x(d, ticks[i]), bottom + 20);
		else
			fprintf(d->out,
				"<path class=\"g\" d=\"M%d,%.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
				LEFT, at_y(d, ticks[i]), WIDTH - RIGHT, LEFT - 10, at_y(d, ticks[i]) + 5);
		put_text(d->out, label);
		fputs("</text>\n", d->out);
	}
	if (!is_x)
		return;
	fprintf(d->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", WIDTH - RIGHT, bottom + 42);
	put_text(d->out, a->label);
	fputs("</text>\n", d->out);
}

static void draw_line(const struct drawing *d, const struct plot_line *line)
{
	fprintf(d->out, "<path class=\"l c%u%s\" d=\"", line->color % 8, line->dashed ? " t" : "");
	for (size_t i = 0; i < line->count; i++)
		fprintf(d->out, "%c%.1f,%.1f", i ? 'L' : 'M', at_x(d, line->points[i][0]), at_y(d, line->points[i][1]));
	fputs("\"/>\n", d->out);
	for (size_t i = 0; i < line->count && d->chart->dots; i++)
		fprintf(d->out, "<circle class=\"d c%u\" r=\"4.5\" cx=\"%.1f\" cy=\"%.1f\"/>\n", line->color % 8,
			at_x(d, line->points[i][0]), at_y(d, line->points[i][1]));
}

/* How wide a name is, about: there is no font to ask. */
static double width_of(const char *name)
{
	double width = 0;

	for (; *name; name++)
		width += (*name & 0xc0) != 0x80 ? 8.2 : 0;
	return width;
}

/* In as many rows as the names need. */
static void draw_legend(struct drawing *d)
{
	double x = LEFT;

	d->legend = d->top + LEGEND;

	for (size_t i = 0; i < d->chart->line_count && d->chart->line_count > 1; i++) {
		const struct plot_line *line = &d->chart->lines[i];
		double width = width_of(line->name);

		if (x + 34 + width > WIDTH) {
			x = LEFT;
			d->legend += LEGEND_ROW;
		}
		fprintf(d->out, "<path class=\"l c%u%s\" d=\"M%.1f,%.1fh26\"/><text x=\"%.1f\" y=\"%.1f\">",
			line->color % 8, line->dashed ? " t" : "", x, d->legend, x + 33, d->legend + 5);
		put_text(d->out, line->name);
		fputs("</text>\n", d->out);
		x += 33 + width + LEGEND_GAP;
	}
}

static void draw_chart(FILE *out, const struct plot_chart *chart, double top)
{
	struct drawing d = {.out = out, .chart = chart, .top = top, .x = chart->x, .y = chart->y};

	if (!d.y.ticks)
		find_range(&d.y, chart);
	fprintf(out, "<text class=\"h\" x=\"%d\" y=\"%.1f\" font-size=\"17\">", LEFT, top + 22);
	put_text(out, chart->title);
	fprintf(out, "</text><text x=\"%d\" y=\"%.1f\">", LEFT, top + 42);
	put_text(out, chart->text);
	fputs("</text>\n", out);
	draw_legend(&d);
	draw_axis(&d, true);
	draw_axis(&d, false);
	fprintf(out, "<path class=\"a\" d=\"M%d,%.1fV%.1fH%d\"/>\n", LEFT, plot_top(&d), top + CHART - BOTTOM,
		WIDTH - RIGHT);
	for (size_t i = 0; i < chart->line_count; i++)
		draw_line(&d, &chart->lines[i]);
}

void plot_svg(FILE *out, const char *title, const char *subtitle, const struct plot_chart *charts, size_t count)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"roci-perf\" viewBox=\"0 0 %d %zu\" "
		"role=\"img\">\n<title>",
		WIDTH, HEAD + count * CHART);
	put_text(out, title);
	fprintf(out, "</title>\n<style>%s</style>\n<text class=\"h\" x=\"24\" y=\"32\" font-size=\"21\">", style);
	put_text(out, title);
	fputs("</text><text x=\"24\" y=\"54\">", out);
	put_text(out, subtitle);
	fputs("</text>\n", out);
	for (size_t i = 0; i < count; i++)
		draw_chart(out, &charts[i], HEAD + (double)i * CHART);
	fputs("</svg>\n", out);
}
