/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces and their MTU, UDP port 4791, packet filters. */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/port_holder.h"
#include "doctor/doctor.h"
#include "doctor/files.h"
#include "wire/gid.h"
#include "wire/mtu.h"
#include "wire/packet.h"

#define SHOW_HOLDER "`sudo ss -ulnp sport = :%d`"

union address {
	struct sockaddr any;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static socklen_t address_len(const union address *address)
{
	return address->any.sa_family == AF_INET ? sizeof(address->in4) : sizeof(address->in6);
}

static const char *address_text(const union address *address, char text[INET6_ADDRSTRLEN])
{
	const void *bytes = address->any.sa_family == AF_INET ? (const void *)&address->in4.sin_addr
							      : (const void *)&address->in6.sin6_addr;
	return inet_ntop(address->any.sa_family, bytes, text, INET6_ADDRSTRLEN);
}

static int interface_mtu(const char *name)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = -1;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (fd >= 0 && !ioctl(fd, SIOCGIFMTU, &request))
		mtu = request.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return mtu;
}

/* ---- who has UDP port 4791 ---- */

struct holder {
	struct roci_port_holder socket; /* inode 0: the kernel itself */
	unsigned fit;                   /* roci_port_fit(); 0: there is none */
	int pid;                        /* 0: not seen; another user's */
	char program[32];
};

struct search {
	uint8_t gid[16];
	struct holder best;
};

static bool see_socket(void *context, const struct roci_port_holder *socket)
{
	struct search *search = context;
	unsigned fit = roci_port_fit(socket->gid, search->gid);

	if (fit > search->best.fit) {
		search->best.socket = *socket;
		search->best.fit = fit;
	}
	return true;
}

/* The socket that receives what comes to port 4791 of the address. */
static struct holder find_socket(const struct doctor_host *host, const union address *address)
{
	struct search search = {0};
	char folder[PATH_MAX];

	if (address->any.sa_family == AF_INET)
		roci_gid_from_ipv4(search.gid, &address->in4.sin_addr);
	else
		memcpy(search.gid, &address->in6.sin6_addr, sizeof(search.gid));
	snprintf(folder, sizeof(folder), "%s/proc/net", host->root);
	roci_all_port_holders(folder, see_socket, &search);
	return search.best;
}

static bool process_has(int pid, const char *want)
{
	char folder[64], path[128], target[64];
	struct dirent *entry;
	bool has = false;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	dir = opendir(folder);
	while (dir && !has && (entry = readdir(dir))) {
		ssize_t len;

		snprintf(path, sizeof(path), "%s/%.32s", folder, entry->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
		has = !strcmp(target, want);
	}
	if (dir)
		closedir(dir);
	return has;
}

/* Only processes whose descriptors this user may see are found. */
static void find_process(struct holder *holder)
{
	char want[64];
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	snprintf(want, sizeof(want), "socket:[%u]", holder->socket.inode);
	while (proc && !holder->pid && (entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]) && process_has(atoi(entry->d_name), want))
			holder->pid = atoi(entry->d_name);
	}
	if (proc)
		closedir(proc);
}

static void describe_holder(const struct doctor_host *host, const union address *address, struct finding *finding)
{
	struct holder holder = find_socket(host, address);

	if (holder.fit && holder.socket.inode)
		find_process(&holder);
	if (holder.pid && !file_line(host, holder.program, sizeof(holder.program), "/proc/%d/comm", holder.pid))
		strcpy(holder.program, "?");
	if (holder.pid) {
		finding_proof(finding, "/proc/%d/fd has the socket: it is %s of uid %u", holder.pid, holder.program,
			      holder.socket.uid);
		finding_fix(finding, "end process %d, or use an address that it has not bound", holder.pid);
	} else if (holder.fit) {
		finding_proof(finding, "/proc/net/%s: a socket of uid %u; no process that this user may inspect has it",
			      address->any.sa_family == AF_INET ? "udp" : "udp6", holder.socket.uid);
		finding_fix(finding,
			    SHOW_HOLDER " shows who; where it names no process, it is the kernel: "
					"sudo modprobe -r rdma_rxe",
			    ROCI_UDP_PORT);
	} else {
		finding_proof(finding, "bind(2) says: address already in use");
		finding_fix(finding, SHOW_HOLDER " shows who", ROCI_UDP_PORT);
	}
}

