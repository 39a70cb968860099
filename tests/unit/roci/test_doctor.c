/* SPDX-License-Identifier: BSD-2-Clause */
/* What `roci doctor` says of a kernel: /sys, /dev, /proc and /lib are a folder that the test fills. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/doctor.h"

#define RELEASE "6.1.0-test"

static char root[64];
static struct findings findings;

static void remove_root(void)
{
	char command[128];

	if (*root) {
		snprintf(command, sizeof(command), "rm -rf %s", root);
		assert_int_equal(system(command), 0);
	}
	*root = '\0';
}

static int fresh_root(void **state)
{
	remove_root();
	strcpy(root, "/tmp/roci-doctor-XXXXXX");
	findings.count = 0;
	return !mkdtemp(root);
}

static int end_root(void **state)
{
	remove_root();
	return 0;
}

/* Makes a file, and the folders above it. */
static void put(const char *path, const char *content)
{
	char full[512], *slash;
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0777);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fputs(content, file);
	fclose(file);
}

/* No finding of the kernel is without its proof, and none that is worse than a note without something to do. */
static void check_findings(void)
{
	for (size_t i = 0; i < findings.count; i++) {
		const struct finding *f = &findings.list[i];

		if (!*f->proof || (!*f->fix && f->level > FINDING_NOTE))
			fail_msg("%s: '%s': proof '%s', fix '%s'", f->id, f->text, f->proof, f->fix);
	}
}

static void examine(void)
{
	doctor_kernel(&findings, &(struct doctor_host){.root = root, .release = RELEASE});
	check_findings();
}

static const struct finding *expect(const char *id, enum finding_level level, const char *text)
{
	const struct finding *finding = finding_find(&findings, id);

	if (!finding)
		fail_msg("no finding %s", id);
	assert_int_equal(finding->level, level);
	if (!strstr(finding->text, text))
		fail_msg("%s: '%s' is not in '%s'", id, text, finding->text);
	return finding;
}

static void expect_in(const char *text, const char *want)
{
	if (!strstr(text, want))
		fail_msg("'%s' is not in '%s'", want, text);
}

static void put_device(const char *state, const char *link_layer)
{
	put("/sys/class/infiniband/mlx5_0/ports/1/state", state);
	put("/sys/class/infiniband/mlx5_0/ports/1/link_layer", link_layer);
	put("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth7\n");
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
	put("/sys/class/infiniband_verbs/abi_version", "6\n");
}

static void nothing_at_all(void **state)
{
	put("/etc/os-release", "ID=ubuntu\n");
	examine();
	expect_in(expect("kernel-devices", FINDING_NOTE, "no RDMA device")->proof, "does not exist");
	expect_in(expect("soft-roce", FINDING_NOTE, "not available")->proof, "there is no /lib/modules/" RELEASE);
	expect_in(finding_find(&findings, "soft-roce")->fix, "use roci0");
	assert_int_equal(findings_worst(&findings), FINDING_NOTE);
}

static void active_device(void **state)
{
	put_device("4: ACTIVE\n", "Ethernet\n");
	put("/dev/infiniband/uverbs0", "");
	put("/dev/infiniband/rdma_cm", "");
	examine();
	expect("kernel-port", FINDING_OK, "mlx5_0, a device of this machine: port 1 is active (Ethernet)");
	assert_null(finding_find(&findings, "uverbs"));
	assert_null(finding_find(&findings, "rdma-cm"));
	assert_null(finding_find(&findings, "kernel-devices"));
}

static void port_down(void **state)
{
	put_device("1: DOWN\n", "Ethernet\n");
	put("/dev/infiniband/uverbs0", "");
	put("/dev/infiniband/rdma_cm", "");
	examine();
	const struct finding *finding = expect("kernel-port", FINDING_WARNING, "port 1 is not active");
	expect_in(finding->proof, "1: DOWN");
	expect_in(finding->fix, "ip link set eth7 up");
}

static void port_without_subnet_manager(void **state)
{
	put_device("2: INIT\n", "InfiniBand\n");
	char path[256];
	snprintf(path, sizeof(path), "%s/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", root);
	unlink(path);
	examine();
	expect_in(expect("kernel-port", FINDING_WARNING, "(InfiniBand)")->fix, "subnet manager");
}

