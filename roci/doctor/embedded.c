/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/embedded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "doctor/finding.h"
#include "preload.h"

#define VARIABLE     "ROCI_DOCTOR_EMBEDDED"
#define REPORT_BYTES (256 << 10)

bool doctor_is_embedded(void)
{
	bool is = getenv(VARIABLE);

	unsetenv(VARIABLE);
	return is;
}

static void execute(const struct command *command, int out)
{
	char *argv[] = {"roci", "doctor", NULL};

	setenv(VARIABLE, "1", 1);
	if (dup2(out, STDOUT_FILENO) < 0 || preload_environment(command))
		_exit(EXIT_CANNOT_RUN);
	if (!freopen("/dev/null", "w", stderr)) /* the findings say it better */
		_exit(EXIT_CANNOT_RUN);
	execv("/proc/self/exe", argv);
	_exit(EXIT_CANNOT_RUN);
}

/* Reads to the end. The caller frees the text; NULL: no memory. */
static char *read_all(int fd)
{
	char *text = malloc(REPORT_BYTES);
	size_t len = 0;
	ssize_t n = 1;

	while (text && len < REPORT_BYTES - 1 && n) {
		n = read(fd, text + len, REPORT_BYTES - 1 - len);
		if (n < 0 && errno != EINTR)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	if (text)
		text[len] = '\0';
	return text;
}

static void add_failure(struct findings *findings, const char *what, int value)
{
	struct finding *finding = finding_add(findings, FINDING_PROBLEM, "roci0", "roci0 does not work here");

	finding_proof(finding, "a process with Rocinante's libraries: %s %d", what, value);
	finding_fix(finding, "`roci run -- ibv_devinfo` shows its messages");
}

void doctor_embedded(struct findings *findings, const struct command *command)
{
	int ends[2], status;
	size_t before = findings->count;
	pid_t pid;
	char *text;

	if (pipe(ends)) {
		add_failure(findings, "pipe(2) fails with errno", errno);
		return;
	}
	fflush(stdout);
	pid = fork();
	if (!pid)
		execute(command, ends[1]);
	close(ends[1]);
	text = read_all(ends[0]);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		add_failure(findings, "fork(2) fails with errno", errno);
	else if (WIFSIGNALED(status))
		add_failure(findings, "ended by signal", WTERMSIG(status));
	else if (!text || findings_parse_json(findings, text) || findings->count == before)
		add_failure(findings, "exit status", WEXITSTATUS(status));
	free(text);
}
