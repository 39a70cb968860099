/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of the tree: attributes of roci0, its port and its GIDs. And the public functions that read sysfs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/rundir.h"
#include "device/say.h"
#include "verbs/context.h"
#include "verbs/sysfs/sysfs.h"
#include "verbs/sysfs/tree.h"

#define IBDEV           "class/infiniband/roci0"
#define UVERBS          "class/infiniband_verbs/uverbs-roci0"
#define NO_PCI          "ffff:ff:1f.7" /* an address that no machine has */
#define PCI_ADDRESS_MAX 32

/* The tree's path; NULL: not written yet, or there is none. It changes with what the files say. Readers take no lock,
 * and programs keep it: the former paths stay valid for some changes. */
static _Atomic(const char *) root;
static atomic_uint written_at; /* roci_device_gid_changes() when it was written */

static void set_root(const char *path)
{
	static char last[1 + VB_TREE_FORMER][VB_TREE_PATH_MAX];
	static unsigned n;
	const char *old = atomic_load(&root);
	if (old && path && !strcmp(old, path))
		return;
	if (path)
		path = memcpy(last[n++ % (1 + VB_TREE_FORMER)], path, VB_TREE_PATH_MAX);
	atomic_store(&root, path);
}

static void put(FILE *out, const char *path, const char *content)
{
	fprintf(out, "%s\n%s%c", path, content, '\0');
}

static void put_number(FILE *out, const char *dir, int n, const char *content)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%d", dir, n);
	put(out, path, content);
}

/* The PCI address of the adapter behind an interface, or NO_PCI: the last one in the real path of its device. */
static void pci_address(const char *ifname, char address[PCI_ADDRESS_MAX])
{
	char path[64], *real, rest;
	unsigned domain, bus, slot, function;
	snprintf(path, sizeof(path), "/sys/class/net/%.16s/device", ifname);
	snprintf(address, PCI_ADDRESS_MAX, NO_PCI);
	real = realpath(path, NULL);
	if (!real)
		return;
	for (char *slash; (slash = strrchr(real, '/')); *slash = '\0') {
		if (sscanf(slash + 1, "%x:%x:%x.%x%c", &domain, &bus, &slot, &function, &rest) == 4) {
			snprintf(address, PCI_ADDRESS_MAX, "%.31s", slash + 1);
			break;
		}
	}
	free(real);
}

/* `device` is a link, as in the kernel's sysfs, to a directory whose name is a PCI address: libfabric warns of others.
 */
static void put_device(FILE *out, const struct roci_gids *gids, const char *ifname)
{
	char address[PCI_ADDRESS_MAX], path[128];
	pci_address(ifname, address);
	snprintf(path, sizeof(path), "../../../devices/%s", address);
	put(out, IBDEV "/device@", path);
	snprintf(path, sizeof(path), "devices/%s/numa_node", address);
	put(out, path, "-1\n");
	for (int i = 0; i < gids->count; i++) {
		if (!roci_gid_is_present(&gids->entries[i]))
			continue;
		snprintf(path, sizeof(path), "devices/%s/net/%.16s/", address, gids->entries[i].ifname);
		put(out, path, "");
	}
}

/* An empty place has a GID of zeroes, and no other files: reading those of the kernel fails. */
static void put_gid(FILE *out, const struct roci_gid_entry *entry, int n)
{
	static const uint8_t none[16];
	bool present = roci_gid_is_present(entry);
	const uint8_t *gid = present ? entry->gid : none;
	char text[96], *p = text;
	for (int i = 0; i < 16; i += 2)
		p += sprintf(p, "%02x%02x%c", gid[i], gid[i + 1], i < 14 ? ':' : '\n');
	put_number(out, IBDEV "/ports/1/gids", n, text);
	if (!present)
		return;
	put_number(out, IBDEV "/ports/1/gid_attrs/types", n, "RoCE v2\n");
	snprintf(text, sizeof(text), "%.16s\n", entry->ifname);
	put_number(out, IBDEV "/ports/1/gid_attrs/ndevs", n, text);
}

static void put_rate(FILE *out, const char *ifname)
{
	static const struct {
		uint8_t code;
		unsigned tenths_gbps;
		const char *name;
	} speeds[] = {{1, 25, "SDR"},   {2, 50, "DDR"},   {4, 100, "QDR"},
		      {32, 250, "EDR"}, {64, 500, "HDR"}, {128, 1000, "NDR"}};
	uint8_t width, speed;
	vb_port_speed(ifname, &width, &speed);
	size_t i = 0;
	while (i < sizeof(speeds) / sizeof(speeds[0]) - 1 && speeds[i].code != speed)
		i++;
	unsigned lanes = width == 1 ? 1 : 4, total = lanes * speeds[i].tenths_gbps;
	char text[48];
	if (total % 10)
		snprintf(text, sizeof(text), "%u.%u Gb/sec (%uX %s)\n", total / 10, total % 10, lanes, speeds[i].name);
	else
		snprintf(text, sizeof(text), "%u Gb/sec (%uX %s)\n", total / 10, lanes, speeds[i].name);
	put(out, IBDEV "/ports/1/rate", text);
}

