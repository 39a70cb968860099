/* SPDX-License-Identifier: BSD-2-Clause */
#include "ladder_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/reader.h"
#include "command.h"
#include "ladder/ladder.h"

#define EXIT_BROKEN 1
#define COLUMNS     100 /* of --text, where no terminal says otherwise */

/* What a picture of before begins with. Any other file is left alone. */
static const char *const beginnings[] = {"<!doctype html>\n<!-- SPDX",
					 "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"roci-ladder\"",
					 "# RDMA ladder"};

static bool is_stdout(const char *path)
{
	return !path || !strcmp(path, "-");
}

int ladder_check_out(const struct command *command, const char *path)
{
	char head[64] = "";
	struct stat st;
	bool ours = false;
	FILE *file;

	if (is_stdout(path))
		return 0;
	if (stat(path, &st))
		return errno == ENOENT ? 0 : complain(command, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return S_ISDIR(st.st_mode) ? complain(command, "%s is a folder; name a file in it", path) : 0;
	file = fopen(path, "re");
	if (!file)
		return complain(command, "%s: %s", path, strerror(errno));
	if (fread(head, 1, sizeof(head) - 1, file) > 0)
		for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
			ours = ours || !strncmp(head, beginnings[i], strlen(beginnings[i]));
	fclose(file);
	return ours ? 0
		    : complain(command,
			       "%s: the file is not a picture of `roci ladder`, and is left as it is; choose another "
			       "name",
			       path);
}

/* ---- reading ---- */

static void take(struct ladder *l, struct capture_tracker *tracker, const struct capture_record *record)
{
	struct capture_frame frame;
	struct capture_event event;
	struct roci_record ours;

	if (record->kind == CAPTURE_PACKET) {
		capture_tracker_take(tracker, record, &frame, &event);
		ladder_take_packet(l, &event);
	} else if (record->kind == CAPTURE_LOCAL && record->local_type == ROCI_RECORD_BLOCK &&
		   roci_record_parse(record->bytes, record->len, record->swapped, &ours)) {
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

	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col > 40 ? size.ws_col : COLUMNS;
}

static int write_to(const struct ladder_job *job, const struct ladder *l, FILE *out)
{
	struct ladder_text_options text = {.columns = terminal_columns(),
					   .color = isatty(fileno(out)) && !getenv("NO_COLOR")};

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
	if (!err)
		return 0;
	complain(job->command, "%s: %s", to_stdout ? "standard output" : job->out, strerror(-err));
	return EXIT_BROKEN;
}

static int check_content(const struct ladder_job *job, const struct ladder *l)
{
	if (l->packet_count || l->event_count)
		return 0;
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
			status = check_content(job, l);
		if (!status)
			status = write_out(job, l);
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
