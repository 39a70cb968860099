/* SPDX-License-Identifier: BSD-2-Clause */
/* roci setup: puts a software RDMA device of the kernel on a network interface, or takes it away. */
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "doctor/doctor.h"
#include "explain_say.h"
#include "machine.h"
#include "rdma_link.h"

enum { SETUP_OK = 0, SETUP_FAILED = 1 };

struct setup_choices {
	bool undo;
};

static const struct option_row options[] = {
	{.name = "undo",
	 .group = "options",
	 .help = "remove the device from the interface",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct setup_choices, undo)},
	OPTION_HELP_ROW,
};

static const char *const kinds[] = {"rxe", "siw", NULL};

struct setup {
	const struct command *command;
	const char *kind, *iface;
	char name[RDMA_LINK_NAME_CHARS];
};

/* ---- checks ---- */

static int check_interface(const struct setup *s)
{
	struct if_nameindex *list;
	char names[300] = "";
	size_t len = 0;

	if (if_nametoindex(s->iface))
		return SETUP_OK;
	list = if_nameindex();
	for (struct if_nameindex *i = list; i && i->if_name && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "", i->if_name);
	if (list)
		if_freenameindex(list);
	complain(s->command, "there is no network interface '%s'; this machine has: %s", s->iface, names);
	return SETUP_FAILED;
}

/* The kernel's module is missing, or the kernel has no RDMA at all. */
static int no_module(const struct setup *s)
{
	struct utsname name;
	struct doctor_host host = {.root = "", .release = name.release};
	char text[DOCTOR_MISSING_CHARS];

	uname(&name);
	doctor_module_missing(&host, strcmp(s->kind, "rxe") ? "siw" : "rdma_rxe", text);
	complain(s->command, "%s\nroci0 needs no module: `roci ping --device embedded --loopback`", text);
	return SETUP_FAILED;
}

static int no_right(const struct setup *s, const char *what)
{
	complain(s->command,
		 geteuid()
			 ? "to %s a device needs root; run: sudo roci setup%s %s %s"
			 : "the kernel does not let this root %s a device: a container's root may not. Run this on the "
			   "machine itself: roci setup%s %s %s",
		 what, !strcmp(what, "remove") ? " --undo" : "", s->kind, s->iface);
	return SETUP_FAILED;
}

/* ---- the work ---- */

static void await(pid_t pid)
{
	int status;

	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

/* Loads the modules that the device and its users need. The kernel itself loads only the first. What fails here shows
 * later. */
static void load_modules(const struct setup *s)
{
	pid_t pid = fork();

	if (!pid) {
		if (freopen("/dev/null", "w", stderr))
			execlp("modprobe", "modprobe", "-a", strcmp(s->kind, "rxe") ? "siw" : "rdma_rxe", "ib_uverbs",
			       "rdma_ucm", (char *)NULL);
		_exit(EXIT_NOT_FOUND);
	}
	await(pid);
}

static int add(const struct setup *s, int fd)
{
	struct rdma_link link;
	int err = rdma_link_find(fd, s->kind, s->iface, &link);

	if (err > 0) {
		printf("%s is on %s already\n", link.name, s->iface);
		return SETUP_OK;
	}
	err = rdma_link_add(fd, s->kind, s->iface, s->name);
	if (!err) {
		printf("%s is on %s now; `roci setup --undo %s %s` removes it\n", s->name, s->iface, s->kind, s->iface);
		return SETUP_OK;
	}
	if (err == -EPERM)
		return no_right(s, "make");
	if (err == -EINVAL || err == -EOPNOTSUPP)
		return no_module(s);
	if (err == -EEXIST)
		complain(s->command,
			 "a device of the name %s is there already, on another interface or in another "
			 "network namespace; `rdma link` may show it",
			 s->name);
	else
		complain(s->command, "the kernel made no device of kind %s on %s: %s", s->kind, s->iface,
			 strerror(-err));
	explain_say(stderr, explain_code(EXPLAIN_ERRNO, -err));
	return SETUP_FAILED;
}

static int undo(const struct setup *s, int fd)
{
	struct rdma_link link;
	int err = rdma_link_find(fd, s->kind, s->iface, &link);

	if (err < 0) {
		complain(s->command, "cannot list the RDMA devices: %s", strerror(-err));
		explain_say(stderr, explain_code(EXPLAIN_ERRNO, -err));
		return SETUP_FAILED;
	}
	if (!err) {
		printf("there is no device of kind %s on %s: nothing to do\n", s->kind, s->iface);
		return SETUP_OK;
	}
	err = rdma_link_remove(fd, &link);
	if (err == -EPERM)
		return no_right(s, "remove");
	if (err) {
		complain(s->command, "%s stays: %s%s", link.name, strerror(-err),
			 err == -EINVAL ? "; it is no software device" : "");
		explain_say(stderr, explain_code(EXPLAIN_ERRNO, -err));
		return SETUP_FAILED;
	}
	printf("%s is removed from %s\n", link.name, s->iface);
	return SETUP_OK;
}

/* Ends with what `roci doctor` says, where there is that command. It is a process of its own: it may execute itself
 * again. */
static void ask_doctor(void)
{
	bool there = false;
	pid_t pid;

	for (const struct command *const *c = commands; *c; c++)
		there |= !strcmp((*c)->name, "doctor");
	if (!there)
		return;
	putchar('\n');
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", "roci", "doctor", (char *)NULL);
		_exit(EXIT_CANNOT_RUN);
	}
	await(pid);
}

