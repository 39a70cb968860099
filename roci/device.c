/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "command.h"
#include "device.h"
#include "machine.h"
#include "own_address.h"
#include "preload.h"

/* Tells the next execution the reason for the embedded device. That execution removes the variable at once. */
#define REASON_VARIABLE "ROCI_EMBEDDED_REASON"

static bool has_active_port(struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	bool active = false;

	if (!context)
		return false;
	for (unsigned n = 1; !ibv_query_device(context, &attr) && n <= attr.phys_port_cnt && !active; n++)
		active = !ibv_query_port(context, (uint8_t)n, &port) && port.state == IBV_PORT_ACTIVE;
	ibv_close_device(context);
	return active;
}

static struct ibv_device *find(struct ibv_device **list, const char *name)
{
	for (; list && *list; list++) {
		if (!strcmp(ibv_get_device_name(*list), name))
			return *list;
	}
	return NULL;
}

static bool has_rdma_cm(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	if (channel)
		rdma_destroy_event_channel(channel);
	return channel;
}

/* Whether a device of the machine works; if not, `reason` says why. */
static bool machine_device_works(struct ibv_device **list, char *reason, size_t size)
{
	if (!list || !*list) {
		snprintf(reason, size, "this machine has no RDMA device");
		return false;
	}
	snprintf(reason, size, "no RDMA device has an active port that this user can open");
	for (size_t i = 0; list[i]; i++) {
		const struct device_choice device = {.name = ibv_get_device_name(list[i])};
		if (!has_active_port(list[i]))
			continue;
		if (!has_rdma_cm()) {
			snprintf(reason, size, "%s needs rdma_cm: %s; try `modprobe rdma_ucm`", device.name,
				 strerror(errno));
			return false;
		}
		if (own_address_of_device(&device))
			return true;
		snprintf(reason, size, "no IP address of this machine belongs to %s", device.name);
	}
	return false;
}

/* Whether LD_PRELOAD chose the libraries: `roci run` sets it, execute_embedded(), or the user. */
static bool is_preloaded(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "libibverbs.so.1");
}

/* Executes this program again, with our libraries in front. Returns only if that fails. */
static enum mover_status execute_embedded(const struct command *command, const char *reason, char why[512])
{
	if (preload_environment(command)) {
		snprintf(why, 512, "cannot load the embedded device");
		return MOVER_NO_DEVICE;
	}
	setenv(REASON_VARIABLE, reason, 1);
	execv("/proc/self/exe", command_line);
	snprintf(why, 512, "cannot load the embedded device: /proc/self/exe: %s", strerror(errno));
	return MOVER_NO_DEVICE;
}

static void list_names(struct ibv_device **list, char *to, size_t size)
{
	size_t len = 0;
	for (; list && *list && len < size; list++)
		len += (size_t)snprintf(to + len, size - len, "%s, ", ibv_get_device_name(*list));
	if (len < size)
		snprintf(to + len, size - len, "embedded");
}

static enum mover_status choose_name(struct ibv_device **list, const char *wish, struct device_choice *choice,
				     char why[512])
{
	struct ibv_device *device = find(list, wish);
	char names[300];

	choice->name = wish;
	if (device && has_active_port(device))
		return MOVER_OK;
	list_names(list, names, sizeof(names));
	if (device)
		snprintf(why, 512, "%.64s has no active port, or this user cannot open it; available devices: %s", wish,
			 names);
	else
		snprintf(why, 512, "there is no RDMA device '%.64s'; available devices: %s", wish, names);
	return MOVER_NO_DEVICE;
}

/* Why roci0 is taken by the execution that the user started. */
static const char *first_reason(bool preloaded, bool requested)
{
	return preloaded ? "loaded by `roci run`" : requested ? "requested" : "this machine has no RDMA device";
}

enum mover_status device_choose(const struct command *command, const char *wish, struct device_choice *choice,
				char why[512])
{
	const char *again = getenv(REASON_VARIABLE);
	char library[PATH_MAX];
	bool wants_any = !wish || !strcmp(wish, "auto"), preloaded = is_preloaded(), here;
	bool wants_embedded = !wants_any && (!strcmp(wish, "embedded") || !strcmp(wish, EMBEDDED_DEVICE));
	struct ibv_device **list;
	enum mover_status status = MOVER_OK;

	*choice = (struct device_choice){0};
	if (!again && !preloaded && !wants_embedded && (!wants_any || machine_may_have_device()) &&
	    machine_execute(why))
		return MOVER_NO_DEVICE;
	list = ibv_get_device_list(NULL);
	here = find(list, EMBEDDED_DEVICE);
	if (again) {
		snprintf(choice->reason, sizeof(choice->reason), "%s", again);
		unsetenv(REASON_VARIABLE);
	}
	if (again && !(here && preloaded)) {
		snprintf(why, 512, "the embedded device did not start");
		status = MOVER_NO_DEVICE;
	} else if (here && (wants_any || wants_embedded) && preload_is_in_the_way(library)) {
		snprintf(why, 512, PRELOAD_IN_THE_WAY, library);
		status = MOVER_NO_DEVICE;
	} else if (here && (wants_any || wants_embedded)) {
		choice->embedded = true;
		if (!again)
			snprintf(choice->reason, sizeof(choice->reason), "%s", first_reason(preloaded, wants_embedded));
	} else if (wants_embedded) {
		status = execute_embedded(command, "requested", why);
	} else if (!wants_any) {
		status = choose_name(list, wish, choice, why);
	} else if (!machine_device_works(list, choice->reason, sizeof(choice->reason))) {
		status = execute_embedded(command, choice->reason, why);
	}
	if (list)
		ibv_free_device_list(list);
	return status;
}
