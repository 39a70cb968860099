/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/ends.h"

#include <arpa/inet.h>
#include <string.h>

#include <jansson.h>

#include "wire/gid.h"

#define IPV4_BITS 96 /* of a GID, in front of the address's own */

/* ---- reading ---- */

static bool parse_end(const json_t *object, struct end *end)
{
	const char *gid = json_string_value(json_object_get(object, "gid"));
	const char *type = json_string_value(json_object_get(object, "gid_type"));

	if (!gid || !type)
		return false;
	snprintf(end->gid, sizeof(end->gid), "%s", gid);
	snprintf(end->type, sizeof(end->type), "%s", type);
	end->prefix = (unsigned)json_integer_value(json_object_get(object, "prefix"));
	end->port_mtu = (unsigned)json_integer_value(json_object_get(object, "port_mtu"));
	end->network_mtu = (unsigned)json_integer_value(json_object_get(object, "network_mtu"));
	return true;
}

bool ends_parse(const char *line, struct end *near, struct end *far)
{
	json_t *start = line ? json_loads(line, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	bool both = parse_end(json_object_get(start, "near_end"), near) &&
		    parse_end(json_object_get(start, "far_end"), far);

	json_decref(start);
	return both;
}

/* ---- GIDs ---- */

static void to_gid(const char *text, uint8_t gid[16])
{
	struct in_addr ipv4;

	memset(gid, 0, 16);
	if (inet_pton(AF_INET, text, &ipv4) == 1)
		roci_gid_from_ipv4(gid, &ipv4);
	else
		inet_pton(AF_INET6, text, gid);
}

static const char *family(const char *text)
{
	return strchr(text, ':') ? "IPv6" : "IPv4";
}

#define KIND_CHARS 32

/* "RoCE v2 over IPv4". InfiniBand has no IP packets. */
static const char *kind(const struct end *end, char text[KIND_CHARS])
{
	bool ip = strcmp(end->type, "InfiniBand") != 0;

	snprintf(text, KIND_CHARS, "%s%s%s", end->type, ip ? " over " : "", ip ? family(end->gid) : "");
	return text;
}

static void compare_gids(struct findings *findings, const struct end *near, const struct end *far)
{
	char here[KIND_CHARS], there[KIND_CHARS];
	bool same = !strcmp(kind(near, here), kind(far, there));
	struct finding *finding;

	if (!strcmp(far->type, "unknown") || !strcmp(near->type, "unknown"))
		finding = finding_add(findings, FINDING_NOTE, "ends-gid",
				      "%s does not tell the type of its GID: an older Rocinante or kernel",
				      strcmp(near->type, "unknown") ? far->gid : near->gid);
	else if (same)
		finding = finding_add(findings, FINDING_OK, "ends-gid", "both ends use %s: %s here, %s there", here,
				      near->gid, far->gid);
	else
		finding = finding_add(findings, FINDING_PROBLEM, "ends-gid",
				      "the ends do not use the same kind of GID, so neither understands the other: "
				      "%s here, %s there",
				      here, there);
	finding_proof(finding, "the GID of each end's queue pair: %s (%s) and %s (%s)", near->gid, near->type, far->gid,
		      far->type);
	if (finding->level == FINDING_PROBLEM)
		finding_fix(finding, "`ibv_devinfo -v` at each end lists the GIDs with their types: choose one of the "
				     "same type and family at both");
}

/* ---- MTU ---- */

/* One end's interface carries less than its port allows. */
static void look_for_fragments(struct findings *findings, const struct end *end, const char *where)
{
	struct finding *finding;

	if (!end->network_mtu || end->port_mtu <= end->network_mtu)
		return;
	finding = finding_add(findings, FINDING_WARNING, "ends-fragments",
			      "%s, packets go in IP fragments unless the program asks for a path MTU of %u: slower, "
			      "and lost where something drops fragments",
			      where, end->network_mtu);
	finding_proof(finding, "the port's active MTU is %u, and the interface of %s carries %u whole", end->port_mtu,
		      end->gid, end->network_mtu);
	finding_fix(finding, "perftest and ibv_rc_pingpong: -m %u; or a larger MTU of the interface", end->network_mtu);
}

static void compare_mtu(struct findings *findings, const struct end *near, const struct end *far)
{
	unsigned less = near->network_mtu < far->network_mtu ? near->network_mtu : far->network_mtu;
	struct finding *finding;

	look_for_fragments(findings, near, "here");
	look_for_fragments(findings, far, "there");
	if (!near->network_mtu || !far->network_mtu)
		return;
	if (near->network_mtu == far->network_mtu) {
		finding = finding_add(findings, FINDING_OK, "ends-mtu",
				      "the interfaces of both ends carry RDMA packets of %u bytes", less);
	} else {
		finding = finding_add(findings, FINDING_WARNING, "ends-mtu",
				      "the interfaces differ: RDMA packets of %u bytes here, %u there; use a path MTU "
				      "of %u with this host",
				      near->network_mtu, far->network_mtu, less);
		finding_fix(finding,
			    "perftest and ibv_rc_pingpong: -m %u at both ends; or give both interfaces the same MTU",
			    less);
	}
	finding_proof(finding, "SIOCGIFMTU of the interface that has %s, and of the one that has %s", near->gid,
		      far->gid);
}

/* ---- subnets ---- */

/* Whether `other` is in the subnet of `end`. */
static bool is_near(const struct end *end, const struct end *other)
{
	unsigned bits = end->prefix + (strchr(end->gid, ':') ? 0 : IPV4_BITS);
	uint8_t a[16], b[16];

	to_gid(end->gid, a);
	to_gid(other->gid, b);
	for (unsigned i = 0; i < bits && i < 128; i++) {
		if ((a[i / 8] ^ b[i / 8]) & 0x80 >> i % 8)
			return false;
	}
	return true;
}

static void compare_subnets(struct findings *findings, const struct end *near, const struct end *far)
{
	bool here = is_near(near, far), there = is_near(far, near);
	struct finding *finding;

	if (!near->prefix || !far->prefix)
		return;
	if (here && there && near->prefix == far->prefix) {
		finding = finding_add(findings, FINDING_OK, "ends-subnet", "both ends are in one subnet");
	} else if (!here && !there) {
		finding = finding_add(findings, FINDING_NOTE, "ends-subnet",
				      "the ends are in different subnets: routers carry RoCE v2 between them, and "
				      "nothing else of RoCE");
		finding_fix(finding, "`tracepath %s` shows the routers and the MTU of the path", far->gid);
	} else {
		finding = finding_add(findings, here && there ? FINDING_WARNING : FINDING_PROBLEM, "ends-subnet",
				      "the ends have different masks: /%u here, /%u there%s", near->prefix, far->prefix,
				      here && there ? "; other hosts may be near for one and far for the other"
				      : here        ? "; the far end looks for this host behind a router"
						    : "; this host looks for the far end behind a router");
		finding_fix(finding, "give both interfaces the same prefix length: ip addr show, ip addr replace");
	}
	finding_proof(finding, "%s/%u here, %s/%u there", near->gid, near->prefix, far->gid, far->prefix);
}

void ends_compare(struct findings *findings, const struct end *near, const struct end *far)
{
	compare_gids(findings, near, far);
	compare_mtu(findings, near, far);
	compare_subnets(findings, near, far);
}
