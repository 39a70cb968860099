/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel has for RDMA: devices, character devices, modules. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "doctor/files.h"

#define DEVICES       "/sys/class/infiniband"
#define ROCI0_INSTEAD "use roci0: `roci run -- PROGRAM` needs no module"

struct examination {
	struct findings *findings;
	const struct doctor_host *host;
	const char *device;
};

/* The network interface of a port: that of its first GID. */
static bool port_interface(const struct examination *x, const char *port, char *name, size_t size)
{
	return file_line(x->host, name, size, DEVICES "/%s/ports/%s/gid_attrs/ndevs/0", x->device, port);
}

/* "4: ACTIVE" */
static void examine_port(void *context, const char *port)
{
	const struct examination *x = context;
	char state[64] = "", layer[64] = "unknown link layer", interface[64];
	struct finding *finding;
	bool active;

	file_line(x->host, state, sizeof(state), DEVICES "/%s/ports/%s/state", x->device, port);
	file_line(x->host, layer, sizeof(layer), DEVICES "/%s/ports/%s/link_layer", x->device, port);
	active = atoi(state) == 4;
	finding = finding_add(x->findings, active ? FINDING_OK : FINDING_WARNING, "kernel-port",
			      active ? "%s, a device of this machine: port %s is active (%s)"
				     : "%s, a device of this machine: port %s is not active (%s)",
			      x->device, port, layer);
	finding_proof(finding, DEVICES "/%s/ports/%s/state is \"%s\"", x->device, port, state);
	if (!active && port_interface(x, port, interface, sizeof(interface)))
		finding_fix(finding, "sudo ip link set %s up", interface);
	else if (!active && !strcmp(layer, "InfiniBand"))
		finding_fix(finding,
			    "`ibstat %s` shows the port; a subnet manager must run in the fabric, and the cable "
			    "must be in",
			    x->device);
	else if (!active)
		finding_fix(finding, "`rdma link show %s/%s` shows its network interface: bring that up", x->device,
			    port);
}

static void examine_uverbs(void *context, const char *name)
{
	const struct examination *x = context;
	struct finding *finding;

	if (strncmp(name, "uverbs", 6) || strspn(name + 6, "0123456789") != strlen(name + 6))
		return;
	if (file_access(x->host, R_OK | W_OK, "/dev/infiniband/%s", name))
		return;
	finding = finding_add(x->findings, FINDING_PROBLEM, "uverbs",
			      "this user cannot open a device of this machine: %s", name);
	if (file_access(x->host, F_OK, "/dev/infiniband/%s", name)) {
		finding_proof(finding, "/dev/infiniband/%s exists, and access(2) for reading and writing fails", name);
		finding_fix(finding, "sudo chmod 0666 /dev/infiniband/%s", name);
	} else {
		finding_proof(finding, "/sys/class/infiniband_verbs/%s exists, /dev/infiniband/%s does not", name,
			      name);
		finding_fix(finding,
			    "in a container: start it with --device /dev/infiniband/%s --device "
			    "/dev/infiniband/rdma_cm",
			    name);
	}
}

static void examine_rdma_cm(const struct examination *x)
{
	struct finding *finding;

	if (file_access(x->host, R_OK | W_OK, "/dev/infiniband/rdma_cm"))
		return;
	finding = finding_add(x->findings, FINDING_PROBLEM, "rdma-cm",
			      "rdma_cm does not work for this user on the devices of this machine");
	if (file_access(x->host, F_OK, "/dev/infiniband/rdma_cm")) {
		finding_proof(finding, "/dev/infiniband/rdma_cm exists, and access(2) for reading and writing fails");
		finding_fix(finding, "sudo chmod 0666 /dev/infiniband/rdma_cm");
	} else {
		finding_proof(finding, "/dev/infiniband/rdma_cm does not exist");
		finding_fix(finding, "sudo modprobe rdma_ucm");
	}
}

static void examine_device(void *context, const char *name)
{
	struct examination *x = context;
	char folder[512];

	x->device = name;
	snprintf(folder, sizeof(folder), DEVICES "/%s/ports", name);
	file_each(x->host, folder, examine_port, x);
}

/* Whether a list of modules (modules.dep, modules.builtin) names the module: ".../rdma_rxe.ko", perhaps compressed. */
static bool lists_module(const struct doctor_host *host, const char *list, const char *module)
{
	char line[4096], want[64];
	bool found = false;
	FILE *file = file_open(host, "/lib/modules/%s/%s", host->release, list);

	snprintf(want, sizeof(want), "/%s.ko", module);
	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, ":\n")] = '\0';
		found = strstr(line, want);
	}
	if (file)
		fclose(file);
	return found;
}

