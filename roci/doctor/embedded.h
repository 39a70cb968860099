/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines roci0 in a process of its own: the libraries that make it must be loaded before the program starts. */
#ifndef ROCI_DOCTOR_EMBEDDED_H
#define ROCI_DOCTOR_EMBEDDED_H

#include <netinet/in.h>
#include <stdbool.h>

struct command;
struct findings;

/* Starts `roci doctor` again with our libraries, and adds what that process found; or a problem, if it cannot start or
 * fails. source: for doctor_verbs(). */
void doctor_embedded(struct findings *findings, const struct command *command, const char *source);

/* Whether this is that process; then *source is set. It prints its findings of doctor_verbs() as JSON and ends. */
bool doctor_is_embedded(char source[INET6_ADDRSTRLEN]);

#endif
