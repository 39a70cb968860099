/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bar.h"
#include "command.h"
#include "demo_pair.h"
#include "explain_hint.h"
#include "explain_say.h"
#include "mover/mover.h"

#define LINE_BYTES 32768 /* the two write no longer line */

struct process {
	pid_t pid; /* 0: not started, or reaped */
	int fd;    /* the read end of its standard output; -1: closed */
	char line[LINE_BYTES];
	size_t len;
};

struct demo_pair {
	struct process processes[DEMO_SIDES];
	struct demo_event *events;
	size_t count, room;
	struct bar bar;
};

static const char *const side_names[] = {"receiver", "sender"};

struct demo_pair *demo_pair_create(void)
{
	struct demo_pair *pair = calloc(1, sizeof(*pair));
	if (!pair)
		return NULL;
	for (size_t i = 0; i < DEMO_SIDES; i++)
		pair->processes[i].fd = -1;
	bar_init(&pair->bar, stderr);
	return pair;
}

/* Waits for a process. Returns its exit status, or 1 if a signal killed it. */
static int reap(struct process *process)
{
	int status = 0;
	while (process->pid && waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
		;
	process->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : MOVER_FAILED;
}

void demo_pair_destroy(struct demo_pair *pair)
{
	for (size_t i = 0; i < DEMO_SIDES; i++) {
		struct process *process = &pair->processes[i];
		if (process->pid) {
			kill(process->pid, SIGTERM);
			reap(process);
		}
		if (process->fd >= 0)
			close(process->fd);
	}
	for (size_t i = 0; i < pair->count; i++)
		json_decref(pair->events[i].object);
	free(pair->events);
	free(pair);
}

static int start(struct process *process, const char *dir, const char *const *argv, const char *capture)
{
	int fds[2];
	pid_t parent = getpid();

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	process->pid = fork();
	if (!process->pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent || dup2(fds[1], STDOUT_FILENO) < 0 || chdir(dir))
			_exit(MOVER_FAILED);
		if (capture)
			setenv("ROCI_CAPTURE", capture, 1);
		execv("/proc/self/exe", (char *const *)argv);
		fprintf(stderr, "roci demo: /proc/self/exe: %s\n", strerror(errno));
		_exit(MOVER_FAILED);
	}
	close(fds[1]);
	process->fd = fds[0];
	if (process->pid > 0)
		return 0;
	process->pid = 0;
	return -EAGAIN;
}

static const char *text(const json_t *object, const char *member)
{
	return json_string_value(json_object_get(object, member));
}

static uint64_t number(const json_t *object, const char *member)
{
	return (uint64_t)json_integer_value(json_object_get(object, member));
}

static void show_progress(struct demo_pair *pair, const json_t *object)
{
	bar_draw(&pair->bar, number(object, "bytes_done"), number(object, "bytes_total"),
		 json_number_value(json_object_get(object, "bytes_per_second")), "roci0 over udp");
}

/* Inserts an event by its time. Most events come in order. */
static void insert(struct demo_pair *pair, struct demo_event event)
{
	size_t at = pair->count++;
	for (; at && strcmp(pair->events[at - 1].time, event.time) > 0; at--)
		pair->events[at] = pair->events[at - 1];
	pair->events[at] = event;
}

static int take_line(struct demo_pair *pair, enum demo_side side, const char *line, size_t len)
{
	json_t *object = json_loadb(line, len, 0, NULL);
	const char *name = text(object, "event"), *time = text(object, "time");

	if (!name || !time) {
		json_decref(object);
		return -EPROTO;
	}
	if (!strcmp(name, "progress")) {
		if (side == DEMO_SENDER)
			show_progress(pair, object);
		json_decref(object);
		return 0;
	}
	if (pair->count == pair->room) {
		size_t room = pair->room ? pair->room * 2 : 64;
		struct demo_event *more = reallocarray(pair->events, room, sizeof(*more));
		if (!more) {
			json_decref(object);
			return -ENOMEM;
		}
		pair->events = more;
		pair->room = room;
	}
	insert(pair, (struct demo_event){.side = side, .time = time, .object = object});
	return 0;
}

