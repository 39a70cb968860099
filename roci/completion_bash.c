/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "command.h"
#include "completion.h"

static void put_words(const char *const *words, FILE *out)
{
	for (size_t i = 0; words[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", words[i]);
}

/* The case branch that completes the argument of an option. */
static void put_argument(const struct option_row *row, FILE *out)
{
	fputs("\t\t", out);
	if (row->letter)
		fprintf(out, "-%c|", row->letter);
	fprintf(out, "--%s) ", row->name);
	switch (row->kind) {
	case OPTION_FILE: fputs("_roci_files -f", out); break;
	case OPTION_FOLDER: fputs("_roci_files -d", out); break;
	case OPTION_DEVICE:
		fputs("_roci_words \"auto embedded $(command ls /sys/class/infiniband 2>/dev/null)\"", out);
		break;
	case OPTION_CHOICE:
		fputs("_roci_words '", out);
		put_words(row->values, out);
		fputc('\'', out);
		break;
	default: fputc(':', out);
	}
	fputs("; return ;;\n", out);
}

static void put_operands(const struct command *command, FILE *out)
{
	switch (command->operands) {
	case OPERANDS_FILE: fputs("_roci_files -f", out); break;
	case OPERANDS_HOST: fputs("_roci_words \"$(compgen -A hostname -- \"$cur\")\"", out); break;
	case OPERANDS_FILE_HOST: fputs("_roci_files -f -A hostname", out); break;
	case OPERANDS_PROGRAM: fputs("_roci_words \"$(compgen -c -- \"$cur\")\"", out); break;
	case OPERANDS_CHOICE:
		fputs("_roci_words '", out);
		put_words(completion_operands(command), out);
		fputc('\'', out);
		break;
	default: fputc(':', out);
	}
}

static void put_command(const struct command *command, FILE *out)
{
	fprintf(out, "\t%s)\n\t\tcase $option in\n", command->name);
	for (size_t i = 0; i < command->option_count; i++) {
		if (command->options[i].argument)
			put_argument(&command->options[i], out);
	}
	fputs("\t\tesac\n\t\tif [[ $cur == -* ]]; then\n\t\t\t_roci_words '", out);
	for (size_t i = 0; i < command->option_count; i++)
		fprintf(out, "%s--%s", i ? " " : "", command->options[i].name);
	fputs("'\n\t\telse\n\t\t\t", out);
	put_operands(command, out);
	fputs("\n\t\tfi\n\t\t;;\n", out);
}

/* _command_offset of bash-completion completes the program of `roci run` as if it were typed alone. */
static const char head[] = "# bash completion for roci; made by `roci completion bash`\n"
			   "_roci_words()\n{\n\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n}\n\n"
			   "_roci_files()\n{\n"
			   "\tcompopt -o filenames 2>/dev/null\n"
			   "\tmapfile -t COMPREPLY < <([[ $# == 3 ]] && compgen \"$2\" \"$3\" -- \"$cur\"\n"
			   "\t\tcompgen \"$1\" -- \"$cur\")\n}\n\n"
			   "_roci()\n{\n"
			   "\tlocal cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} i\n"
			   "\tCOMPREPLY=()\n"
			   "\tif [[ $cur == = ]]; then\n\t\tcur=\n"
			   "\telif [[ $option == = ]]; then\n\t\toption=${COMP_WORDS[COMP_CWORD-2]}\n\tfi\n"
			   "\tif ((COMP_CWORD == 1)); then\n\t\t_roci_words '";

static const char run_part[] =
	"'\n\t\treturn\n\tfi\n"
	"\tif [[ ${COMP_WORDS[1]} == run ]]; then\n"
	"\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	"\t\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t\t--) ((i++)); break ;;\n"
	"\t\t\t--*) [[ ${COMP_WORDS[i+1]} == = ]] && ((i++)); ((i++)) ;;\n"
	"\t\t\t*) break ;;\n"
	"\t\t\tesac\n"
	"\t\tdone\n"
	"\t\tif ((i < COMP_CWORD)); then\n"
	"\t\t\tif declare -F _command_offset >/dev/null; then _command_offset \"$i\"; else _roci_files -f; fi\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\tfi\n"
	"\tcase ${COMP_WORDS[1]} in\n";

void completion_bash(FILE *out)
{
	fputs(head, out);
	for (size_t i = 0; commands[i]; i++)
		fprintf(out, "%s ", commands[i]->name);
	fputs("--help --version", out);
	fputs(run_part, out);
	for (size_t i = 0; commands[i]; i++)
		put_command(commands[i], out);
	fputs("\tesac\n}\ncomplete -F _roci roci\n", out);
}
