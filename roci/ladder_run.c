/* SPDX-License-Identifier: BSD-2-Clause */
#include "ladder_run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/reader.h"
#include "capture_to.h"
#include "command.h"
#include "ladder/ladder.h"
#include "out_file.h"
#include "preload.h"
#include "text.h"

#define EXIT_BROKEN 1
#define COLUMNS     100 /* of --text, where no terminal says otherwise */

/* What a picture of before begins with. Any other file is left alone. */
static const char *const beginnings[] = {"<!doctype html>\n<!-- SPDX-License-Identifier: BSD-2-Clause -->\n<html",
					 "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"roci-ladder\"",
					 "# RDMA ladder"};

static bool is_stdout(const char *path)
{
	return !path || !strcmp(path, "-");
}

int ladder_check_out(const struct command *command, const char *path)
{
	int err;

	if (is_stdout(path))
		return 0;
	err = out_file_check(path, true);
	if (err == -EISDIR)
		return complain(command, "%s is a folder; name a file in it", path);
	if (!err)
		err = out_file_ours(path, beginnings, sizeof(beginnings) / sizeof(beginnings[0]));
	if (err == -EEXIST)
		return complain(command,
				"%s: the file is not a picture of `roci ladder`, and is left as it is; choose another "
				"name",
				path);
	return err ? complain(command, "%s: %s", path, strerror(-err)) : 0;
}

/* ---- reading ---- */

static void take(struct ladder *l, struct capture_tracker *tracker, const struct capture_record *record)
{
	struct capture_frame frame;
	struct capture_event event;
	struct roci_record ours;

	if (record->kind == CAPTURE_PACKET) {
		capture_tracker_take(tracker, record, &frame, &event);
		do
			ladder_take_packet(l, &event);
		while (capture_tracker_more(tracker, &frame, &event));
	} else if (record->kind == CAPTURE_LOCAL && record->local_type == ROCI_RECORD_BLOCK &&
		   roci_record_parse(record->bytes, record->len, record->swapped, &ours)) {
		capture_tracker_record(tracker, &ours);
		ladder_take_record(l, &ours);
	}
}

static int read_all(const struct ladder_job *job, FILE *capture, struct ladder *l, struct capture_tracker *tracker)
{
	struct capture_reader *reader = capture_reader_create(capture);
	struct capture_record record;
	enum capture_result result;
	int status = 0;

	if (!reader) {
		complain(job->command, "out of memory");
		return EXIT_BROKEN;
	}
	while ((result = capture_reader_next(reader, &record)) == CAPTURE_RECORD)
		take(l, tracker, &record);
	if (result == CAPTURE_BROKEN) {
		complain(job->command, "%s: %s", job->name, capture_reader_why(reader));
		status = EXIT_BROKEN;
	}
	capture_reader_destroy(reader);
	return status;
}

/* ---- writing ---- */

static unsigned terminal_columns(void)
{
	struct winsize size;

	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : COLUMNS;
}

static int write_to(const struct ladder_job *job, const struct ladder *l, FILE *out)
{
	struct ladder_text_options text = {
		.columns = terminal_columns(), .color = text_has_colors(out), .ascii = !text_has_utf8()};

	switch (job->format) {
	case LADDER_HTML: return ladder_write_page(l, out);
	case LADDER_SVG: return ladder_write_svg(l, out);
	case LADDER_TEXT: return ladder_write_text(l, &text, out);
	}
	return -EINVAL;
}

/* Into a file beside it that then takes its name: a browser never sees half a picture. */
static int write_file(const struct ladder_job *job, const struct ladder *l)
{
	char name[4096];
	int fd, err = -ENAMETOOLONG;
	FILE *out;
	mode_t mask = umask(0);

	umask(mask);
	if (snprintf(name, sizeof(name), "%s.XXXXXX", job->out) >= (int)sizeof(name))
		return err;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	out = fdopen(fd, "w");
	err = out ? write_to(job, l, out) : -ENOMEM;
	if (fchmod(fd, 0666 & ~mask) && !err)
		err = -errno;
	if (out ? fclose(out) && !err : close(fd) && !err)
		err = -EIO;
	if (!err && rename(name, job->out))
		err = -errno;
	if (err)
		unlink(name);
	return err;
}

static int write_out(const struct ladder_job *job, const struct ladder *l)
{
	bool to_stdout = is_stdout(job->out);
	struct stat st;
	int err;

	/* A device or a pipe is written to, not replaced. */
	if (to_stdout) {
		err = write_to(job, l, stdout);
	} else if (!stat(job->out, &st) && !S_ISREG(st.st_mode)) {
		FILE *out = fopen(job->out, "we");

		err = out ? write_to(job, l, out) : -errno;
		if (out && fclose(out) && !err)
			err = -EIO;
	} else {
		err = write_file(job, l);
	}
	if (!err || (to_stdout && ferror(stdout))) /* main() tells of standard output */
		return err ? EXIT_BROKEN : 0;
	if (err == -E2BIG)
		complain(job->command, "there are %zu ends, and --text has room for %d; the page shows them all",
			 l->line_count, LADDER_TEXT_LINES);
	else
		complain(job->command, "%s: %s", to_stdout ? "standard output" : job->out, strerror(-err));
	return EXIT_BROKEN;
}

/* The page has these in it. */
static void print_notes(const struct ladder_job *job, const struct ladder *l)
{
	char text[LADDER_NOTE_CHARS];

	for (unsigned i = 0; job->format != LADDER_HTML && ladder_note(l, i, text); i++)
		fprintf(stderr, "roci %s: %s\n", job->command->name, text);
}

