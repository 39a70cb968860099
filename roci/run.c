/* SPDX-License-Identifier: BSD-2-Clause */
/* roci run: runs another program with our libraries in front of the system's. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture_to.h"
#include "command.h"
#include "device/fault_plan.h"
#include "device/pcapng.h"
#include "preload.h"

/* Finds the file that execvp() would run. Returns false if there is none. */
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

/* True: an ELF program that asks for no loader. Anything else, a script say, may run one that does. */
static bool is_static(const char *path)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	bool elf, loader = false;
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	elf = fread(&head, sizeof(head), 1, file) == 1 && !memcmp(head.e_ident, ELFMAG, SELFMAG) &&
	      head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof(segment) &&
	      !fseek(file, (long)head.e_phoff, SEEK_SET);
	for (unsigned i = 0; elf && i < head.e_phnum; i++) {
		elf = fread(&segment, sizeof(segment), 1, file) == 1;
		loader = loader || segment.p_type == PT_INTERP;
	}
	fclose(file);
	return elf && !loader;
}

/* Nothing is preloaded into a program without a loader, and the loader silently ignores LD_PRELOAD for a program that
 * gains privileges, so warn here. */
static void warn_if_out_of_reach(const char *program)
{
	char path[PATH_MAX];
	struct stat st;
	if (!locate(program, path) || stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	if (is_static(path))
		fprintf(stderr,
			"roci run: %s is linked statically: nothing can be preloaded into it, so it will not see "
			"roci0\n",
			path);
	if (!(st.st_mode & (S_ISUID | S_ISGID)))
		return;
	if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) || ((st.st_mode & S_ISGID) && st.st_gid != getegid()))
		fprintf(stderr,
			"roci run: %s is setuid or setgid: the loader preloads nothing into it, so it will not see "
			"roci0\n",
			path);
}

static const char *const path_names[] = {"local", "wire", NULL};

#define NO_PATH_GIVEN UINT_MAX

struct run_choices {
	const char *capture, *fault;
	unsigned path; /* of path_names */
	bool why;
};

static const struct option_row options[] = {
	{.name = "capture",
	 .argument = "FILE",
	 .group = "options",
	 .help = "write the packets of PROGRAM to FILE (pcapng), at its end\nif it is a capture already; like "
		 "ROCI_CAPTURE=FILE.\n-: to standard output, and what PROGRAM prints to\nstandard error",
	 .kind = OPTION_FILE,
	 .offset = offsetof(struct run_choices, capture)},
	{.name = "fault",
	 .argument = "SPEC",
	 .group = "options",
	 .help = "lose, repeat, reorder, corrupt or delay packets on purpose,\nlike ROCI_FAULT=SPEC. "
		 "SPEC is a list of loss=P, dup=P,\nreorder=P, corrupt=P (P: from 0 to 1), delay=TIME,\njitter=TIME "
		 "(such "
		 "as 20ms) and seed=N",
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct run_choices, fault)},
	{.name = "path",
	 .argument = "PATH",
	 .group = "options",
	 .help = "local (default): memory to memory where the peer is a\nprocess of this user and host; wire: UDP "
		 "packets; "
		 "like\nROCI_PATH=PATH",
	 .kind = OPTION_CHOICE,
	 .values = path_names,
	 .offset = offsetof(struct run_choices, path)},
	{.name = "why",
	 .group = "options",
	 .help = "say why a call of verbs or rdma_cm is refused, and why a\nrequest fails: the check, the field, its "
		 "value, what is\n"
		 "allowed; like ROCI_WHY=1",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct run_choices, why)},
	OPTION_HELP_ROW,
};

int capture_to_fd(int fd)
{
	char path[64];
	int copy, flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) { /* a closed one is, too: see main() */
		errno = EBADF;
		return -1;
	}
	copy = fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
	if (copy < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	return setenv("ROCI_CAPTURE", path, 1);
}

