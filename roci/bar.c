/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

#include "bar.h"
#include "text.h"
#include "units.h"

#define NARROW      40 /* columns; a narrower terminal gets no bar */
#define LONGEST_BAR 40 /* columns */

void bar_init(struct bar *bar, FILE *out)
{
	*bar = (struct bar){0};
	if (text_is_terminal(out))
		bar->out = out;
	bar->color = text_has_colors(out);
}

static unsigned columns(const struct bar *bar)
{
	struct winsize size;
	return ioctl(fileno(bar->out), TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
}

static void draw_gauge(const struct bar *bar, double part, unsigned width)
{
	unsigned full = (unsigned)(part * width);
	fputs(bar->color ? "[\033[32m" : "[", bar->out);
	for (unsigned i = 0; i < width; i++) {
		if (i == full && bar->color)
			fputs("\033[0m", bar->out);
		fputc(i < full ? '#' : '.', bar->out);
	}
	fputs(bar->color ? "\033[0m] " : "] ", bar->out);
}

void bar_draw_text(struct bar *bar, double part, const char *text)
{
	unsigned room, len = (unsigned)strlen(text);

	if (!bar->out)
		return;
	room = columns(bar) - 1;
	if (room < NARROW)
		return;
	fputs("\r\033[K", bar->out);
	if (part >= 0 && len + 13 <= room)
		draw_gauge(bar, part, room - len - 3 < LONGEST_BAR ? room - len - 3 : LONGEST_BAR);
	fprintf(bar->out, "%.*s", (int)room, text);
	fflush(bar->out);
	bar->drawn = true;
}

void bar_draw(struct bar *bar, uint64_t done, uint64_t total, double bytes_per_s, const char *where)
{
	char text[200], at[UNITS_CHARS], of[UNITS_CHARS], rate[UNITS_CHARS], left[UNITS_CHARS];
	bool known = total && done <= total;
	double part = known ? (double)done / (double)total : 0;

	if (!bar->out)
		return;
	units_clock(left, bytes_per_s > 0 ? (double)(total - done) / bytes_per_s : HUGE_VAL);
	if (known)
		snprintf(text, sizeof(text), "%3.0f%%  %s of %s  %s  %s left  %s", floor(part * 100),
			 units_bytes(at, done), units_bytes(of, total), units_rate(rate, bytes_per_s), left, where);
	else
		snprintf(text, sizeof(text), "%s  %s  %s", units_bytes(at, done), units_rate(rate, bytes_per_s), where);
	bar_draw_text(bar, known ? part : -1, text);
}

void bar_clear(struct bar *bar)
{
	if (!bar->drawn)
		return;
	fputs("\r\033[K", bar->out);
	fflush(bar->out);
	bar->drawn = false;
}