/* Reads what a process has printed, and takes its whole lines. 0 or -errno. */
static int take_output(struct demo_pair *pair, enum demo_side side)
{
	struct process *process = &pair->processes[side];
	ssize_t n = read(process->fd, process->line + process->len, LINE_BYTES - process->len);
	char *end;
	int err = 0;

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (!n) {
		close(process->fd);
		process->fd = -1;
		return process->len ? -EPROTO : 0;
	}
	process->len += (size_t)n;
	while (!err && (end = memchr(process->line, '\n', process->len))) {
		size_t len = (size_t)(end - process->line);
		err = take_line(pair, side, process->line, len);
		process->len -= len + 1;
		memmove(process->line, end + 1, process->len);
	}
	return process->len == LINE_BYTES ? -EPROTO : err;
}

/* Reads until both processes have ended. Starts the sender when the receiver's ticket is there. 0 or -errno. */
static int follow(struct demo_pair *pair, const char *dir, const char *const *sender, const char *capture)
{
	int err = 0;
	bool started = false;

	while (!err) {
		struct pollfd fds[DEMO_SIDES];
		for (size_t i = 0; i < DEMO_SIDES; i++)
			fds[i] = (struct pollfd){.fd = pair->processes[i].fd, .events = POLLIN};
		if (fds[DEMO_RECEIVER].fd < 0 && fds[DEMO_SENDER].fd < 0)
			break;
		if (poll(fds, DEMO_SIDES, -1) < 0 && errno != EINTR)
			return -errno;
		for (size_t i = 0; i < DEMO_SIDES && !err; i++) {
			if (fds[i].revents)
				err = take_output(pair, (enum demo_side)i);
		}
		if (!err && !started && demo_pair_string(pair, DEMO_RECEIVER, "ticket", "file")) {
			started = true;
			err = start(&pair->processes[DEMO_SENDER], dir, sender, capture);
		}
		/* The receiver would wait forever for a sender that has failed. */
		if (started && pair->processes[DEMO_SENDER].fd < 0 && pair->processes[DEMO_RECEIVER].fd >= 0 &&
		    demo_pair_number(pair, DEMO_SENDER, "ended", "exit_status") != 0)
			kill(pair->processes[DEMO_RECEIVER].pid, SIGTERM);
	}
	return err;
}

int demo_pair_run(struct demo_pair *pair, const struct command *command, const char *dir, const char *const *receiver,
		  const char *const *sender, const char *capture, bool both)
{
	static const enum demo_side order[] = {DEMO_SENDER, DEMO_RECEIVER}; /* the sender's error says more */
	int err = start(&pair->processes[DEMO_RECEIVER], dir, receiver, both ? capture : NULL), failed = 0;

	if (!err)
		err = follow(pair, dir, sender, capture);
	bar_clear(&pair->bar);
	if (err) {
		complain(command, "cannot run the two processes: %s", strerror(-err));
		return MOVER_FAILED;
	}
	for (size_t i = 0; i < DEMO_SIDES; i++) {
		enum demo_side side = order[i];
		int status = reap(&pair->processes[side]);
		const char *why = demo_pair_string(pair, side, "ended", "text");
		if (!status || failed)
			continue;
		failed = status;
		complain(command, "the %s failed: %s", side_names[side], why ? why : "it gave no reason");
		explain_say(stderr, explain_hint((enum mover_status)status, why));
	}
	return failed;
}

const struct demo_event *demo_pair_events(const struct demo_pair *pair, size_t *count)
{
	*count = pair->count;
	return pair->events;
}

static const json_t *find(const struct demo_pair *pair, enum demo_side side, const char *event, const char *member)
{
	for (size_t i = pair->count; i--;) {
		const struct demo_event *e = &pair->events[i];
		if (e->side == side && !strcmp(text(e->object, "event"), event))
			return json_object_get(e->object, member);
	}
	return NULL;
}

const char *demo_pair_string(const struct demo_pair *pair, enum demo_side side, const char *event, const char *member)
{
	return json_string_value(find(pair, side, event, member));
}

double demo_pair_number(const struct demo_pair *pair, enum demo_side side, const char *event, const char *member)
{
	return json_number_value(find(pair, side, event, member));
}
