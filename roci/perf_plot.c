/* SPDX-License-Identifier: BSD-2-Clause */
/* roci perf --plot: the figures as a page or as a picture. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"
#include "plot/plot.h"
#include "units.h"
#include "wire/plural.h"

#define STEPS_A_HALF 5u /* points of a distribution until the part that is left halves, as HdrHistogram has them */
#define MOST_POINTS  128u
#define MOST_SIZES   5u /* that have lines of their own in a picture */
#define CHARTS       4u

static void make_titles(const struct perf *perf, char title[160], char subtitle[240])
{
	const struct perf_plan *p = &perf->plan;
	const struct perf_near *n = &perf->near;
	char packets[PERF_PACKETS_CHARS];

	snprintf(title, 160, "%s to %s", tour_op_title(p->op), n->address);
	snprintf(subtitle, 240, "%s to %s, %u queue pair%s, %u completion queue%s, %u deep, %s%s%s",
		 n->end.port.verbs->device->name, n->offer.device, p->qps, roci_plural(p->qps), p->cqs,
		 roci_plural(p->cqs), p->depth, perf_print_packets(packets, perf), p->bidir ? ", both directions" : "",
		 p->events ? ", events" : ", polling");
}

/* The distribution as points: percent, ns. Denser towards 100 %, up to what so few values can tell. */
static size_t distribution(const struct hdr *h, double points[MOST_POINTS][2])
{
	double left = 1; /* the part of the values above */
	size_t count = 0;

	for (unsigned step = 0; count < MOST_POINTS && left * (double)h->total >= 1; step++) {
		points[count][0] = 100 - 100 * left;
		points[count][1] = (double)hdr_percentile(h, 100 - 100 * left);
		count++;
		left = pow(0.5, (double)(step + 1) / STEPS_A_HALF);
	}
	return count;
}

/* ---- the page ---- */

static json_t *page_row(const struct perf *perf, const struct perf_row *row)
{
	double points[MOST_POINTS][2];
	json_t *object = perf_json_result(perf, row), *list = json_array();
	size_t count = row->result.latency.counts ? distribution(&row->result.latency, points) : 0;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("[f,f]", points[i][0], points[i][1]));
	json_object_set_new(object, "distribution", list);
	json_object_del(object, "histogram");
	return object;
}

