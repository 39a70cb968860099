/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the completion scripts of the shells, from the option tables. */
#ifndef ROCI_COMPLETION_H
#define ROCI_COMPLETION_H

#include <stdio.h>

void completion_bash(FILE *out);
void completion_zsh(FILE *out);
void completion_fish(FILE *out);

#endif
