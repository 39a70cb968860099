/* SPDX-License-Identifier: BSD-2-Clause */
/* roci: the command line. This file holds the table of commands; each command has a file of its own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "command.h"
#include "suggest.h"

const struct command *const commands[] = {
	&demo_command,    &send_command,   &recv_command,  &ping_command,       &perf_command,
	&serve_command,   &run_command,    &dump_command,  &ladder_command,     &stats_command,
	&explain_command, &doctor_command, &setup_command, &completion_command, NULL,
};

char **command_line;

static int unknown_command(const char *name)
{
	const char *names[sizeof(commands) / sizeof(commands[0])], *meant;
	size_t count = 0;
	for (; commands[count]; count++)
		names[count] = commands[count]->name;
	names[count] = NULL;
	if (*name == '-')
		return complain(NULL, "unknown option '%s'; `roci --help` shows the usage", name);
	meant = suggest(name, names);
	if (meant)
		return complain(NULL, "unknown command '%s'; did you mean `roci %s`?", name, meant);
	return complain(NULL, "unknown command '%s'; `roci --help` lists the commands", name);
}

static const struct command *find(const char *name)
{
	for (const struct command *const *c = commands; *c; c++) {
		if (!strcmp((*c)->name, name))
			return *c;
	}
	return NULL;
}

/* The name that ps, top and `roci stats` show. Where this program has executed /proc/self/exe, it would be "exe". */
static void set_name(const struct command *command)
{
	char name[16]; /* what PR_SET_NAME takes */

	snprintf(name, sizeof(name), "roci %s", command->name);
	prctl(PR_SET_NAME, name);
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		help_all(stderr);
		return EXIT_USAGE;
	}
	const char *name = argv[1];
	bool help = !strcmp(name, "help");
	if (is_help(name) || (help && (argc == 2 || !strcmp(argv[2], "help") || is_help(argv[2])))) {
		help_all(stdout);
		return 0;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("roci " ROCI_VERSION);
		return 0;
	}
	const struct command *command = find(help ? argv[2] : name);
	if (!command)
		return unknown_command(help ? argv[2] : name);
	if (help) {
		help_command(command, stdout);
		return 0;
	}
	set_name(command);
	return command->run(command, argc - 1, argv + 1);
}

/* Whether standard output is a pipe that nobody reads any more, as behind `head`: that is no failure. */
static bool reader_has_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) == 1 && out.revents & POLLERR;
}

/* What a command has printed must have arrived: "figures >FILE" on a full disk has failed, whatever the figures are. */
static int check_output(int status)
{
	int err = fflush(stdout) ? errno : 0;

	if ((!err && !ferror(stdout)) || reader_has_gone())
		return status;
	complain(NULL, "not all of the output could be written%s%s", err ? ": " : "", err ? strerror(err) : "");
	return status ? status : EXIT_OUTPUT;
}

/* A closed standard descriptor would become the first file that a command opens, and what is meant for the one would go
 * to the other: messages into a received file, or a file instead of standard input. So it gets /dev/null, opened for
 * what nobody does with it: reading and writing fail as before, and a program that is executed has it closed. */
static void fill_standard_descriptors(void)
{
	static const int other_ways[] = {O_WRONLY, O_RDONLY, O_RDONLY};

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", other_ways[fd] | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	fill_standard_descriptors();
	command_line = argv;
	return check_output(run(argc, argv));
}
