/* SPDX-License-Identifier: BSD-2-Clause */
#include "common.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

_Noreturn void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

const char *reason(int error)
{
	/* What a machine without RDMA answers is not clear to everybody. */
	if (error == ENODEV || error == ENOSYS)
		return "there is no RDMA device; \"roci run PROGRAM\" gives the program one";
	return strerror(error);
}

void check(int result, const char *what)
{
	if (result)
		die("%s: %s", what, reason(result > 0 ? result : errno));
}

void *made(void *pointer, const char *what)
{
	if (!pointer)
		die("%s: %s", what, reason(errno));
	return pointer;
}

static _Noreturn void usage(const struct arguments *a, const char *options, FILE *to)
{
	bool file = strchr(options, 'f') != NULL, alone = strchr(options, '1') != NULL;

	fprintf(to, "usage: %s%s%s%s%s%s%s\n", a->program, strchr(options, 'p') ? " [-p PORT]" : "",
		strchr(options, 'd') ? " [-d DEVICE]" : "", strchr(options, 'g') ? " [-g GID-INDEX]" : "",
		strchr(options, 'k') ? " [-k]" : "",
		file                   ? " FILE"
		: strchr(options, 'c') ? " [CASE]"
				       : "",
		alone ? "" : " [HOST]");
	if (!alone)
		fprintf(to, "Without HOST it waits for the other side%s; with HOST it connects%s.\n",
			file ? " and writes FILE" : "", file ? " and sends FILE" : "");
	exit(to == stderr ? 2 : 0);
}

static long number(const struct arguments *a, const char *text, const char *what, long least, long most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*end || end == text || value < least || value > most) {
		fprintf(stderr, "%s: %s is not a %s: it must be a number from %ld to %ld\n", a->program, text, what,
			least, most);
		exit(2);
	}
	return value;
}

struct arguments arguments_read(const char *options, int argc, char **argv)
{
	bool file = strchr(options, 'f') != NULL, alone = strchr(options, '1') != NULL;
	const char *slash = strrchr(argv[0], '/');
	struct arguments a = {.program = slash ? slash + 1 : argv[0], .port = "22222", .gid_index = -1};
	int option;

	setvbuf(stdout, NULL, _IOLBF, 0); /* each line is seen at once, also in a pipe or a file */
	while ((option = getopt(argc, argv, "p:d:g:kh")) != -1) {
		if (option == 'h')
			usage(&a, options, stdout);
		if (option == '?' || !strchr(options, option))
			usage(&a, options, stderr);
		switch (option) {
		case 'p':
			number(&a, optarg, "port", 1, 65535);
			a.port = optarg;
			break;
		case 'd': a.device = optarg; break;
		case 'g': a.gid_index = (int)number(&a, optarg, "GID index", 0, 255); break;
		default: a.dies = true;
		}
	}
	if ((file || strchr(options, 'c')) && optind < argc)
		a.file = argv[optind++];
	if (!alone && optind < argc)
		a.host = argv[optind++];
	if (optind < argc || (file && !a.file))
		usage(&a, options, stderr);
	return a;
}

/* Some kernels have no IPv6. */
static bool has_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

struct addrinfo *resolve(const struct arguments *a)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = a->host ? 0 : AI_PASSIVE}, *found;
	bool ipv6 = a->host ? strchr(a->host, ':') != NULL : has_ipv6(); /* who listens at :: gets IPv4, too */
	int error;

	hints.ai_family = ipv6 ? AF_INET6 : AF_INET;
	error = getaddrinfo(a->host, a->port, &hints, &found);
	if (error)
		die("%s: %s", a->host ? a->host : "any address", gai_strerror(error));
	return found;
}

void die_if_asked(const struct arguments *arguments)
{
	if (!arguments->dies)
		return;
	printf("connected; now I kill myself, because of -k\n");
	raise(SIGKILL);
}

/* What a learner looks at first when a request fails. */
static const char *hint(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR: return "; no answer came: does the other side still live, and is its address right?";
	case IBV_WC_RNR_RETRY_EXC_ERR: return "; the other side has no receive posted";
	case IBV_WC_REM_ACCESS_ERR: return "; look at rkey, address, length, access rights and PD over there";
	case IBV_WC_REM_INV_REQ_ERR: return "; the other side's QP does not allow this operation";
	case IBV_WC_WR_FLUSH_ERR: return "; the QP was in the error state already: the reason lies before this";
	default: return "";
	}
}

void check_completion(const struct ibv_wc *wc, const char *what)
{
	if (wc->status != IBV_WC_SUCCESS)
		die("%s: %s (status %d)%s", what, ibv_wc_status_str(wc->status), wc->status, hint(wc->status));
}

struct ibv_wc wait_completion(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	if (n < 0)
		die("ibv_poll_cq failed while waiting for: %s", what);
	check_completion(&wc, what);
	return wc;
}
