/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints --help from the tables of commands and options, and messages about mistakes. */
#include <stdarg.h>
#include <string.h>

#include "command.h"

#define HELP_COLUMN 26

/* "  -q, --quiet", "      --dir DIR" */
static int print_names(const struct option_row *row, FILE *out)
{
	int width = row->letter ? fprintf(out, "  -%c, --%s", row->letter, row->name)
				: fprintf(out, "      --%s", row->name);
	return width + (row->argument ? fprintf(out, " %s", row->argument) : 0);
}

/* Prints the names, and the help text in its column. */
static void print_row(const struct option_row *row, FILE *out)
{
	int width = print_names(row, out);
	const char *line = row->help;
	if (width > HELP_COLUMN - 2) {
		fputc('\n', out);
		width = 0;
	}
	for (;;) {
		size_t len = strcspn(line, "\n");
		fprintf(out, "%*s%.*s", HELP_COLUMN - width, "", (int)len, line);
		if (!line[len])
			break;
		fputc('\n', out);
		line += len + 1;
		width = 0;
	}
	if (row->default_text)
		fprintf(out, " [%s]", row->default_text);
	fputc('\n', out);
}

void help_command(const struct command *command, FILE *out)
{
	const char *group = "";
	fprintf(out, "%s\n\nexamples:\n%s\nusage: roci %s %s\n", command->summary, command->examples, command->name,
		command->usage);
	for (size_t i = 0; i < command->option_count; i++) {
		const struct option_row *row = &command->options[i];
		if (strcmp(group, row->group))
			fprintf(out, "\n%s:\n", row->group);
		group = row->group;
		print_row(row, out);
	}
	if (command->about)
		fprintf(out, "\n%s", command->about);
	if (command->manual)
		fprintf(out, "\nMore: `man %s`\n", command->manual);
}

void help_all(FILE *out)
{
	fputs("RDMA on any Linux machine: with an adapter, with the kernel's Soft-RoCE, or with neither.\n\n"
	      "examples:\n"
	      "  roci demo                       see how RDMA moves a file, step by step\n"
	      "  roci recv                       wait for files and show a ticket for the sender\n"
	      "  roci send film.mkv 10.0.0.7     send a file to the machine where `roci recv` waits\n"
	      "  roci ping --op all 10.0.0.7     do every RDMA operation with the machine where `roci serve` waits\n"
	      "  roci run -- ibv_devinfo         print what the software device roci0 can do\n"
	      "  roci run -- ib_write_bw         run any RDMA program; this one waits for a client\n"
	      "  roci explain status 12          what does this error mean?\n\n"
	      "usage: roci COMMAND [OPTION]... [ARGUMENT]...\n\n"
	      "commands:\n",
	      out);
	for (const struct command *const *c = commands; *c; c++)
		fprintf(out, "  %-11s %s\n", (*c)->name, (*c)->summary);
	fputs("\n`roci COMMAND --help` explains a command. `roci --version` prints the version.\n", out);
}

int complain(const struct command *command, const char *format, ...)
{
	va_list arguments;
	fflush(stdout);
	fprintf(stderr, "roci%s%s: ", command ? " " : "", command ? command->name : "");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return EXIT_USAGE;
}
