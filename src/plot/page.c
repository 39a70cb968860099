/* SPDX-License-Identifier: BSD-2-Clause */
#include "plot/plot.h"
#include "plot/template.h"

void plot_page(FILE *out, const char *json)
{
	fwrite(plot_page_head, 1, plot_page_head_len, out);
	for (const char *c = json; *c; c++) {
		if (*c == '<') /* only strings have it, and there it may be written so: RFC 8259 s.7 */
			fputs("\\u003c", out);
		else
			fputc(*c, out);
	}
	fwrite(plot_page_tail, 1, plot_page_tail_len, out);
}
