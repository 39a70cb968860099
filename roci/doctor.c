/* SPDX-License-Identifier: BSD-2-Clause */
/* roci doctor: says what works on this machine, what does not, and why. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <infiniband/verbs.h>

#include "command.h"
#include "device.h"
#include "doctor/doctor.h"
#include "doctor/embedded.h"
#include "doctor/peer.h"
#include "machine.h"
#include "target.h"
#include "wire/plural.h"

#define EXIT_UNWELL 1

struct doctor_choices {
	bool json;
};

static const struct option_row options[] = {
	{.name = "json",
	 .group = "options",
	 .help = "print the findings as JSON",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct doctor_choices, json)},
	OPTION_HELP_ROW,
};

/* Under `roci run` this process sees roci0 itself. */
static bool sees_embedded(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool sees = list && *list && !strcmp(ibv_get_device_name(*list), EMBEDDED_DEVICE);

	if (list)
		ibv_free_device_list(list);
	return sees;
}

/* target: the host that was named, or NULL. */
static void examine(struct findings *findings, const struct command *self, const struct target *target)
{
	struct utsname name;
	struct doctor_host host = {.root = ""};
	struct doctor_peer peer = {0};
	bool reachable;

	uname(&name);
	host.release = name.release;
	doctor_versions(findings, &host);
	doctor_kernel(findings, &host);
	doctor_network(findings, &host);
	doctor_limits(findings, &host);
	reachable = target && doctor_peer_find(findings, target, &peer);
	doctor_verbs(findings, peer.source);
	if (!sees_embedded())
		doctor_embedded(findings, self, peer.source);
	if (reachable)
		doctor_peer_try(findings, &peer);
}

static void print_verdict(const struct findings *findings)
{
	unsigned problems = 0, warnings = 0;

	for (size_t i = 0; i < findings->count; i++) {
		problems += findings->list[i].level == FINDING_PROBLEM;
		warnings += findings->list[i].level == FINDING_WARNING;
	}
	if (problems || warnings)
		printf("\n%u problem%s, %u warning%s\n", problems, roci_plural(problems), warnings,
		       roci_plural(warnings));
	else
		puts("\nno problems");
}

static int run(const struct command *self, int argc, char **argv)
{
	static struct findings findings;
	struct doctor_choices choices = {0};
	struct operands operands;
	struct target target = {0};
	char source[INET6_ADDRSTRLEN];
	const char *why;
	char cause[512];
	int status;

	if (doctor_is_embedded(source)) {
		doctor_verbs(&findings, source);
		findings_print_json(&findings, stdout);
		return 0;
	}
	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	status = 0;
	if (operands.count > 1)
		status = complain(self, "one host at most");
	else if (operands.count && target_parse(operands.list[0], &target, &why))
		status = complain(self, "'%s': %s", operands.list[0], why);
	else if (target.ticket_file)
		status = complain(self, "'%s': name a host", operands.list[0]);
	if (!status && machine_execute(cause))
		status = complain(self, "%s", cause);
	if (!status)
		examine(&findings, self, operands.count ? &target : NULL);
	free(operands.list);
	if (status)
		return status;
	if (choices.json) {
		findings_print_json(&findings, stdout);
	} else {
		findings_print(&findings, stdout);
		print_verdict(&findings);
	}
	return findings_worst(&findings) == FINDING_PROBLEM ? EXIT_UNWELL : 0;
}

const struct command doctor_command = {
	.name = "doctor",
	.summary = "say what works on this machine, what does not, and why",
	.usage = "[OPTION]... [HOST[:PORT]]",
	.examples = "  roci doctor                     look at this machine\n"
		    "  roci doctor 10.0.0.7            also the way to a machine where `roci serve` runs\n"
		    "  roci doctor --json              for a script\n",
	.about = "Needs no root, and changes nothing. Each finding has its proof, and a command that helps.\n\n"
		 "With HOST it also asks that host, and sends to it and back through `roci serve`, which must run "
		 "there\n"
		 "(PORT: its port).\n\n"
		 "exit status: 0 if there is no problem, 1 if there is one, 2 if an option is wrong.\n",
	.manual = "roci-doctor",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_HOST,
	.run = run,
};
