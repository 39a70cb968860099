/* roci: the command line. A table; each subcommand lives in its own file. */
#include <stdio.h>
#include <string.h>

#include "command.h"

static const struct command commands[] = {
	{"run", "run a program with the device roci0", command_run},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void help(FILE *out)
{
	fputs("RDMA anywhere.\n\n"
	      "examples:\n"
	      "  roci run -- ibv_devinfo               what the software device looks like\n"
	      "  roci run -- ib_write_bw               a server that waits for a client\n"
	      "  roci run -- ib_write_bw 192.0.2.1     its client\n\n"
	      "usage: roci COMMAND [ARGUMENTS]\n\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\n`roci COMMAND --help` tells more. `roci --version` tells the version.\n", out);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	const char *name = argv[1];
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		help(stdout);
		return 0;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("roci " ROCI_VERSION);
		return 0;
	}
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (!strcmp(name, commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "roci: no command '%s'; `roci --help` lists them\n", name);
	return EXIT_USAGE;
}
