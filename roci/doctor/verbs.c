/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices that libibverbs shows to this process, and what a program can do with them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "doctor/doctor.h"
#include "wire/gid.h"
#include "wire/mtu.h"

static const char *gid_type(const struct ibv_gid_entry *gid)
{
	switch (gid->gid_type) {
	case IBV_GID_TYPE_IB: return "InfiniBand";
	case IBV_GID_TYPE_ROCE_V1: return "RoCE v1";
	default: return "RoCE v2";
	}
}

static void gid_text(const union ibv_gid *gid, char text[INET6_ADDRSTRLEN])
{
	if (roci_gid_is_ipv4(gid->raw))
		inet_ntop(AF_INET, gid->raw + ROCI_GID_IPV4_AT, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid->raw, text, INET6_ADDRSTRLEN);
}

static bool is_link_local(const struct ibv_gid_entry *gid)
{
	return gid->gid_type == IBV_GID_TYPE_ROCE_V2 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)gid->gid.raw);
}

/* A RoCE v2 GID of an address that many hosts reach: IPv4, IPv6, on the same link, on this machine. */
static int rank(const struct ibv_gid_entry *gid)
{
	if (gid->gid_type == IBV_GID_TYPE_IB)
		return 1;
	if (gid->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 0;
	if (IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)gid->gid.raw))
		return 1;
	if (roci_gid_is_ipv4(gid->gid.raw))
		return gid->gid.raw[ROCI_GID_IPV4_AT] == 127 ? 1 : 4;
	return is_link_local(gid) ? 2 : 3;
}

static void examine_gids(struct findings *findings, struct ibv_context *context, const char *device, uint32_t port,
			 const char *source)
{
	struct ibv_gid_entry table[256];
	ssize_t count = ibv_query_gid_table(context, table, sizeof(table) / sizeof(table[0]), 0);
	const struct ibv_gid_entry *best = NULL;
	char list[256] = "", text[INET6_ADDRSTRLEN];
	bool sought = false;
	struct finding *finding;

	for (ssize_t i = 0; i < count; i++) {
		size_t len = strlen(list);

		if (table[i].port_num != port)
			continue;
		gid_text(&table[i].gid, text);
		snprintf(list + len, sizeof(list) - len, "%s%u: %s (%s)", len ? ", " : "", table[i].gid_index, text,
			 gid_type(&table[i]));
		if (sought || !rank(&table[i]))
			continue;
		sought = !strcmp(text, source);
		if (sought || !best || rank(&table[i]) > rank(best))
			best = &table[i];
	}
	if (!best) {
		finding = finding_add(findings, FINDING_PROBLEM, "gid", "%s: port %u has no GID that other hosts reach",
				      device, port);
		finding_proof(finding, "ibv_query_gid_table(3): %s",
			      count < 0 ? strerror((int)-count)
			      : *list   ? list
					: "empty");
		finding_fix(finding, "give the interface an IP address");
		return;
	}
	gid_text(&best->gid, text);
	finding =
		finding_add(findings, FINDING_OK, "gid", "%s: use GID index %u (%s, %s) for %s", device,
			    best->gid_index, text, gid_type(best),
			    sought                ? "that host"
			    : is_link_local(best) ? "hosts on the same link; others need an IP address of the interface"
						  : "hosts that reach that address");
	finding_proof(finding, "GID table: %s", list);
	finding_fix(finding, "perftest: -d %s -x %u; libibverbs examples: -d %s -g %u", device, best->gid_index, device,
		    best->gid_index);
}

static void examine_port(struct findings *findings, struct ibv_context *context, const char *device, uint32_t port,
			 const char *source)
{
	struct ibv_port_attr attr;
	struct finding *finding;
	int err = ibv_query_port(context, (uint8_t)port, &attr);

	if (err) {
		finding = finding_add(findings, FINDING_PROBLEM, "port", "%s: port %u cannot be queried", device, port);
		finding_proof(finding, "ibv_query_port(3): %s", strerror(err));
		finding_fix(finding, "`sudo dmesg | grep %s` shows what the kernel says of it", device);
		return;
	}
	finding = finding_add(findings, attr.state == IBV_PORT_ACTIVE ? FINDING_OK : FINDING_WARNING, "port",
			      "%s: port %u is %s, with an MTU of %u (at most %u)", device, port,
			      ibv_port_state_str(attr.state), roci_mtu_bytes(attr.active_mtu),
			      roci_mtu_bytes(attr.max_mtu));
	finding_proof(finding, "ibv_query_port(3)");
	if (attr.state != IBV_PORT_ACTIVE) {
		finding_fix(finding, "bring its network interface up: ip link set IFACE up");
	} else {
		if (attr.active_mtu < attr.max_mtu && !strncmp(device, "roci", 4))
			finding_fix(finding,
				    "ask for a path MTU of %u: what a program asks for above that goes in IP "
				    "fragments, more "
				    "slowly",
				    roci_mtu_bytes(attr.active_mtu));
		examine_gids(findings, context, device, port, source);
	}
}

/* What each program needs: a protection domain, a completion queue, a region, a queue pair. */
static void examine_objects(struct findings *findings, struct ibv_context *context, const char *device)
{
	static char bytes[4096];
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
	const char *missing = !pd   ? "ibv_alloc_pd"
			      : !cq ? "ibv_create_cq"
			      : !mr ? "ibv_reg_mr"
			      : !qp ? "ibv_create_qp"
				    : NULL;
	int err = errno;

	if (missing) {
		struct finding *finding = finding_add(findings, FINDING_PROBLEM, "objects",
						      "%s: a program cannot make the objects that it needs", device);
		finding_proof(finding, "%s(3): %s", missing, strerror(err));
		finding_fix(finding, "`roci explain '%s: %s'` has the usual causes", missing, strerror(err));
	}
	if (qp)
		ibv_destroy_qp(qp);
	if (mr)
		ibv_dereg_mr(mr);
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
}

static void examine_device(struct findings *findings, struct ibv_device *device, const char *source)
{
	const char *name = ibv_get_device_name(device);
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_device_attr attr;

	if (!context) {
		struct finding *finding = finding_add(findings, FINDING_PROBLEM, "open", "%s cannot be opened", name);
		finding_proof(finding, "ibv_open_device(3): %s", strerror(errno));
		finding_fix(finding, strcmp(name, "roci0") ? "`ls -l /dev/infiniband` shows who may open it"
							   : "`roci run -- ibv_devinfo` says why");
		return;
	}
	if (!ibv_query_device(context, &attr)) {
		for (uint32_t port = 1; port <= attr.phys_port_cnt; port++)
			examine_port(findings, context, name, port, source);
	}
	examine_objects(findings, context, name);
	ibv_close_device(context);
}

void doctor_verbs(struct findings *findings, const char *source)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (size_t i = 0; list && list[i]; i++)
		examine_device(findings, list[i], source);
	if (list)
		ibv_free_device_list(list);
}
