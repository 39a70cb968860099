/* SPDX-License-Identifier: BSD-2-Clause */
/* The page around the data, made of src/plot/page/ and the D3 library by scripts/embed.py when this is built. */
#ifndef ROCI_PLOT_TEMPLATE_H
#define ROCI_PLOT_TEMPLATE_H

#include <stddef.h>

extern const unsigned char plot_page_head[], plot_page_tail[];
extern const size_t plot_page_head_len, plot_page_tail_len;

#endif
