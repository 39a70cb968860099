/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the completion scripts of the shells, from the option tables. */
#ifndef ROCI_COMPLETION_H
#define ROCI_COMPLETION_H

#include <stdio.h>

struct command;

/* The values of the argument of an OPERANDS_CHOICE; ends with NULL. */
const char *const *completion_operands(const struct command *command);

void completion_bash(FILE *out);
void completion_zsh(FILE *out);
void completion_fish(FILE *out);

#endif
