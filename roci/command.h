/* What a subcommand is: a row in the table of main.c, and a file of its own. */
#ifndef ROCI_COMMAND_H
#define ROCI_COMMAND_H

struct command {
	const char *name;
	const char *summary; /* one line */
	/* argv[0] is the subcommand's name. Returns the exit status. */
	int (*run)(int argc, char **argv);
};

/* Exit statuses beside the program's own; 126 and 127 as shells have them. */
enum { EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

int command_run(int argc, char **argv);

#endif
