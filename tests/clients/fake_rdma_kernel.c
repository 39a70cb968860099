/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library to preload: a kernel's side of NETLINK_RDMA, which has no devices. It answers a wish to list them with
 * $FAKE_LIST, and a wish to make one with $FAKE_MAKE: an errno, 0 for success. So errors of a kernel are seen that no
 * kernel here gives.
 */
#include <linux/netlink.h>
#include <pthread.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct answer {
	struct nlmsghdr head;
	struct nlmsgerr error;
};

static int wanted(const char *variable)
{
	const char *value = getenv(variable);

	return value ? atoi(value) : 0;
}

static struct answer answer(const struct nlmsghdr *request)
{
	bool makes = request->nlmsg_type == RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK);
	int err = wanted(makes ? "FAKE_MAKE" : "FAKE_LIST");

	return (struct answer){
		.head = {.nlmsg_len = sizeof(struct answer), .nlmsg_type = makes || err ? NLMSG_ERROR : NLMSG_DONE},
		.error = {.error = -err}};
}

/* Until the program closes its end. */
static void *serve(void *context)
{
	int fd = (int)(intptr_t)context;
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} request;

	while (recv(fd, &request, sizeof(request), 0) >= (ssize_t)sizeof(request.head)) {
		struct answer a = answer(&request.head);

		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) < 0)
			break;
	}
	close(fd);
	return NULL;
}

__attribute__((visibility("default"))) int socket(int domain, int type, int protocol)
{
	pthread_t thread;
	int ends[2];

	if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
		return (int)syscall(SYS_socket, domain, type, protocol);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)ends[1]))
		return -1;
	pthread_detach(thread);
	return ends[0];
}
