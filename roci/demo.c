/* SPDX-License-Identifier: BSD-2-Clause */
/* roci demo: moves a file between two processes of this machine, and explains each step. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "demo_pair.h"
#include "demo_story.h"
#include "ladder_run.h"
#include "mover/mover.h"
#include "text.h"
#include "transfer.h"
#include "units.h"

#define MADE_BYTES  (16u << 20)
#define MADE_LINE   "Line %07u of a file that crosses from process to process by RDMA\n"
#define MADE        "lines.txt"
#define RECEIVED    "received"
#define TICKET      "ticket"
#define CAPTURE     "roci-demo.pcapng"
#define LARGE_BYTES (1ull << 30) /* warn that the capture of such a file is large */

struct demo_choices {
	const char *out, *ladder;
	unsigned mode;
};

static const struct option_row options[] = {
	{.letter = 'o',
	 .name = "out",
	 .argument = "DIR",
	 .group = "options",
	 .help = "write the copy and the capture to DIR",
	 .default_text = "a new folder",
	 .kind = OPTION_FOLDER,
	 .offset = offsetof(struct demo_choices, out)},
	{.name = "mode",
	 .argument = "MODE",
	 .group = "options",
	 .help = TRANSFER_MODE_HELP,
	 .default_text = "write",
	 .kind = OPTION_CHOICE,
	 .offset = offsetof(struct demo_choices, mode),
	 .values = transfer_modes},
	{.name = "ladder",
	 .argument = "FILE",
	 .group = "options",
	 .help = "draw both ends as a page: packets, posts, completions;\nsee `roci ladder`",
	 .kind = OPTION_FILE,
	 .offset = offsetof(struct demo_choices, ladder)},
	OPTION_HELP_ROW,
};

struct demo {
	const struct command *command;
	char dir[PATH_MAX], source[PATH_MAX], received[PATH_MAX], copy[PATH_MAX], capture[PATH_MAX];
	const char *ladder;   /* NULL: no picture is wanted */
	const char *argument; /* the source, as it stands on the sender's command line */
	bool made_dir;        /* `dir` did not exist before */
	uint64_t bytes;
};

static int cannot(const struct demo *demo, const char *what)
{
	complain(demo->command, "%s: %s", what, strerror(errno));
	return MOVER_LOCAL_IO;
}

/* A path in the demo's folder. */
static int place(const struct demo *demo, char path[PATH_MAX], const char *folder, const char *name)
{
	int len = snprintf(path, PATH_MAX, "%s/%s%s", demo->dir, folder, name);
	return len < PATH_MAX ? 0 : complain(demo->command, "%s/%s%s is too long for a path", demo->dir, folder, name);
}