/* How many processes of this network namespace, whoever's, have a roci0: each has a side door with a name. */
static unsigned count_doors(const struct doctor_host *host)
{
	FILE *file = file_open(host, "/proc/net/unix");
	char line[512];
	unsigned n = 0;

	while (file && fgets(line, sizeof(line), file))
		n += strstr(line, "@roci/door/") != NULL;
	if (file)
		fclose(file);
	return n;
}

/* The process that has the port may be another user's roci0, which forwards. Only roci0 finds that out. */
static bool may_be_neighbour(const struct doctor_host *host, const union address *address)
{
	struct holder holder = find_socket(host, address);

	return holder.fit && holder.socket.inode && holder.socket.uid != geteuid() && count_doors(host);
}

static void warn_of_neighbour(struct findings *findings, const struct doctor_host *host, const char *interface,
			      const char *address)
{
	struct finding *finding = finding_add(
		findings, FINDING_WARNING, "port-4791",
		"UDP port %d of %s (%s) is another user's. If roci0 runs there, it forwards what is for yours",
		ROCI_UDP_PORT, address, interface);

	finding_proof(finding, "/proc/net/unix: %u processes of this network have a roci0", count_doors(host));
	finding_fix(finding,
		    "run your program: it prints a line where nobody forwards; " SHOW_HOLDER " shows who has the port",
		    ROCI_UDP_PORT);
}

