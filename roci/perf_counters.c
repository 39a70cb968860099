/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf_counters.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "stats_find.h"

static void of_embedded(struct perf_counters *c)
{
	char why[STATS_WHY_CHARS];
	struct roci_stats_file file;
	bool alive;

	if (stats_find((long)getpid(), &file, &alive, why))
		return;
	c->retransmissions = file.engine.retransmits;
	c->out_of_order = file.engine.rx_out_of_order;
	c->not_ready = file.engine.rnr_received;
	c->dropped = file.device.send_dropped;
}

/* The names that drivers give: mlx5, mlx4, Soft-RoCE, irdma, bnxt_re. Each counts some. */
static const struct {
	const char *name;
	size_t offset;
} files[] = {
	{"packet_seq_err", offsetof(struct perf_counters, retransmissions)}, /* NAKs for a gap */
	{"local_ack_timeout_err", offsetof(struct perf_counters, retransmissions)},
	{"rx_read_requests_retried", offsetof(struct perf_counters, retransmissions)},
	{"completer_retry_err", offsetof(struct perf_counters, retransmissions)},
	{"to_retransmits", offsetof(struct perf_counters, retransmissions)},
	{"out_of_sequence", offsetof(struct perf_counters, out_of_order)},
	{"out_of_seq_request", offsetof(struct perf_counters, out_of_order)},
	{"rnr_nak_retry_err", offsetof(struct perf_counters, not_ready)},
	{"rcvd_rnr_err", offsetof(struct perf_counters, not_ready)},
	{"rnr_naks_rcvd", offsetof(struct perf_counters, not_ready)},
};

static void of_port(const char *device, const char *port, struct perf_counters *c)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		unsigned long long value;
		char path[512];
		FILE *file;
		snprintf(path, sizeof(path), "/sys/class/infiniband/%.63s/ports/%.15s/hw_counters/%s", device, port,
			 files[i].name);
		file = fopen(path, "re");
		if (file && fscanf(file, "%llu", &value) == 1)
			*(uint64_t *)((char *)c + files[i].offset) += value;
		if (file)
			fclose(file);
	}
}

void perf_counters(const char *device, struct perf_counters *counters)
{
	char path[128];
	struct dirent *entry;
	DIR *dir;

	*counters = (struct perf_counters){0};
	if (!strcmp(device, EMBEDDED_DEVICE)) {
		of_embedded(counters);
		return;
	}
	snprintf(path, sizeof(path), "/sys/class/infiniband/%.63s/ports", device);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name != '.')
			of_port(device, entry->d_name, counters);
	}
	if (dir)
		closedir(dir);
}