/* Also a program that is there has ENOENT, where what is to run it is not. */
static int cannot_execute(const struct command *self, const char *program, int err)
{
	char path[PATH_MAX];

	if (err == ENOENT && locate(program, path) && !access(path, F_OK)) {
		complain(self, "%s: the interpreter or loader that it names is not there; `file %s` shows the name",
			 program, path);
		return EXIT_CANNOT_RUN;
	}
	complain(self, "%s: %s", program, err == ENOENT ? "program not found" : strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

int execute_on_roci0(const struct command *self, char **argv)
{
	warn_if_out_of_reach(argv[0]);
	if (preload_environment(self))
		return EXIT_USAGE;
	execvp(argv[0], argv);
	return cannot_execute(self, argv[0], errno);
}

/* Opens the capture as the device will. A new file is removed again: the program may never open the device. */
static int check_capture(const struct command *self, const char *path)
{
	static struct roci_pcapng file;
	char name[PATH_MAX];
	struct stat st;
	bool there;
	int err = roci_pcapng_name(path, name, sizeof(name));
	if (err)
		return complain(self, "--capture %s: %s", path, strerror(-err));
	there = !stat(name, &st) && st.st_size;
	err = roci_pcapng_open(&file, name);
	if (err == -EEXIST)
		return complain(self, "--capture %s: the file is not a capture of Rocinante, and is left as it is",
				name);
	if (err)
		return complain(self, "--capture %s: %s", name,
				err == -EBUSY ? "another process has locked the file; it is stopped or hangs"
					      : strerror(-err));
	roci_pcapng_close(&file);
	if (there)
		fprintf(stderr, "roci run: %s is a capture already; packets are added at its end\n", name);
	else
		unlink(name);
	return 0;
}

static int capture_to_stdout(const struct command *self)
{
	if (isatty(STDOUT_FILENO))
		return complain(
			self, "--capture -: standard output is a terminal; try `roci run --capture - -- PROGRAM | roci "
			      "dump -`");
	if (capture_to_fd(STDOUT_FILENO))
		return complain(self, "--capture -: %s", strerror(errno));
	return 0;
}

static int check_choices(const struct command *self, const struct run_choices *choices)
{
	struct roci_fault_plan plan;
	char why[160];
	if (choices->fault && roci_fault_parse(choices->fault, &plan, why, sizeof(why)))
		return complain(self, "--fault: %s", why);
	if (!choices->capture)
		return 0;
	return strcmp(choices->capture, "-") ? check_capture(self, choices->capture) : capture_to_stdout(self);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct run_choices choices = {.path = NO_PATH_GIVEN};
	struct operands operands;
	int status;
	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	if (choices.capture)
		setenv("ROCI_CAPTURE", choices.capture, 1);
	if (choices.fault)
		setenv("ROCI_FAULT", choices.fault, 1);
	if (choices.path != NO_PATH_GIVEN)
		setenv("ROCI_PATH", path_names[choices.path], 1);
	if (choices.why)
		setenv("ROCI_WHY", "1", 1);
	status = check_choices(self, &choices);
	if (!status && operands.count)
		status = execute_on_roci0(self, operands.list);
	else if (!status)
		status = complain(self, "no program is given; usage: roci run %s", self->usage);
	free(operands.list);
	return status;
}

const struct command run_command = {
	.name = "run",
	.summary = "run an RDMA program on the software device roci0",
	.usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
	.examples = "  roci run -- ibv_devices\n"
		    "  roci run -- ib_write_bw                       the server\n"
		    "  roci run -- ib_write_bw 192.0.2.1             its client, here or on another machine\n"
		    "  roci run -- python3 my_pyverbs_test.py\n"
		    "  roci run --capture ping.pcapng -- ibv_rc_pingpong -g 0\n"
		    "  roci run --capture - -- ./my_program | roci dump -\n"
		    "  roci run --why -- ./my_program                says which check refused a call, and its value\n"
		    "  roci run --fault loss=0.01,reorder=0.05,seed=7 -- ib_send_bw 192.0.2.1\n",
	.about =
		"PROGRAM sees the RDMA device roci0 instead of the machine's own devices. roci0 is a RoCEv2 device in\n"
		"user space; it needs no root and no kernel module. roci uses LD_PRELOAD, so PROGRAM must load\n"
		"libibverbs.so.1: setuid programs and statically linked programs cannot use roci0.\n\n"
		"exit status: that of PROGRAM; 126 if it cannot be executed, 127 if it is not found, 2 if an option\n"
		"is wrong, the capture cannot be written, or Rocinante's libraries are missing.\n",
	.manual = "roci-run",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_PROGRAM,
	.run = run,
};
