/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wan_tcp PORT FILE: receives from one connection until the other side has no more, writes it to FILE, and answers with
 * a byte. wan_tcp -C CONTROL FILE ADDRESS PORT: sends a file over TCP with this congestion control, and ends when the
 * answer has come: then all of the file is at the other side, as it is when `roci send` ends. (iperf3 ends when the
 * last byte is in its socket's buffer, which holds tens of megabytes on a far link.)
 */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h> /* IWYU pragma: keep (getopt) */

#include "pair.h"

#define ROOM (1 << 20) /* bytes received in a call */

static void receive(const char *port, const char *path)
{
	char *bytes = malloc(ROOM);
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), fd = tcp_serve(port);
	ssize_t n;

	need(bytes != NULL, "malloc");
	need(file >= 0, path);
	while ((n = recv(fd, bytes, ROOM, 0)) > 0)
		need(write(file, bytes, (size_t)n) == n, path);
	need(n == 0, "recv");
	need(send(fd, bytes, 1, MSG_NOSIGNAL) == 1, "send");
}

static void send_file(const char *path, const char *address, const char *port, const char *control)
{
	int file = open(path, O_RDONLY | O_CLOEXEC), fd = tcp_connect(address, port);
	char answer;
	ssize_t n;

	need(file >= 0, path);
	need(!setsockopt(fd, SOL_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control)), control);
	while ((n = sendfile(fd, file, NULL, (size_t)1 << 30)) > 0)
		;
	need(n == 0, "sendfile");
	need(!shutdown(fd, SHUT_WR), "shutdown");
	need(recv(fd, &answer, 1, 0) == 1, "recv");
}

int main(int argc, char **argv)
{
	const char *control = "cubic";

	for (int opt; (opt = getopt(argc, argv, "C:")) != -1;) {
		if (opt != 'C')
			return 2;
		control = optarg;
	}
	if (argc - optind == 2)
		receive(argv[optind], argv[optind + 1]);
	else if (argc - optind == 3)
		send_file(argv[optind], argv[optind + 1], argv[optind + 2], control);
	else
		die("usage: wan_tcp PORT FILE, or wan_tcp -C CONTROL FILE ADDRESS PORT");
	return 0;
}