/* `broken`: the file cannot be read to its end, which was said. */
static int check_content(const struct ladder_job *job, const struct ladder *l, int broken)
{
	if (l->packet_count || l->event_count)
		return 0;
	if (broken)
		return broken;
	complain(job->command,
		 l->no_rdma ? "%s: none of its packets is RoCEv2; `roci dump --all` shows them"
			    : "%s holds no packets; did the program use an RDMA device?",
		 job->name);
	return EXIT_BROKEN;
}

int ladder_draw(const struct ladder_job *job, FILE *capture)
{
	const struct ladder_options options = {.title = job->title,
					       .max_packets = job->max_packets ? job->max_packets : LADDER_MAX_PACKETS};
	struct capture_tracker *tracker = capture_tracker_create();
	struct ladder *l = ladder_create(&options);
	int broken, status = EXIT_BROKEN;

	if (tracker && l) {
		broken = read_all(job, capture, l, tracker);
		if (ladder_finish(l, tracker))
			complain(job->command, "out of memory; draw less of it with --max-packets");
		else
			status = check_content(job, l, broken);
		if (!status)
			status = write_out(job, l);
		if (!status)
			print_notes(job, l);
		status = status ? status : broken;
	} else {
		complain(job->command, "out of memory");
	}
	if (l)
		ladder_destroy(l);
	capture_tracker_destroy(tracker);
	return status;
}

int ladder_draw_file(const struct ladder_job *job, const char *path)
{
	FILE *capture = fopen(path, "re");
	int status;

	if (!capture) {
		complain(job->command, "%s: %s", path,
			 errno == ENOENT ? "there is no capture: the program did not open roci0" : strerror(errno));
		return EXIT_BROKEN;
	}
	status = ladder_draw(job, capture);
	fclose(capture);
	return status;
}

void ladder_tell(const struct ladder_job *job)
{
	if (is_stdout(job->out))
		return;
	if (job->format == LADDER_TEXT)
		fprintf(stderr, "roci %s: the ladder is in %s\n", job->command->name, job->out);
	else
		fprintf(stderr, "roci %s: open %s in a browser\n", job->command->name, job->out);
}

/* ---- of a program ---- */

static _Noreturn void execute(const struct ladder_job *job, char **argv, bool preload)
{
	if (preload)
		_exit(execute_on_roci0(job->command, argv));
	execvp("/proc/self/exe", argv);
	complain(job->command, "/proc/self/exe: %s", strerror(errno));
	_exit(EXIT_CANNOT_RUN);
}

static int run_program(const struct ladder_job *job, char **argv, bool preload, const char *fault, const char *capture)
{
	void (*interrupt)(int);
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		setenv("ROCI_CAPTURE", capture, 1);
		if (fault)
			setenv("ROCI_FAULT", fault, 1);
		/* What the program prints would be in the midst of the picture. */
		if (is_stdout(job->out))
			dup2(STDERR_FILENO, STDOUT_FILENO);
		execute(job, argv, preload);
	}
	if (pid < 0)
		return complain(job->command, "cannot start %s: %s", argv[0], strerror(errno));
	interrupt = signal(SIGINT, SIG_IGN); /* ^C ends the program, and then the picture is drawn */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, interrupt);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *command_text(char **argv, char *text, size_t size)
{
	const char *slash = strrchr(argv[0], '/');
	size_t len = (size_t)snprintf(text, size, "%s", slash ? slash + 1 : argv[0]);

	for (unsigned i = 1; argv[i] && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, " %s", argv[i]);
	return text;
}

int ladder_draw_program(struct ladder_job *job, char **argv, bool preload, const char *fault)
{
	const char *tmp = getenv("TMPDIR");
	char dir[PATH_MAX], capture[PATH_MAX + 16], title[256];
	int status, drawn;

	snprintf(dir, sizeof(dir), "%s/roci-ladder-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return complain(job->command, "%s: %s", dir, strerror(errno));
	snprintf(capture, sizeof(capture), "%s/run.pcapng", dir);
	job->title = command_text(argv, title, sizeof(title));
	job->name = "the run";
	status = run_program(job, argv, preload, fault, capture);
	if (status == EXIT_NOT_FOUND || status == EXIT_CANNOT_RUN || (status && access(capture, F_OK))) {
		drawn = status;
	} else {
		drawn = ladder_draw_file(job, capture);
		if (!drawn)
			ladder_tell(job);
	}
	unlink(capture);
	rmdir(dir);
	return status ? status : drawn;
}

int ladder_draw_self(const struct command *command, const char *out, bool device_given)
{
	struct ladder_job job = {.command = command, .out = out};
	unsigned count = 0, n = 0;
	char **argv;
	int status = ladder_check_out(command, out);

	if (status)
		return status;
	while (command_line[count])
		count++;
	argv = calloc(count + 3, sizeof(*argv));
	if (!argv)
		return complain(command, "out of memory");
	for (unsigned i = 0; i < count; i++) {
		if (!strcmp(command_line[i], "--ladder")) {
			i++;
			continue;
		}
		if (strncmp(command_line[i], "--ladder=", 9))
			argv[n++] = command_line[i];
		if (i == 1 && !device_given) {
			argv[n++] = (char *)"--device";
			argv[n++] = (char *)"embedded";
		}
	}
	status = ladder_draw_program(&job, argv, false, NULL);
	free(argv);
	return status;
}
