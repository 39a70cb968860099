/* SPDX-License-Identifier: BSD-2-Clause */
/* What an RDMA device counts that spoils a measurement: of the embedded device from its file, of others from sysfs. */
#ifndef ROCI_PERF_COUNTERS_H
#define ROCI_PERF_COUNTERS_H

#include "perf/facts.h"

/* A perf_counters_fn. */
void perf_counters(const char *device, struct perf_counters *counters);

#endif
