/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/rdma_netlink.h>

#include "rdma_link.h"

#define REQUEST_BYTES 512
#define ANSWER_BYTES  65536
#define DEVICES_MAX   64

struct request {
	struct nlmsghdr head;
	uint8_t attributes[REQUEST_BYTES];
};

int rdma_link_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	return fd < 0 ? -errno : fd;
}

static struct request request(unsigned command, unsigned flags)
{
	return (struct request){.head = {.nlmsg_len = NLMSG_HDRLEN,
					 .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
					 .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)}};
}

/* The names of devices and interfaces are short, so the room is enough. */
static void put(struct request *r, uint16_t type, const void *value, size_t len)
{
	struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
	uint8_t *at = (uint8_t *)r + r->head.nlmsg_len;

	memcpy(at, &attribute, sizeof(attribute));
	memcpy(at + NLA_HDRLEN, value, len);
	r->head.nlmsg_len += (uint32_t)NLA_ALIGN(attribute.nla_len);
}

static void put_text(struct request *r, uint16_t type, const char *text)
{
	put(r, type, text, strlen(text) + 1);
}

/* Called for each message of an answer. */
typedef void message_fn(const struct nlmsghdr *head, void *context);

/* Sends a request and reads its answer to the end. 0 or a negative errno. */
static int ask(int fd, const struct request *r, message_fn *take, void *context)
{
	static uint8_t answer[ANSWER_BYTES];

	if (send(fd, r, r->head.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(fd, answer, sizeof(answer), 0);
		if (n < 0)
			return -errno;
		for (struct nlmsghdr *m = (struct nlmsghdr *)answer; NLMSG_OK(m, (uint32_t)n); m = NLMSG_NEXT(m, n)) {
			if (m->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(m))->error;
			if (m->nlmsg_type == NLMSG_DONE)
				return 0;
			if (take)
				take(m, context);
		}
	}
}

/* The value of an attribute, or NULL. */
static const void *attribute(const struct nlmsghdr *head, uint16_t type, size_t least)
{
	const uint8_t *at = (const uint8_t *)head + NLMSG_HDRLEN, *end = (const uint8_t *)head + head->nlmsg_len;

	while (end - at >= NLA_HDRLEN) {
		struct nlattr a;
		memcpy(&a, at, sizeof(a));
		if (a.nla_len < NLA_HDRLEN || a.nla_len > end - at)
			return NULL;
		if ((a.nla_type & NLA_TYPE_MASK) == type)
			return a.nla_len >= NLA_HDRLEN + least ? at + NLA_HDRLEN : NULL;
		if (NLA_ALIGN(a.nla_len) >= end - at)
			return NULL;
		at += NLA_ALIGN(a.nla_len);
	}
	return NULL;
}

struct devices {
	struct rdma_link list[DEVICES_MAX];
	unsigned count;
};

static void take_device(const struct nlmsghdr *head, void *context)
{
	struct devices *devices = context;
	const uint32_t *index = attribute(head, RDMA_NLDEV_ATTR_DEV_INDEX, sizeof(*index));
	const char *name = attribute(head, RDMA_NLDEV_ATTR_DEV_NAME, 1);

	if (!index || !name || devices->count == DEVICES_MAX)
		return;
	struct rdma_link *link = &devices->list[devices->count++];
	memcpy(&link->index, index, sizeof(link->index));
	snprintf(link->name, sizeof(link->name), "%s", name);
}

struct wanted {
	const char *iface;
	bool found;
};

static void take_port(const struct nlmsghdr *head, void *context)
{
	struct wanted *wanted = context;
	const char *iface = attribute(head, RDMA_NLDEV_ATTR_NDEV_NAME, 1);

	wanted->found |= iface && !strcmp(iface, wanted->iface);
}

/* iWARP's devices are RNICs, those of RoCE are CAs: /sys/class/infiniband/NAME/node_type. */
static bool is_kind(const char *name, const char *kind)
{
	char path[128], type[8] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_type", name);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(type, sizeof(type), file))
		type[0] = '\0';
	fclose(file);
	return type[0] == (!strcmp(kind, "siw") ? '4' : '1');
}

int rdma_link_any(int fd)
{
	struct request r = request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	struct devices devices = {.count = 0};
	int err = ask(fd, &r, take_device, &devices);

	return err ? err : devices.count > 0;
}

int rdma_link_find(int fd, const char *kind, const char *iface, struct rdma_link *found)
{
	struct request r = request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	struct devices devices = {.count = 0};
	int err = ask(fd, &r, take_device, &devices);

	for (unsigned i = 0; i < devices.count && !err; i++) {
		struct wanted wanted = {.iface = iface};
		r = request(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP);
		put(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &devices.list[i].index, sizeof(devices.list[i].index));
		err = ask(fd, &r, take_port, &wanted);
		if (!err && wanted.found && is_kind(devices.list[i].name, kind)) {
			*found = devices.list[i];
			return 1;
		}
	}
	return err;
}

int rdma_link_add(int fd, const char *kind, const char *iface, const char *name)
{
	struct request r = request(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);

	put_text(&r, RDMA_NLDEV_ATTR_DEV_NAME, name);
	put_text(&r, RDMA_NLDEV_ATTR_LINK_TYPE, kind);
	put_text(&r, RDMA_NLDEV_ATTR_NDEV_NAME, iface);
	return ask(fd, &r, NULL, NULL);
}

int rdma_link_remove(int fd, const struct rdma_link *link)
{
	struct request r = request(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);

	put(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &link->index, sizeof(link->index));
	return ask(fd, &r, NULL, NULL);
}