static void container_without_character_devices(void **state)
{
	put_device("4: ACTIVE\n", "Ethernet\n");
	examine();
	expect_in(expect("uverbs", FINDING_PROBLEM, "uverbs0")->fix, "--device /dev/infiniband/uverbs0");
	expect_in(expect("rdma-cm", FINDING_PROBLEM, "rdma_cm")->fix, "modprobe rdma_ucm");
	assert_int_equal(findings_worst(&findings), FINDING_PROBLEM);
}

static void soft_roce_loaded(void **state)
{
	put("/sys/module/rdma_rxe/version", "1\n");
	examine();
	expect_in(expect("soft-roce", FINDING_NOTE, "is loaded")->proof, "/sys/module/rdma_rxe");
}

static void soft_roce_possible(void **state)
{
	put("/lib/modules/" RELEASE "/modules.dep", "kernel/drivers/infiniband/core/ib_core.ko:\nkernel/drivers/"
						    "infiniband/sw/rxe/rdma_rxe.ko.zst: kernel/net/ipv6.ko\n");
	examine();
	expect_in(expect("soft-roce", FINDING_NOTE, "root can load it")->fix, "roci setup rxe IFACE");
}

/* A module that others depend on stands behind a colon, and is no proof. */
static void soft_roce_in_another_package(void **state)
{
	put("/lib/modules/" RELEASE "/modules.dep", "kernel/fs/x.ko: kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko\n");
	put("/etc/os-release", "NAME=Ubuntu\nID=ubuntu\n");
	examine();
	const struct finding *finding = expect("soft-roce", FINDING_NOTE, "not available");
	expect_in(finding->proof, "has no rdma_rxe");
	expect_in(finding->fix, "linux-modules-extra-" RELEASE);
}

/* What `roci setup` says: where the module is, as far as it is known. */
static void a_missing_module(void **state)
{
	const struct doctor_host host = {.root = root, .release = RELEASE};
	char text[DOCTOR_MISSING_CHARS];

	doctor_module_missing(&host, "siw", text);
	expect_in(text, "there is no /lib/modules/" RELEASE);
	expect_in(text, "sudo modprobe siw");
	put("/lib/modules/" RELEASE "/modules.dep", "kernel/drivers/net/dummy.ko:\n");
	doctor_module_missing(&host, "rdma_rxe", text);
	expect_in(text, "has no module rdma_rxe. It may be in a package of its own");
	put("/etc/os-release", "ID=ubuntu\n");
	doctor_module_missing(&host, "rdma_rxe", text);
	expect_in(text, "in another package: sudo apt install linux-modules-extra-" RELEASE);
}

static void json_is_read_back(void **state)
{
	static struct findings back;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	finding_proof(finding_add(&findings, FINDING_WARNING, "a", "text \"%s\" \xff", "quoted"), "proof");
	findings_print_json(&findings, out);
	fclose(out);
	assert_int_equal(findings_parse_json(&back, text), 0);
	assert_int_equal(back.count, 1);
	assert_string_equal(back.list[0].text, "text \"quoted\" \xef\xbf\xbd");
	assert_string_equal(back.list[0].proof, "proof");
	assert_string_equal(back.list[0].fix, "");
	assert_int_equal(back.list[0].level, FINDING_WARNING);
	free(text);
	assert_int_equal(findings_parse_json(&back, "{"), -EINVAL);
	assert_int_equal(findings_parse_json(&back, "{\"findings\": [{\"level\": \"bad\"}]}"), -EINVAL);
	assert_int_equal(back.count, 1);
}

static void too_many_findings(void **state)
{
	for (int i = 0; i < 2 * FINDINGS_MAX; i++)
		finding_add(&findings, FINDING_OK, "x", "%d", i);
	assert_int_equal(findings.count, FINDINGS_MAX);
	assert_string_equal(findings.list[FINDINGS_MAX - 1].text, "191");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh_root, end_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_at_all),
		CASE(active_device),
		CASE(port_down),
		CASE(port_without_subnet_manager),
		CASE(container_without_character_devices),
		CASE(soft_roce_loaded),
		CASE(soft_roce_possible),
		CASE(soft_roce_in_another_package),
		CASE(a_missing_module),
		CASE(json_is_read_back),
		CASE(too_many_findings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
