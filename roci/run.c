/* roci run: another program, with our libraries in front of the system's. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "libdir.h"

static void help(void)
{
	puts("examples:\n"
	     "  roci run -- ibv_devices\n"
	     "  roci run -- ib_write_bw                       server\n"
	     "  roci run -- ib_write_bw 192.0.2.1             client; also on the same host\n"
	     "  roci run -- python3 my_pyverbs_test.py\n"
	     "  roci run --capture ping.pcapng -- ibv_rc_pingpong -g 0\n"
	     "  roci run --fault loss=0.01,reorder=0.05,seed=7 -- ib_send_bw 192.0.2.1\n\n"
	     "usage: roci run [OPTIONS] [--] PROGRAM [ARGUMENTS]\n\n"
	     "options:\n"
	     "  --capture FILE   write every packet of PROGRAM to FILE (pcapng), as ROCI_CAPTURE=FILE does\n"
	     "  --fault SPEC     mistreat its packets, as ROCI_FAULT=SPEC does: a list of loss=P, dup=P, reorder=P,\n"
	     "                   corrupt=P (probabilities) and seed=N\n\n"
	     "Runs PROGRAM so that it sees the RDMA device roci0, a RoCEv2 device in user space, in place of the\n"
	     "machine's own devices. Needs no root and no kernel module. It works by LD_PRELOAD, and so for programs\n"
	     "that load libibverbs.so.1; a setuid program or a statically linked one cannot be reached.\n\n"
	     "exit status: that of PROGRAM; 126 if it cannot be executed, 127 if it is not found, 2 for wrong usage\n"
	     "or when Rocinante's own libraries are missing.");
}

/* Sets `name` to "first:second" (or what of the two there is). */
static int set_joined(const char *name, const char *first, const char *second)
{
	char *value;
	if (!first || !*first || !second || !*second)
		return setenv(name, first && *first ? first : second, 1);
	if (asprintf(&value, "%s:%s", first, second) < 0)
		return -1;
	int result = setenv(name, value, 1);
	free(value);
	return result;
}

/* What was preloaded before stays in front: sanitizers insist on being first. */
static int prepare_environment(void)
{
	struct libdir dirs;
	if (libdir_find(&dirs)) {
		fprintf(stderr,
			"roci run: libibverbs.so.1 of Rocinante is not where it should be (%s); is the installation "
			"whole?\n",
			dirs.expected);
		return -1;
	}
	if (strpbrk(dirs.preload, " ;") || strchr(dirs.verbs, ':')) {
		fprintf(stderr,
			"roci run: the loader cannot preload from a path with a space, colon or semicolon: %s\n",
			dirs.verbs);
		return -1;
	}
	if (set_joined("LD_PRELOAD", getenv("LD_PRELOAD"), dirs.preload) ||
	    set_joined("LD_LIBRARY_PATH", dirs.search, getenv("LD_LIBRARY_PATH"))) {
		fprintf(stderr, "roci run: out of memory\n");
		return -1;
	}
	return 0;
}

/* Finds what execvp() would run; false where there is nothing. */
static bool locate(const char *program, char path[PATH_MAX])
{
	if (strchr(program, '/'))
		return (size_t)snprintf(path, PATH_MAX, "%s", program) < PATH_MAX;
	const char *dirs = getenv("PATH");
	for (const char *p = dirs ? dirs : "/bin:/usr/bin"; *p;) {
		size_t len = strcspn(p, ":");
		int n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, p, len ? "/" : "", program);
		if (n < PATH_MAX && !access(path, X_OK))
			return true;
		p += len + (p[len] == ':');
	}
	return false;
}

/* The loader drops LD_PRELOAD for a program that gains rights; without a word, so say it here. */
static void warn_if_privileged(const char *program)
{
	char path[PATH_MAX];
	struct stat st;
	if (!locate(program, path) || stat(path, &st) || !(st.st_mode & (S_ISUID | S_ISGID)))
		return;
	if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) || ((st.st_mode & S_ISGID) && st.st_gid != getegid()))
		fprintf(stderr,
			"roci run: %s is setuid or setgid: the loader will not preload into it, so it will not see "
			"roci0\n",
			path);
}

/* Reads options up to the program's name. Returns its index, 0 where there was nothing to run, -1 after a complaint. */
static int parse_options(int argc, char **argv)
{
	static const struct {
		const char *option, *variable;
	} options[] = {{"--capture", "ROCI_CAPTURE"}, {"--fault", "ROCI_FAULT"}};
	int i = 1;
	while (i < argc && argv[i][0] == '-') {
		if (!strcmp(argv[i], "--"))
			return i + 1 < argc ? i + 1 : 0;
		size_t k = 0;
		while (k < sizeof(options) / sizeof(options[0]) && strcmp(argv[i], options[k].option))
			k++;
		if (k == sizeof(options) / sizeof(options[0])) {
			fprintf(stderr, "roci run: no option '%s'; `roci run --help` lists them\n", argv[i]);
			return -1;
		}
		if (i + 1 >= argc) {
			fprintf(stderr, "roci run: %s what? `roci run --help` tells\n", argv[i]);
			return -1;
		}
		setenv(options[k].variable, argv[i + 1], 1);
		i += 2;
	}
	return i < argc ? i : 0;
}

int command_run(int argc, char **argv)
{
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		help();
		return 0;
	}
	int first = parse_options(argc, argv);
	if (first <= 0) {
		if (!first)
			fprintf(stderr,
				"roci run: which program? usage: roci run [OPTIONS] [--] PROGRAM [ARGUMENTS]\n");
		return EXIT_USAGE;
	}
	const char *program = argv[first];
	warn_if_privileged(program);
	if (prepare_environment())
		return EXIT_USAGE;
	execvp(program, argv + first);
	int error = errno;
	fprintf(stderr, "roci run: %s: %s\n", program, error == ENOENT ? "program not found" : strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
