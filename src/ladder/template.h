/* SPDX-License-Identifier: BSD-2-Clause */
/* The page around the data, made of src/ladder/page/ by scripts/embed.py when this is built. */
#ifndef LADDER_TEMPLATE_H
#define LADDER_TEMPLATE_H

#include <stddef.h>

extern const unsigned char ladder_page_head[], ladder_page_tail[];
extern const size_t ladder_page_head_len, ladder_page_tail_len;

#endif
