/* SPDX-License-Identifier: BSD-2-Clause */
/* roci completion: prints a script that completes commands and options. The build installs one for each shell. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "completion.h"
#include "suggest.h"

static const char *const shells[] = {"bash", "zsh", "fish", NULL};
static void (*const writers[])(FILE *) = {completion_bash, completion_zsh, completion_fish};

static const struct option_row options[] = {OPTION_HELP_ROW};

const char *const *completion_operands(const struct command *command)
{
	return command->operand_words ? command->operand_words() : command->operand_values;
}

static int print(const struct command *self, const struct operands *operands)
{
	if (operands->count != 1)
		return complain(self, "name one shell; usage: roci completion %s", self->usage);
	const char *shell = operands->list[0];
	for (size_t i = 0; shells[i]; i++) {
		if (strcmp(shells[i], shell))
			continue;
		writers[i](stdout);
		return 0;
	}
	const char *meant = suggest(shell, shells);
	if (meant)
		return complain(self, "no completion for '%s'; did you mean '%s'?", shell, meant);
	return complain(self, "no completion for '%s'; choose bash, zsh or fish", shell);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct operands operands;
	int status;
	if (!options_parse(self, argc, argv, NULL, &operands, &status))
		return status;
	status = print(self, &operands);
	free(operands.list);
	return status;
}

const struct command completion_command = {
	.name = "completion",
	.summary = "print the completion script for a shell",
	.usage = "bash|zsh|fish",
	.examples = "  . <(roci completion bash)\n"
		    "  roci completion zsh > ~/.zfunc/_roci\n"
		    "  roci completion fish > ~/.config/fish/completions/roci.fish\n",
	.about = "`meson install` puts these scripts where the shells look for them.\n",
	.manual = "roci",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_CHOICE,
	.operand_values = shells,
	.run = run,
};
