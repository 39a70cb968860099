/* SPDX-License-Identifier: BSD-2-Clause */
/* The shells' completion, made from the option tables. */
#ifndef ROCI_COMPLETION_H
#define ROCI_COMPLETION_H

#include <stdio.h>

void completion_bash(FILE *out);
void completion_zsh(FILE *out);
void completion_fish(FILE *out);

#endif