static int write_page(const struct perf *perf, FILE *out)
{
	json_t *page = json_object(), *rows = json_array(), *warnings = json_array();
	char title[160], subtitle[240], *text;

	make_titles(perf, title, subtitle);
	for (unsigned i = 0; i < perf->row_count; i++)
		json_array_append_new(rows, page_row(perf, &perf->rows[i]));
	for (size_t i = 0; i < perf->warned.count; i++)
		json_array_append_new(warnings, json_string(perf->warned.list[i].text));
	json_object_set_new(page, "title", json_string(title));
	json_object_set_new(page, "subtitle", json_string(subtitle));
	json_object_set_new(page, "op", json_string(tour_op_title(perf->plan.op)));
	json_object_set_new(page, "bidir", json_boolean(perf->plan.bidir));
	json_object_set_new(page, "latency_is", json_string(perf_latency_text(perf)));
	json_object_set_new(page, "rows", rows);
	json_object_set_new(page, "warnings", warnings);
	text = json_dumps(page, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(page);
	if (!text)
		return -ENOMEM;
	plot_page(out, text);
	free(text);
	return 0;
}

/* ---- the picture ---- */

/* Of a round number the zeros behind the point go: "10 ms", not "10.0 ms". */
static void trim(char *label)
{
	char *point = strchr(label, '.'), *blank = strchr(label, ' '), *end = blank;

	if (!point || !blank || point > blank)
		return;
	while (end > point && (end[-1] == '0' || end[-1] == '.'))
		end--;
	memmove(end, blank, strlen(blank) + 1);
}

static void format_bits(char label[PLOT_LABEL_CHARS], double value)
{
	units_bits(label, value / 8);
	trim(label);
}

static void format_size(char label[PLOT_LABEL_CHARS], double value)
{
	perf_print_size(label, (uint32_t)value);
}

static void format_time(char label[PLOT_LABEL_CHARS], double value)
{
	perf_print_time(label, (uint64_t)(value + 0.5));
	trim(label);
}

static void format_seconds(char label[PLOT_LABEL_CHARS], double value)
{
	snprintf(label, PLOT_LABEL_CHARS, "%g s", value);
}

/* A distribution's axis has the same room for each nine. */
static double to_nines(double percent)
{
	return log10(100 / (100 - percent));
}

static void format_nines(char label[PLOT_LABEL_CHARS], double nines)
{
	snprintf(label, PLOT_LABEL_CHARS, "%.6g %%", 100 - 100 / pow(10, nines));
}

struct picture {
	const struct perf *perf;
	struct plot_chart charts[CHARTS];
	size_t chart_count;
	char names[2 * PERF_MAX_SIZES * 3][UNITS_CHARS + 8];
	size_t name_count;
	double sizes[PERF_MAX_SIZES];
	struct plot_line *lines[CHARTS];
};

/* A line of at most `count` points for a chart. NULL: no memory. */
static struct plot_line *add_line(struct picture *p, struct plot_chart *c, const char *name, unsigned color,
				  bool dashed, size_t count)
{
	struct plot_line **lines = &p->lines[c - p->charts];
	struct plot_line *more = realloc(*lines, (c->line_count + 1) * sizeof(**lines));
	struct plot_line *line;

	if (!more)
		return NULL;
	*lines = more;
	c->lines = more;
	line = &more[c->line_count];
	*line = (struct plot_line){.name = name, .color = color, .dashed = dashed};
	line->points = calloc(count ? count : 1, sizeof(*line->points));
	if (line->points)
		c->line_count++;
	return line->points ? line : NULL;
}

static void drop_lines(struct picture *p, size_t chart)
{
	for (size_t i = 0; i < p->charts[chart].line_count; i++)
		free(p->lines[chart][i].points);
	free(p->lines[chart]);
	p->lines[chart] = NULL;
	p->charts[chart].line_count = 0;
}

static void add_point(struct plot_line *line, double x, double y)
{
	line->points[line->count][0] = x;
	line->points[line->count][1] = y;
	line->count++;
}

static unsigned size_color(const struct perf *perf, uint32_t size)
{
	unsigned smaller = 0;

	for (unsigned i = 0; i < perf->size_count; i++)
		smaller += perf->sizes[i] < size;
	return smaller;
}

/* Of many sizes, a few are drawn: their places in the order are spread evenly. */
static bool is_drawn(const struct perf *perf, uint32_t size)
{
	unsigned place = size_color(perf, size), last = perf->size_count - 1;

	if (perf->size_count <= MOST_SIZES)
		return true;
	for (unsigned i = 0; i < MOST_SIZES; i++) {
		if (place == (i * last + (MOST_SIZES - 1) / 2) / (MOST_SIZES - 1))
			return true;
	}
	return false;
}

static const char *row_name(struct picture *p, const struct perf_row *row, bool tcp)
{
	char *name = p->names[p->name_count++], size[UNITS_CHARS];

	snprintf(name, sizeof(p->names[0]), "%s%s", tcp ? "TCP " : "", perf_print_size(size, row->order.size));
	return name;
}

static int by_number(const void *a, const void *b)
{
	double one = *(const double *)a, two = *(const double *)b;

	return (one > two) - (one < two);
}

static int by_x(const void *a, const void *b)
{
	return by_number(a, b); /* a point begins with x */
}

static int bandwidth_chart(struct picture *p)
{
	const struct perf *perf = p->perf;
	struct plot_chart *c = &p->charts[p->chart_count];
	unsigned count = perf->size_count;

	for (unsigned i = 0; i < count; i++)
		p->sizes[i] = perf->sizes[i];
	qsort(p->sizes, count, sizeof(p->sizes[0]), by_number);
	*c = (struct plot_chart){.title = "Bandwidth", .text = "higher is better", .dots = true};
	c->x = (struct plot_axis){.label = "size of a message",
				  .log = true,
				  .low = p->sizes[0] / 1.25,
				  .high = p->sizes[count - 1] * 1.25,
				  .ticks = p->sizes,
				  .tick_count = count,
				  .format = format_size};
	c->y.format = format_bits;
	for (unsigned tcp = 0; tcp < 2; tcp++) {
		enum perf_phase phase = tcp ? PERF_TCP_BANDWIDTH : PERF_BANDWIDTH;
		struct plot_line *line =
			add_line(p, c, tcp ? "TCP" : tour_op_title(perf->plan.op), tcp ? 2 : 0, tcp, count);
		if (!line)
			return -ENOMEM;
		for (unsigned i = 0; i < perf->row_count; i++) {
			if (perf->rows[i].order.phase == phase)
				add_point(line, perf->rows[i].order.size, perf_bandwidth(perf, &perf->rows[i]) * 8);
		}
		qsort(line->points, line->count, sizeof(*line->points), by_x);
		if (!line->count) {
			free(line->points);
			c->line_count--;
		}
	}
	if (c->line_count && c->lines[0].count > 1)
		p->chart_count++;
	else
		drop_lines(p, p->chart_count);
	return 0;
}

static int latency_chart(struct picture *p)
{
	static double ticks[] = {0, 50, 90, 99, 99.9, 99.99, 99.999};
	static double nines[sizeof(ticks) / sizeof(ticks[0])];
	struct plot_chart *c = &p->charts[p->chart_count];
	double most = 1;

	*c = (struct plot_chart){.title = "Latency", .text = perf_latency_text(p->perf)};
	for (unsigned i = 0; i < p->perf->row_count; i++) {
		const struct perf_row *row = &p->perf->rows[i];
		bool tcp = row->order.phase == PERF_TCP_LATENCY;
		double points[MOST_POINTS][2];
		size_t count = row->result.latency.counts ? distribution(&row->result.latency, points) : 0;
		struct plot_line *line;
		if (!count || !is_drawn(p->perf, row->order.size))
			continue;
		line = add_line(p, c, row_name(p, row, tcp), size_color(p->perf, row->order.size), tcp, count);
		if (!line)
			return -ENOMEM;
		for (size_t at = 0; at < count; at++)
			add_point(line, to_nines(points[at][0]), points[at][1]);
		most = fmax(most, to_nines(points[count - 1][0]));
	}
	c->x = (struct plot_axis){.label = "part of the messages that were as fast or faster",
				  .high = most,
				  .ticks = nines,
				  .format = format_nines};
	for (size_t i = 0; i < sizeof(ticks) / sizeof(ticks[0]) && to_nines(ticks[i]) <= most; i++)
		nines[c->x.tick_count++] = to_nines(ticks[i]);
	c->y = (struct plot_axis){.log = true, .format = format_time};
	p->chart_count += c->line_count > 0;
	return 0;
}

static int time_chart(struct picture *p, bool latency)
{
	struct plot_chart *c = &p->charts[p->chart_count];
	double end = 0;

	*c = (struct plot_chart){.title = latency ? "Latency over time" : "Bandwidth over time",
				 .text = latency ? "the 99th percentile of each part of the time"
						 : "a steady line is a figure to trust"};
	for (unsigned i = 0; i < p->perf->row_count; i++) {
		const struct perf_row *row = &p->perf->rows[i];
		const struct run_result *r = &row->result;
		bool tcp = row->order.phase >= PERF_TCP_BANDWIDTH;
		struct plot_line *line;
		uint64_t before_ns = 0;
		double last_s = 0;
		if (!r->latency.counts == latency || r->interval_count < 2 || !is_drawn(p->perf, row->order.size))
			continue;
		line = add_line(p, c, row_name(p, row, tcp), size_color(p->perf, row->order.size), tcp,
				r->interval_count);
		if (!line)
			return -ENOMEM;
		for (unsigned at = 0; at < r->interval_count; at++) {
			const struct run_interval *part = &r->intervals[at];
			double seconds = (double)(part->end_ns - before_ns) / 1e9;
			if (at + 1 == r->interval_count && seconds < last_s / 2)
				break; /* a rest of the time */
			last_s = seconds;
			add_point(line, (double)part->end_ns / 1e9,
				  latency ? (double)part->p99_ns
					  : (double)part->messages * row->order.size * 8 / (seconds > 0 ? seconds : 1));
			before_ns = part->end_ns;
			end = fmax(end, (double)part->end_ns / 1e9);
		}
	}
	c->x = (struct plot_axis){.label = "time since the warm-up", .high = end, .format = format_seconds};
	c->y = (struct plot_axis){.log = latency, .format = latency ? format_time : format_bits};
	p->chart_count += c->line_count > 0;
	return 0;
}

static int write_picture(const struct perf *perf, FILE *out)
{
	struct picture *p = calloc(1, sizeof(*p));
	char title[160], subtitle[240];
	int err = -ENOMEM;

	if (!p)
		return err;
	p->perf = perf;
	err = bandwidth_chart(p);
	if (!err)
		err = latency_chart(p);
	if (!err)
		err = time_chart(p, false);
	if (!err)
		err = time_chart(p, true);
	make_titles(perf, title, subtitle);
	if (!err)
		plot_svg(out, title, subtitle, p->charts, p->chart_count);
	for (size_t i = 0; i < CHARTS; i++)
		drop_lines(p, i);
	free(p);
	return err;
}

/* ---- the file ---- */

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name);

	return len > strlen(end) && !strcmp(name + len - strlen(end), end);
}

bool perf_plot_can(const char *name)
{
	return ends_with(name, ".html") || ends_with(name, ".svg");
}

int perf_write_plot(const struct perf *perf)
{
	const char *name = perf->choices->plot;
	FILE *out = fopen(name, "we");
	int err;

	if (!out) {
		complain(perf->command, "%s: %s", name, strerror(errno));
		return -EIO;
	}
	err = ends_with(name, ".svg") ? write_picture(perf, out) : write_page(perf, out);
	if (!err && ferror(out))
		err = -EIO;
	if (fclose(out) && !err)
		err = -errno;
	if (err)
		complain(perf->command, "%s: %s", name, strerror(-err));
	return err;
}