/* The command that installs the package where distributions keep the modules that their default kernel does not have.
 * False: not known. */
static bool find_package(const struct doctor_host *host, char *command, size_t size)
{
	char line[256];
	FILE *file = file_open(host, "/etc/os-release");
	bool ubuntu = false, debian = false, fedora = false;

	while (file && fgets(line, sizeof(line), file)) {
		ubuntu |= !strncmp(line, "ID=ubuntu", 9);
		debian |= !strncmp(line, "ID=debian", 9);
		fedora |= !strncmp(line, "ID=fedora", 9);
	}
	if (file)
		fclose(file);
	debian = debian && strstr(host->release, "cloud");
	if (ubuntu)
		snprintf(command, size, "sudo apt install linux-modules-extra-%s", host->release);
	else if (debian)
		snprintf(command, size,
			 "sudo apt install linux-image-amd64, and start that kernel: cloud kernels have no RDMA");
	else if (fedora)
		snprintf(command, size, "sudo dnf install kernel-modules-extra-%s", host->release);
	return ubuntu || debian || fedora;
}

void doctor_module_missing(const struct doctor_host *host, const char *module, char text[DOCTOR_MISSING_CHARS])
{
	char command[200];

	if (!file_access(host, F_OK, "/lib/modules/%s", host->release))
		snprintf(
			text, DOCTOR_MISSING_CHARS,
			"this kernel (%s) has no %s, and there is no /lib/modules/%s: a container, or a kernel without "
			"modules. No package helps; in a container, load the module on the machine itself: sudo "
			"modprobe %s",
			host->release, module, host->release, module);
	else if (find_package(host, command, sizeof(command)))
		snprintf(text, DOCTOR_MISSING_CHARS,
			 "this kernel (%s) has no module %s. This distribution has more modules in another package: %s",
			 host->release, module, command);
	else
		snprintf(text, DOCTOR_MISSING_CHARS,
			 "this kernel (%s) has no module %s. It may be in a package of its own, or in another kernel",
			 host->release, module);
}

static void examine_soft_roce(const struct examination *x)
{
	const struct doctor_host *host = x->host;
	struct finding *finding;
	char command[200];

	if (file_access(host, F_OK, "/sys/module/rdma_rxe")) {
		finding = finding_add(x->findings, FINDING_NOTE, "soft-roce", "the kernel's Soft-RoCE is loaded");
		finding_proof(finding, "/sys/module/rdma_rxe exists");
		finding_fix(finding, "`rdma link` lists its devices; `sudo roci setup rxe IFACE` makes one");
	} else if (lists_module(host, "modules.dep", "rdma_rxe") || lists_module(host, "modules.builtin", "rdma_rxe")) {
		finding = finding_add(x->findings, FINDING_NOTE, "soft-roce",
				      "the kernel's Soft-RoCE is not loaded; root can load it");
		finding_proof(finding, "/lib/modules/%s has rdma_rxe", host->release);
		finding_fix(finding, "sudo roci setup rxe IFACE");
	} else {
		finding = finding_add(x->findings, FINDING_NOTE, "soft-roce",
				      "the kernel's Soft-RoCE is not available here");
		if (file_access(host, F_OK, "/lib/modules/%s", host->release)) {
			finding_proof(finding, "/lib/modules/%s has no rdma_rxe", host->release);
			finding_fix(finding, "%s",
				    find_package(host, command, sizeof(command)) ? command : ROCI0_INSTEAD);
		} else { /* no package helps */
			finding_proof(finding, "there is no /lib/modules/%s: a container, or a kernel without modules",
				      host->release);
			finding_fix(finding, ROCI0_INSTEAD);
		}
	}
}

void doctor_kernel(struct findings *findings, const struct doctor_host *host)
{
	struct examination x = {findings, host, NULL};

	if (file_each(host, DEVICES, examine_device, &x)) {
		file_each(host, "/sys/class/infiniband_verbs", examine_uverbs, &x);
		examine_rdma_cm(&x);
	} else {
		struct finding *finding =
			finding_add(findings, FINDING_NOTE, "kernel-devices",
				    "this machine has no RDMA device of its own; roci0 takes its place");
		finding_proof(finding,
			      file_access(host, F_OK, DEVICES) ? DEVICES " is empty" : DEVICES " does not exist");
	}
	examine_soft_roce(&x);
}
