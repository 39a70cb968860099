/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "ticket_input.h"

#define LINE_CHARS (2 * MOVER_TICKET_CHARS)

/* Reads the first line that is not empty, without its end. Returns its length (0: there is none) or -errno. */
static ssize_t read_line(int fd, char line[LINE_CHARS])
{
	size_t len = 0;
	while (len < LINE_CHARS) {
		ssize_t n = read(fd, line + len, 1);
		if (n < 0)
			return -errno;
		if (!n || (line[len] == '\n' && len))
			break;
		len += line[len] != '\n';
	}
	return (ssize_t)len;
}

static enum mover_status parse(struct show *show, const char *from, char line[LINE_CHARS], ssize_t len,
			       struct mover_ticket *ticket)
{
	enum mover_status status = MOVER_OK;
	const char *why = NULL;

	if (len < 0)
		status = show_failure(show, MOVER_LOCAL_IO, "cannot read the ticket from %s: %s", from,
				      strerror((int)-len));
	else if (!len)
		status = show_failure(show, MOVER_USAGE, "there is no ticket in %s", from);
	else if (mover_ticket_parse(line, (size_t)len, ticket, &why))
		status = show_failure(show, MOVER_USAGE,
				      "the ticket from %s is not valid: %s; copy the whole line that begins with "
				      "\"roci1:\"",
				      from, why);
	explicit_bzero(line, LINE_CHARS);
	return status;
}

static enum mover_status from_file(struct show *show, const char *file, struct mover_ticket *ticket)
{
	char line[LINE_CHARS];
	struct stat st;
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return show_failure(show, MOVER_LOCAL_IO, "cannot read the ticket: %s: %s", file, strerror(errno));
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (st.st_mode & 077))
		show_warning(show, "other users can read the ticket in %s; prevent that with `chmod 600`", file);
	enum mover_status status = parse(show, file, line, read_line(fd, line), ticket);
	close(fd);
	return status;
}

/* Signals that may end or stop the prompt. The echo must be on again before they take effect. Where the process goes on
 * after one (a shell's `fg`, after ^Z), the prompt comes again. */
static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
#define FATAL_COUNT (sizeof(fatal) / sizeof(fatal[0]))
static volatile sig_atomic_t caught;

static void on_fatal(int signal)
{
	caught = signal;
}

/* Reads a line from the terminal. A signal that `unblocked` admits interrupts it. Returns its length or -errno. */
static ssize_t read_terminal(int tty, const sigset_t *unblocked, char line[LINE_CHARS])
{
	struct pollfd fd = {.fd = tty, .events = POLLIN};
	ssize_t len = ppoll(&fd, 1, NULL, unblocked) < 0 ? -1 : read(tty, line, LINE_CHARS);

	if (len < 0)
		return -errno;
	return len && line[len - 1] == '\n' ? len - 1 : len;
}

/* -EINTR: one of these signals came, and has had its effect. */
static ssize_t ask_once(int tty, char line[LINE_CHARS])
{
	static const char prompt[] = "ticket (the line that `roci recv` shows; your input stays hidden): ";
	struct sigaction action = {.sa_handler = on_fatal}, before[FATAL_COUNT];
	struct termios old, silent;
	sigset_t blocked, unblocked;
	ssize_t len;

	if (tcgetattr(tty, &old))
		return -errno;
	silent = old;
	silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	caught = 0;
	sigemptyset(&blocked);
	for (size_t i = 0; i < FATAL_COUNT; i++)
		sigaddset(&blocked, fatal[i]);
	sigprocmask(SIG_BLOCK, &blocked, &unblocked); /* except in ppoll() */
	for (size_t i = 0; i < FATAL_COUNT; i++)
		sigaction(fatal[i], &action, &before[i]);
	if (tcsetattr(tty, TCSAFLUSH, &silent) || write(tty, prompt, strlen(prompt)) < 0)
		len = -errno;
	else
		len = read_terminal(tty, &unblocked, line);
	tcsetattr(tty, TCSAFLUSH, &old);
	if (write(tty, "\n", 1) < 0 && len >= 0)
		len = -errno;
	for (size_t i = 0; i < FATAL_COUNT; i++)
		sigaction(fatal[i], &before[i], NULL);
	sigprocmask(SIG_SETMASK, &unblocked, NULL);
	if (caught)
		raise(caught);
	return len;
}

static ssize_t ask(int tty, char line[LINE_CHARS])
{
	ssize_t len;

	do
		len = ask_once(tty, line);
	while (len == -EINTR);
	return len;
}

static enum mover_status from_terminal(struct show *show, struct mover_ticket *ticket)
{
	char line[LINE_CHARS];
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (tty < 0)
		return show_failure(show, MOVER_USAGE,
				    "a ticket is needed, but there is no terminal to ask on; give --ticket-file FILE, "
				    "--ticket-fd N, or @FILE in place of the host");
	enum mover_status status = parse(show, "your input", line, ask(tty, line), ticket);
	close(tty);
	return status;
}

enum mover_status ticket_input(struct show *show, const char *file, int fd, struct mover_ticket *ticket)
{
	char line[LINE_CHARS], from[40];

	if (file)
		return from_file(show, file, ticket);
	if (fd < 0)
		return from_terminal(show, ticket);
	snprintf(from, sizeof(from), "file descriptor %d", fd);
	return parse(show, from, line, read_line(fd, line), ticket);
}