static void describe(FILE *out, const struct roci_gids *gids, __be64 guid)
{
	const struct roci_gid_entry *first = roci_gids_first(gids);
	const char *ifname = first ? first->ifname : "lo";
	uint8_t g[8];
	char text[32];
	memcpy(g, &guid, sizeof(g));
	snprintf(text, sizeof(text), "%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", g[0], g[1], g[2], g[3], g[4], g[5], g[6],
		 g[7]);
	put(out, IBDEV "/node_guid", text);
	put(out, IBDEV "/sys_image_guid", text);
	put(out, IBDEV "/node_type", "1: CA\n");
	put(out, IBDEV "/node_desc", "Rocinante\n");
	put(out, IBDEV "/fw_ver", ROCI_VERSION "\n");
	put(out, IBDEV "/hca_type", "Rocinante\n");
	put_device(out, gids, ifname);
	put(out, IBDEV "/ports/1/state", first ? "4: ACTIVE\n" : "1: DOWN\n");
	put(out, IBDEV "/ports/1/phys_state", first ? "5: LinkUp\n" : "3: Disabled\n");
	put(out, IBDEV "/ports/1/link_layer", "Ethernet\n");
	put(out, IBDEV "/ports/1/lid", "0x0\n");
	put(out, IBDEV "/ports/1/lid_mask_count", "0\n");
	put(out, IBDEV "/ports/1/sm_lid", "0x0\n");
	put(out, IBDEV "/ports/1/sm_sl", "0\n");
	put(out, IBDEV "/ports/1/cap_mask", "0x04010000\n");
	put(out, IBDEV "/ports/1/pkeys/0", "0xffff\n");
	put_rate(out, ifname);
	for (int i = 0; i < ROCI_MAX_GIDS; i++)
		put_gid(out, &gids->entries[i], i);
	put(out, UVERBS "/ibdev", "roci0\n");
	put(out, UVERBS "/abi_version", "1\n");
	put(out, "class/infiniband_verbs/abi_version", "6\n");
}

void vb_sysfs_refresh(struct ibv_device *device, const struct roci_gids *gids, __be64 guid)
{
	char path[VB_TREE_PATH_MAX], *text = NULL;
	size_t len = 0;
	static bool warned;
	int err = -ENOMEM;
	FILE *out = open_memstream(&text, &len);
	if (out) {
		describe(out, gids, guid);
		if (!fclose(out))
			err = vb_tree_write(text, len, path);
		free(text);
	}
	bool written = !err;
	if (err && !warned)
		roci_device_say(
			"roci: cannot write the sysfs files of roci0 (in /dev/shm, /tmp or $XDG_RUNTIME_DIR; or in "
			"$ROCI_RUNDIR): %s; programs that read them do not find them\n",
			roci_rundir_reason(err));
	warned = warned || err;
	set_root(written ? path : NULL);
	const char *base = written ? path : "/sys";
	snprintf(device->ibdev_path, sizeof(device->ibdev_path), "%s/" IBDEV, base);
	snprintf(device->dev_path, sizeof(device->dev_path), "%s/" UVERBS, base);
}

void vb_sysfs_current(void)
{
	atomic_store(&written_at, roci_device_gid_changes());
}

/* The events that tell of a change come later than the new table, so they would not do. */
static bool outdated(void)
{
	return atomic_load(&written_at) != roci_device_gid_changes();
}

const char *vb_sysfs_root(void)
{
	const char *path = atomic_load(&root);
	if (!path || outdated()) {
		ibv_free_device_list(ibv_get_device_list(NULL));
		path = atomic_load(&root);
	}
	return path;
}

const char *ibv_get_sysfs_path(void)
{
	const char *path = vb_sysfs_root();
	return path ? path : "/sys";
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[2 * IBV_SYSFS_PATH_MAX];
	if (!dir || !file || !buf || !size) {
		errno = EINVAL;
		return -1;
	}
	if (outdated())
		vb_sysfs_root(); /* changes ibdev_path, which may be `dir` */
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t len = read(fd, buf, size);
	close(fd);
	if (len <= 0)
		return (int)len;
	/* A full buffer stays without a terminator, as in rdma-core. */
	if (buf[len - 1] == '\n')
		buf[--len] = '\0';
	else if ((size_t)len < size)
		buf[len] = '\0';
	return (int)len;
}
