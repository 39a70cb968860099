/* SPDX-License-Identifier: BSD-2-Clause */
#include "command.h"
#include "completion.h"

/* Prints text for '...[here]...' in a specification of _arguments. Line breaks become spaces. */
static void put_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputc(' ', out);
		else if (*text == '\'')
			fputs("'\\''", out);
		else if (*text == '[' || *text == ']' || *text == ':' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void put_choices(const char *const *values, FILE *out)
{
	fputc('(', out);
	for (size_t i = 0; values[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", values[i]);
	fputc(')', out);
}

static void put_action(const struct option_row *row, FILE *out)
{
	switch (row->kind) {
	case OPTION_FILE: fputs("_files", out); break;
	case OPTION_FOLDER: fputs("_files -/", out); break;
	case OPTION_DEVICE: fputs("_roci_devices", out); break;
	case OPTION_CHOICE: put_choices(row->values, out); break;
	default: fputc(' ', out);
	}
}

static void put_option(const struct option_row *row, FILE *out)
{
	fputs("\t\t", out);
	if (row->letter)
		fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", row->letter, row->name, row->letter,
			row->argument ? "+" : "", row->name, row->argument ? "=" : "");
	else
		fprintf(out, "'--%s%s[", row->name, row->argument ? "=" : "");
	put_text(row->help, out);
	fputc(']', out);
	if (row->argument) {
		fputc(':', out);
		put_text(row->argument, out);
		fputc(':', out);
		put_action(row, out);
	}
	fputs("' \\\n", out);
}

static void put_operands(const struct command *command, FILE *out)
{
	switch (command->operands) {
	case OPERANDS_FILE: fputs("'*:file:_files'", out); break;
	case OPERANDS_HOST: fputs("'1:host:_hosts'", out); break;
	case OPERANDS_FILE_HOST: fputs("'*: :_alternative \"files:file:_files\" \"hosts:host:_hosts\"'", out); break;
	case OPERANDS_PROGRAM: fputs("'(-)1:program:_command_names -e' '*::arguments:_normal'", out); break;
	case OPERANDS_CHOICE:
		fputs("'1:argument:", out);
		put_choices(completion_operands(command), out);
		fputc('\'', out);
		break;
	default: fputs("'*:: :'", out);
	}
}

static void put_command(const struct command *command, FILE *out)
{
	fprintf(out, "\t(%s)\n\t\t_arguments -s -S \\\n", command->name);
	for (size_t i = 0; i < command->option_count; i++)
		put_option(&command->options[i], out);
	fputs("\t\t", out);
	put_operands(command, out);
	fputs("\n\t\t;;\n", out);
}

void completion_zsh(FILE *out)
{
	fputs("#compdef roci\n# made by `roci completion zsh`\n\n"
	      "_roci_devices()\n{\n"
	      "\tlocal -a devices=(auto embedded /sys/class/infiniband/*(N:t))\n"
	      "\tcompadd -a devices\n}\n\n"
	      "_roci()\n{\n"
	      "\tlocal curcontext=$curcontext state line\n\ttypeset -A opt_args\n\tlocal -a roci_commands=(\n",
	      out);
	for (size_t i = 0; commands[i]; i++) {
		fprintf(out, "\t\t'%s:", commands[i]->name);
		put_text(commands[i]->summary, out);
		fputs("'\n", out);
	}
	fputs("\t)\n"
	      "\t_arguments -C '(- *)'{-h,--help}'[show help]' '(- *)'{-V,--version}'[show the version]' \\\n"
	      "\t\t'1:command:->command' '*::argument:->argument'\n"
	      "\tif [[ $state == command ]]; then\n"
	      "\t\t_describe command roci_commands\n\t\treturn\n\tfi\n"
	      "\t[[ $state == argument ]] || return\n"
	      "\tcase $words[1] in\n",
	      out);
	for (size_t i = 0; commands[i]; i++)
		put_command(commands[i], out);
	fputs("\tesac\n}\n\n_roci \"$@\"\n", out);
}