/* Makes the folder of the demo, and in it the folder that gets the copy. */
static int make_folders(struct demo *demo, const char *out)
{
	const char *tmp = getenv("TMPDIR");
	char fresh[PATH_MAX];

	snprintf(fresh, sizeof(fresh), "%s/roci-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	demo->made_dir = out ? !mkdir(out, 0777) : mkdtemp(fresh) != NULL;
	if (!demo->made_dir && !(out && errno == EEXIST))
		return cannot(demo, out ? out : fresh);
	if (!realpath(out ? out : fresh, demo->dir))
		return cannot(demo, out ? out : fresh);
	if (place(demo, demo->received, RECEIVED, "") || place(demo, demo->capture, CAPTURE, ""))
		return EXIT_USAGE;
	if (!mkdir(demo->received, 0777))
		return 0;
	if (errno == EEXIST)
		return complain(demo->command, "%s exists from an earlier run; remove it, or choose another --out",
				demo->received);
	return cannot(demo, demo->received);
}

/* Makes a file of lines that are easy to find in the capture. */
static int make_file(struct demo *demo)
{
	if (place(demo, demo->source, MADE, ""))
		return EXIT_USAGE;
	FILE *file = fopen(demo->source, "we");
	if (!file)
		return cannot(demo, demo->source);
	for (unsigned line = 1; demo->bytes < MADE_BYTES && !ferror(file); line++) {
		int n = fprintf(file, MADE_LINE, line);
		demo->bytes += n > 0 ? (uint64_t)n : 0;
	}
	if (ferror(file) | fclose(file))
		return cannot(demo, demo->source);
	demo->argument = MADE;
	return 0;
}

static int take_file(struct demo *demo, const char *path)
{
	struct stat st;
	if (!realpath(path, demo->source) || stat(demo->source, &st))
		return cannot(demo, path);
	if (!S_ISREG(st.st_mode)) {
		complain(demo->command,
			 "%s is not a regular file; the demo moves one file (`roci send` moves folders, too)", path);
		return MOVER_LOCAL_IO;
	}
	demo->bytes = (uint64_t)st.st_size;
	demo->argument = demo->source;
	return 0;
}

/* Compares the copy with the file, byte by byte, and does not rely on what the two processes reported. */
static int compare(const struct demo *demo)
{
	static char a[1 << 16], b[sizeof(a)];
	FILE *one = fopen(demo->source, "re"), *other = fopen(demo->copy, "re");
	size_t n = 0;
	bool equal = one && other;

	while (equal && (n = fread(a, 1, sizeof(a), one)) > 0)
		equal = fread(b, 1, n, other) == n && !memcmp(a, b, n);
	equal = equal && !ferror(one) && fgetc(other) == EOF && !ferror(other);
	if (one)
		fclose(one);
	if (other)
		fclose(other);
	if (equal)
		return 0;
	complain(demo->command, "the copy %s differs from the file: %s", demo->copy,
		 one && other ? "their bytes are not equal" : strerror(errno));
	return MOVER_MISMATCH;
}

static void print_path(const char *before, const char *path, const char *after)
{
	fputs(before, stdout);
	text_print(stdout, path, strlen(path));
	fputs(after, stdout);
}

static void introduce(const struct demo *demo, const char *mode)
{
	char bytes[UNITS_CHARS];

	printf("This demo moves a file of %s from one process to another by RDMA. Both processes use roci0, an\n"
	       "RDMA adapter in software: no hardware, no kernel module, no root. The two commands, run in\n",
	       units_bytes(bytes, demo->bytes));
	print_path("", demo->dir, ":\n\n");
	printf("  $ roci recv --device embedded --bind 127.0.0.1 --port 0 --once --ticket-file ticket --dir received\n"
	       "  $ roci send --device embedded --no-encrypt --mode %s ",
	       mode);
	print_path("", demo->argument, " @ticket\n\n");
	if (demo->bytes >= LARGE_BYTES)
		puts("(The capture holds all of the file, so it becomes larger than the file.)\n");
	fflush(stdout);
}

/* Of a folder that existed before, only what the demo has made there. */
static void propose_to_remove(const struct demo *demo)
{
	print_path("Clean up:         rm -r ", demo->made_dir ? demo->dir : demo->received, "");
	if (!demo->made_dir)
		print_path(" ", demo->capture, "");
	if (!demo->made_dir && demo->argument != demo->source)
		print_path(" ", demo->source, "");
	putchar('\n');
}

static void conclude(const struct demo *demo, const struct demo_pair *pair)
{
	char moved[UNITS_CHARS], rate[UNITS_CHARS], bits[UNITS_CHARS];
	double bytes = demo_pair_number(pair, DEMO_SENDER, "ended", "bytes_moved");
	double seconds = demo_pair_number(pair, DEMO_SENDER, "ended", "seconds");
	double speed = seconds > 0 ? bytes / seconds : 0;

	printf("Moved     %s in %.2f s: %s (%s), with the capture and the disk\n", units_bytes(moved, (uint64_t)bytes),
	       seconds, units_rate(rate, speed), units_bits(bits, speed));
	printf("Verified  all %llu bytes of the copy are equal\n", (unsigned long long)demo->bytes);
	print_path("Copy      ", demo->copy, "\n");
	print_path("Capture   ", demo->capture, demo->ladder ? " (of both ends)\n" : " (the sender's packets)\n");
	if (demo->ladder)
		print_path("Ladder    ", demo->ladder, " (open it in a browser)\n");
	putchar('\n');
	print_path("See the packets:  tshark -r ", demo->capture, " | head -40\n");
	print_path("             or:  wireshark ", demo->capture, "\n");
	puts("One WRITE alone:  `roci ping --loopback --op write --steps -c 1` tells its steps");
	puts("Two machines:     `roci recv` on one, `roci send FILE HOST` on the other");
	propose_to_remove(demo);
}

static int draw(const struct demo *demo)
{
	const struct ladder_job job = {
		.command = demo->command, .title = "roci demo", .name = demo->capture, .out = demo->ladder};

	return ladder_draw_file(&job, demo->capture);
}

static int move(struct demo *demo, const char *mode)
{
	static const char *const receiver[] = {"roci",   "recv",      "--json",        "--device", "embedded",
					       "--bind", "127.0.0.1", "--port",        "0",        "--once",
					       "--dir",  RECEIVED,    "--ticket-file", TICKET,     NULL};
	const char *const sender[] = {"roci",   "send", "--json", "--device",     "embedded", "--no-encrypt",
				      "--mode", mode,   "--",     demo->argument, "@" TICKET, NULL};
	struct demo_pair *pair = demo_pair_create();
	int status;

	if (!pair)
		return cannot(demo, "cannot start two processes");
	introduce(demo, mode);
	status = demo_pair_run(pair, demo->command, demo->dir, receiver, sender, CAPTURE, demo->ladder != NULL);
	if (!status)
		demo_story_print(pair, mode);
	if (!status)
		status = compare(demo);
	if (!status && demo->ladder)
		status = draw(demo);
	if (!status)
		conclude(demo, pair);
	demo_pair_destroy(pair);
	return status;
}

static int demonstrate(struct demo *demo, const struct demo_choices *choices, const struct operands *operands)
{
	int status = 0;

	if (operands->count > 1)
		return complain(demo->command, "give one file at most; usage: roci demo %s", demo->command->usage);
	if (operands->count)
		status = take_file(demo, operands->list[0]);
	if (!status)
		status = make_folders(demo, choices->out);
	if (!status && !operands->count)
		status = make_file(demo);
	if (!status)
		status = place(demo, demo->copy, RECEIVED "/", basename(demo->source));
	return status ? status : move(demo, transfer_modes[choices->mode]);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct demo_choices choices = {0};
	struct demo demo = {.command = self};
	struct operands operands;
	int status;

	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	demo.ladder = choices.ladder;
	status = choices.ladder ? ladder_check_out(self, choices.ladder) : 0;
	if (!status)
		status = demonstrate(&demo, &choices, &operands);
	free(operands.list);
	return status;
}

const struct command demo_command = {
	.name = "demo",
	.summary = "show step by step how RDMA moves a file, on this machine",
	.usage = "[OPTION]... [FILE]",
	.examples = "  roci demo                     move a file that the demo makes\n"
		    "  roci demo film.mkv            move your file\n"
		    "  roci demo --ladder demo.html  and draw every packet, post and completion of both ends\n"
		    "  roci demo --mode read         the receiver reads; by default, the sender writes\n",
	.about = "The demo runs `roci recv` and `roci send`, explains each step of the transfer, compares the copy "
		 "with\n"
		 "the file, and leaves a capture of the sender's packets for Wireshark.\n",
	.manual = "roci-demo",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_FILE,
	.run = run,
};