/* Whether a process of this user could bind the port: roci0's processes share it. */
static int try_bind(union address address)
{
	int fd = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, err = 0;

	if (fd < 0)
		return -errno;
	address.in4.sin_port = htons(ROCI_UDP_PORT); /* sin6_port is at the same place */
	if (address.any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (bind(fd, &address.any, address_len(&address)))
		err = -errno;
	close(fd);
	return err;
}

static void examine_port(struct findings *findings, const struct doctor_host *host, const char *interface,
			 const union address *address)
{
	char text[INET6_ADDRSTRLEN];
	int err = try_bind(*address);
	struct finding *finding;

	address_text(address, text);
	if (!err)
		return;
	if (err == -EADDRINUSE && may_be_neighbour(host, address)) {
		warn_of_neighbour(findings, host, interface, text);
		return;
	}
	finding = finding_add(findings, FINDING_PROBLEM, "port-4791",
			      "UDP port %d of %s (%s) cannot be had: other hosts cannot reach roci0 there",
			      ROCI_UDP_PORT, text, interface);
	if (err == -EADDRINUSE) {
		describe_holder(host, address, finding);
	} else {
		finding_proof(finding, "bind(2): %s", strerror(-err));
		finding_fix(finding, "`ip addr show dev %s` shows the state of its addresses", interface);
	}
}

/* ---- interfaces ---- */

static void examine_interface(struct findings *findings, const char *name, const char *addresses)
{
	int mtu = interface_mtu(name);
	unsigned payload = mtu > 0 ? roci_mtu_bytes(roci_mtu_code_of_interface((uint32_t)mtu)) : 0;
	struct finding *finding =
		finding_add(findings, FINDING_OK, "interface", "%s: %s; its MTU of %d carries RDMA packets of %u bytes",
			    name, addresses, mtu, payload);
	finding_proof(finding, "getifaddrs(3), SIOCGIFMTU");
	if (payload < 4096)
		finding_fix(
			finding,
			"for packets of 4096 bytes, where all switches between allow it: sudo ip link set %s mtu 9000",
			name);
}

static bool usable(const struct ifaddrs *i)
{
	return i->ifa_addr && (i->ifa_flags & IFF_UP) &&
	       (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
}

/* All addresses of one interface make one finding. */
static void examine_interfaces(struct findings *findings, const struct doctor_host *host, const struct ifaddrs *list)
{
	char done[32][IF_NAMESIZE];
	unsigned count = 0, remote = 0;

	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		char addresses[256] = "", text[INET6_ADDRSTRLEN];
		bool again = false;

		for (unsigned k = 0; k < count; k++)
			again |= !strcmp(done[k], i->ifa_name);
		if (!usable(i) || again || count == sizeof(done) / sizeof(done[0]))
			continue;
		snprintf(done[count++], IF_NAMESIZE, "%s", i->ifa_name);
		for (const struct ifaddrs *k = i; k; k = k->ifa_next) {
			const union address *address = (const void *)k->ifa_addr;
			size_t len = strlen(addresses);

			if (!usable(k) || strcmp(k->ifa_name, i->ifa_name))
				continue;
			snprintf(addresses + len, sizeof(addresses) - len, "%s%s", len ? ", " : "",
				 address_text(address, text));
			examine_port(findings, host, i->ifa_name, address);
		}
		if (i->ifa_flags & IFF_LOOPBACK)
			continue;
		examine_interface(findings, i->ifa_name, addresses);
		remote++;
	}
	if (!count) {
		struct finding *finding =
			finding_add(findings, FINDING_PROBLEM, "interface",
				    "no interface is up with an address: nothing can be sent, not even to "
				    "this machine");
		finding_proof(finding, "getifaddrs(3) lists none");
		finding_fix(finding, "sudo ip link set lo up");
	} else if (!remote) {
		struct finding *finding =
			finding_add(findings, FINDING_WARNING, "interface",
				    "no interface but loopback is up with an address: RDMA works between processes of "
				    "this machine only");
		finding_proof(finding, "getifaddrs(3) lists no other");
		finding_fix(finding, "`ip -brief addr` shows all; sudo ip link set IFACE up");
	}
	if (count && !finding_find(findings, "port-4791"))
		finding_proof(finding_add(findings, FINDING_OK, "port-4791", "UDP port %d can be had on every address",
					  ROCI_UDP_PORT),
			      "bind(2), as roci0 does it");
}

/* A filter may let the port pass or not: only a packet through it proves that. */
static void examine_filter(struct findings *findings, const struct doctor_host *host)
{
	FILE *file = file_open(host, "/proc/modules");
	char line[256], name[64], module[64] = "";
	long users;
	struct finding *finding;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %*u %ld", name, &users) == 2 && users > 0 &&
		    (!strcmp(name, "nf_tables") || !strcmp(name, "ip_tables")))
			strcpy(module, name);
	}
	if (file)
		fclose(file);
	if (!*module)
		return;
	finding = finding_add(
		findings, FINDING_NOTE, "packet-filter",
		"a packet filter may be active; it must let UDP port %d in for hosts that connect to this one",
		ROCI_UDP_PORT);
	finding_proof(finding, "/proc/modules: %s is in use", module);
	finding_fix(finding, "`sudo nft list ruleset` shows the rules; `roci doctor HOST` sends packets both ways");
}

void doctor_network(struct findings *findings, const struct doctor_host *host)
{
	struct ifaddrs *list;

	if (getifaddrs(&list)) {
		struct finding *finding = finding_add(findings, FINDING_PROBLEM, "interface",
						      "the addresses of this machine cannot be read");
		finding_proof(finding, "getifaddrs(3): %s", strerror(errno));
		finding_fix(finding, "`ip addr` shows whether others can; a sandbox may forbid netlink sockets");
		return;
	}
	examine_interfaces(findings, host, list);
	freeifaddrs(list);
	examine_filter(findings, host);
}
