/* SPDX-License-Identifier: BSD-2-Clause */
/* roci ladder: draws a capture, or the run of a program, as a ladder. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "device/fault_plan.h"
#include "ladder_run.h"

#define DEFAULT_OUT "ladder.html"

struct ladder_choices {
	const char *out, *fault;
	uint64_t max_packets;
	bool svg, text;
};

#define OFFSET(member) offsetof(struct ladder_choices, member)

static const struct option_row options[] = {
	{.letter = 'o',
	 .name = "out",
	 .argument = "FILE",
	 .group = "options",
	 .help = "write the picture to FILE; `-` is standard output, which is\nthe default of --text and --svg (what a "
		 "PROGRAM prints\n"
		 "then goes to standard error). A picture that is there is\nreplaced, any other file is not",
	 .default_text = DEFAULT_OUT,
	 .kind = OPTION_FILE,
	 .offset = OFFSET(out)},
	{.name = "text",
	 .group = "options",
	 .help = "draw with characters, for a terminal",
	 .kind = OPTION_FLAG,
	 .offset = OFFSET(text)},
	{.name = "svg",
	 .group = "options",
	 .help = "draw a still picture (SVG), for a document; so does a\nFILE that ends with .svg",
	 .kind = OPTION_FLAG,
	 .offset = OFFSET(svg)},
	{.name = "fault",
	 .argument = "SPEC",
	 .group = "options",
	 .help = "with a PROGRAM: lose, repeat, reorder, corrupt or delay\npackets on purpose, as `roci run --fault` "
		 "does",
	 .kind = OPTION_TEXT,
	 .offset = OFFSET(fault)},
	{.name = "max-packets",
	 .argument = "N",
	 .group = "options",
	 .help = "leave out what follows the first N packets",
	 .default_text = "200000",
	 .kind = OPTION_NUMBER,
	 .offset = OFFSET(max_packets),
	 .min = 1,
	 .max = 10000000},
	OPTION_HELP_ROW,
};

/* ---- of a capture ---- */

static int draw_capture(const struct command *self, struct ladder_job *job, const char *path)
{
	bool from_pipe = !strcmp(path, "-");
	FILE *capture;
	int status;

	if (from_pipe && isatty(STDIN_FILENO))
		return complain(self, "'-' reads a capture from a pipe, and the terminal is none; try `tcpdump -w - "
				      "udp port 4791 | roci "
				      "ladder -`");
	capture = from_pipe ? stdin : fopen(path, "re");
	if (!capture)
		return complain(self, "%s: %s%s", path, strerror(errno),
				access(path, X_OK) && strchr(path, '.') ? ""
									: "; to run a program, write `--` before it");
	job->name = from_pipe ? "standard input" : path;
	job->title = strrchr(job->name, '/') ? strrchr(job->name, '/') + 1 : job->name;
	status = ladder_draw(job, capture);
	if (!from_pipe)
		fclose(capture);
	if (!status)
		ladder_tell(job);
	return status;
}

static int check(const struct command *self, const struct ladder_choices *choices, const struct operands *operands,
		 bool program)
{
	struct roci_fault_plan plan;
	char why[160];

	if (!operands->count)
		return complain(self, "no capture and no program is given; usage: roci ladder %s", self->usage);
	if (!program && operands->count > 1)
		return complain(self, "give one capture at a time; to run a program, write `--` before it");
	if (choices->svg && choices->text)
		return complain(self, "--svg or --text: which one?");
	if (choices->fault && !program)
		return complain(self, "--fault is for a program that runs; this is a capture of one that has run");
	if (choices->fault && roci_fault_parse(choices->fault, &plan, why, sizeof(why)))
		return complain(self, "--fault: %s", why);
	return ladder_check_out(self, choices->out);
}

/* Whether "--" stands before the operands. */
static bool has_dashes(int argc, char **argv, const struct operands *operands)
{
	for (int i = 1; operands->count && i < argc && argv[i] != operands->list[0]; i++)
		if (!strcmp(argv[i], "--"))
			return true;
	return false;
}

/* A browser takes a file of that name as a still picture, whatever is in it. */
static bool names_svg(const char *path)
{
	size_t len = path ? strlen(path) : 0;

	return len >= 4 && !strcmp(path + len - 4, ".svg");
}

static int run(const struct command *self, int argc, char **argv)
{
	struct ladder_choices choices = {.max_packets = LADDER_MAX_PACKETS};
	struct operands operands;
	bool program;
	int status;

	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	program = has_dashes(argc, argv, &operands);
	if (!choices.out && !choices.svg && !choices.text)
		choices.out = DEFAULT_OUT;
	choices.svg = choices.svg || (!choices.text && names_svg(choices.out));
	status = check(self, &choices, &operands, program);
	if (!status) {
		struct ladder_job job = {.command = self,
					 .out = choices.out,
					 .format = choices.svg    ? LADDER_SVG
						   : choices.text ? LADDER_TEXT
								  : LADDER_HTML,
					 .max_packets = choices.max_packets};

		status = program ? ladder_draw_program(&job, operands.list, true, choices.fault)
				 : draw_capture(self, &job, operands.list[0]);
	}
	free(operands.list);
	return status;
}

const struct command ladder_command = {
	.name = "ladder",
	.summary = "draw packets, posts and completions between two ends",
	.usage = "[OPTION]... FILE|-\n       roci ladder [OPTION]... -- PROGRAM [ARGUMENT]...",
	.examples = "  roci ladder -o ping.html -- roci ping --loopback -c 3\n"
		    "  roci run --capture ping.pcapng -- ibv_rc_pingpong -g 0\n"
		    "  roci ladder -o ping.html ping.pcapng        then open ping.html in a browser\n"
		    "  roci ladder --text ping.pcapng | less -R    in a terminal\n"
		    "  roci ladder --fault loss=0.05 -- ./my_program\n"
		    "  tcpdump -i eth0 -w - udp port 4791 | roci ladder -\n",
	.about = "Each end is a line, time runs downwards, and an arrow is a packet or a message. A capture of roci0 "
		 "also\n"
		 "has what the programs posted, what completed, and what --fault lost. The page is one file. It needs\n"
		 "no network and sends nothing.\n\n"
		 "exit status: 0; 1 if the capture is damaged (what comes before is drawn) or the picture cannot be\n"
		 "written, 2 if an option is wrong; with a PROGRAM, its own.\n",
	.manual = "roci-ladder",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_FILE,
	.run = run,
};