static int set_up(const struct setup *s, bool remove)
{
	int fd, status = check_interface(s);

	if (status)
		return status;
	if (!geteuid() && !remove)
		load_modules(s);
	fd = rdma_link_open();
	if (fd == -EPROTONOSUPPORT && remove) {
		printf("this kernel has no RDMA loaded: nothing to do\n");
		return SETUP_OK;
	}
	if (fd == -EPROTONOSUPPORT)
		return geteuid() ? no_right(s, "make") : no_module(s);
	if (fd < 0) {
		complain(s->command, "netlink: %s", strerror(-fd));
		explain_say(stderr, explain_code(EXPLAIN_ERRNO, -fd));
		return SETUP_FAILED;
	}
	status = remove ? undo(s, fd) : add(s, fd);
	close(fd);
	if (!status && !remove)
		ask_doctor();
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct setup_choices choices = {0};
	struct setup setup = {.command = self};
	struct operands operands;
	char why[512];
	int status;

	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	if (operands.count != 2) {
		status = complain(self, "name a kind of device and an interface; usage: roci setup %s", self->usage);
	} else if (strcmp(operands.list[0], "rxe") && strcmp(operands.list[0], "siw")) {
		status = complain(self, "'%s' is no kind of device; use rxe (Soft-RoCE) or siw (iWARP)",
				  operands.list[0]);
	} else if (machine_execute(why)) { /* rdma_link.c reads the machine's /sys/class/infiniband */
		status = complain(self, "%s", why);
	} else {
		setup.kind = operands.list[0];
		setup.iface = operands.list[1];
		snprintf(setup.name, sizeof(setup.name), "%s_%.*s", setup.kind, IF_NAMESIZE, setup.iface);
		status = set_up(&setup, choices.undo);
	}
	free(operands.list);
	return status;
}

const struct command setup_command = {
	.name = "setup",
	.summary = "put the kernel's Soft-RoCE or iWARP on a network interface",
	.usage = "[--undo] rxe|siw IFACE",
	.examples = "  sudo roci setup rxe eth0          Soft-RoCE, as the device rxe_eth0\n"
		    "  sudo roci setup siw eth0          iWARP, as siw_eth0\n"
		    "  sudo roci setup --undo rxe eth0\n",
	.about =
		"The device is gone after a restart of the machine. roci0, the embedded device, needs none of this.\n\n"
		"exit status: 0 if the device is there (with --undo: is gone), 1 if not, 2 if an argument is wrong.\n",
	.manual = "roci-setup",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_CHOICE,
	.operand_values = kinds,
	.run = run,
};
