/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/child.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "preload.h"

#define TEXT_BYTES (256 << 10) /* of each stream; the rest is read and forgotten */

static void execute(const char *const argv[], const struct command *preload_for, int out, int err)
{
	if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
		_exit(EXIT_CANNOT_RUN);
	if (preload_for && preload_environment(preload_for))
		_exit(EXIT_CANNOT_RUN);
	execv("/proc/self/exe", (char *const *)argv);
	fprintf(stderr, "/proc/self/exe: %s\n", strerror(errno));
	_exit(EXIT_CANNOT_RUN);
}

/* Reads what is there. Returns false at the end. */
static bool read_some(int fd, char *text, size_t *len)
{
	char rest[4096];
	bool room = *len < TEXT_BYTES - 1;
	ssize_t n = room ? read(fd, text + *len, TEXT_BYTES - 1 - *len) : read(fd, rest, sizeof(rest));

	if (n > 0 && room)
		*len += (size_t)n;
	return n > 0 || (n < 0 && errno == EINTR);
}

/* Reads both pipes to their ends. */
static void read_both(int out, int err, struct child *child)
{
	struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
	char *texts[2] = {child->out, child->err};
	size_t lens[2] = {0, 0};

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		for (int i = 0; i < 2; i++) {
			if (fds[i].fd >= 0 && fds[i].revents && !read_some(fds[i].fd, texts[i], &lens[i]))
				fds[i].fd = -1;
		}
	}
	texts[0][lens[0]] = texts[1][lens[1]] = '\0';
}

struct child child_run(const char *const argv[], const struct command *preload_for)
{
	struct child child = {.status = -1, .out = malloc(TEXT_BYTES), .err = malloc(TEXT_BYTES)};
	int out[2], err[2];
	pid_t pid;

	if (!child.out || !child.err || pipe(out))
		return child;
	child.out[0] = child.err[0] = '\0';
	if (pipe(err)) {
		close(out[0]);
		close(out[1]);
		return child;
	}
	fflush(stdout);
	pid = fork();
	if (!pid)
		execute(argv, preload_for, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	if (pid > 0) {
		read_both(out[0], err[0], &child);
		while (waitpid(pid, &child.status, 0) < 0 && errno == EINTR)
			;
	}
	close(out[0]);
	close(err[0]);
	return child;
}

void child_free(struct child *child)
{
	free(child->out);
	free(child->err);
}

bool child_succeeded(const struct child *child)
{
	return child->status != -1 && WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0;
}

const char *child_end(const struct child *child, char text[32])
{
	if (child->status == -1)
		snprintf(text, 32, "it could not be started");
	else if (WIFSIGNALED(child->status))
		snprintf(text, 32, "signal %d", WTERMSIG(child->status));
	else
		snprintf(text, 32, "exit status %d", WEXITSTATUS(child->status));
	return text;
}
