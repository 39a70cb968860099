/* SPDX-License-Identifier: BSD-2-Clause */
#include "command.h"
#include "completion.h"

static void put_quoted(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text == '\n' ? ' ' : *text, out);
	}
	fputc('\'', out);
}

static void put_values(const char *const *values, FILE *out)
{
	fputs(" -a '", out);
	for (size_t i = 0; values[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", values[i]);
	fputc('\'', out);
}

static void put_option(const struct command *command, const struct option_row *row, FILE *out)
{
	fprintf(out, "complete -c roci -n '__fish_seen_subcommand_from %s' -l %s", command->name, row->name);
	if (row->letter)
		fprintf(out, " -s %c", row->letter);
	if (row->argument)
		fputs(row->kind == OPTION_FILE ? " -r -F" : " -x", out);
	if (row->kind == OPTION_CHOICE)
		put_values(row->values, out);
	else if (row->kind == OPTION_FOLDER)
		fputs(" -a '(__fish_complete_directories)'", out);
	else if (row->kind == OPTION_DEVICE)
		fputs(" -a 'auto embedded (command ls /sys/class/infiniband 2>/dev/null)'", out);
	fputs(" -d ", out);
	put_quoted(row->help, out);
	fputc('\n', out);
}

static void put_operands(const struct command *command, FILE *out)
{
	if (command->operands == OPERANDS_NONE)
		return;
	fprintf(out, "complete -c roci -n '__fish_seen_subcommand_from %s'", command->name);
	switch (command->operands) {
	case OPERANDS_FILE: fputs(" -F", out); break;
	case OPERANDS_HOST: fputs(" -x -a '(__fish_print_hostnames)' -d host", out); break;
	case OPERANDS_FILE_HOST: fputs(" -F -a '(__fish_print_hostnames)' -d host", out); break;
	case OPERANDS_PROGRAM: fputs(" -x -a '(__fish_complete_subcommand --fcs-skip=2)'", out); break;
	default: put_values(completion_operands(command), out);
	}
	fputc('\n', out);
}

void completion_fish(FILE *out)
{
	fputs("# made by `roci completion fish`\n"
	      "complete -c roci -f\n"
	      "complete -c roci -n __fish_use_subcommand -s h -l help -d 'show help'\n"
	      "complete -c roci -n __fish_use_subcommand -s V -l version -d 'show the version'\n",
	      out);
	for (size_t i = 0; commands[i]; i++) {
		const struct command *command = commands[i];
		fprintf(out, "complete -c roci -n __fish_use_subcommand -a %s -d ", command->name);
		put_quoted(command->summary, out);
		fputc('\n', out);
		put_operands(command, out);
		for (size_t k = 0; k < command->option_count; k++)
			put_option(command, &command->options[k], out);
	}
}
