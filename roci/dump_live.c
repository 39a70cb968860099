/* SPDX-License-Identifier: BSD-2-Clause */
/* The packets of a program while it runs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture_to.h"
#include "dump.h"

/* In the child. */
static int become(const struct command *self, char **argv, int fd)
{
	if (capture_to_fd(fd))
		return complain(self, "--run: %s", strerror(errno));
	return execute_on_roci0(self, argv);
}

int dump_live_run(const struct command *self, char **argv, struct dump_live *live)
{
	int ends[2];
	pid_t pid;

	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC))
		return complain(self, "--run: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return complain(self, "--run: %s", strerror(errno));
	}
	if (!pid)
		_exit(become(self, argv, ends[1]));
	close(ends[1]);
	/* ^C is for the program; its end is ours. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	live->pid = pid;
	live->file = fdopen(ends[0], "r");
	return live->file ? 0 : complain(self, "out of memory");
}

int dump_live_end(struct dump_live *live)
{
	int status = 0;

	fclose(live->file);
	while (waitpid((pid_t)live->pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
