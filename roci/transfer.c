/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <strings.h>

#include "target.h"
#include "transfer.h"

#define TICKET_PREFIX "roci1:"

const char *const transfer_modes[] = {"write", "read", "send", NULL};

/* Finds a ticket at the beginning of the argument, or behind a '=' or '@' in it. NULL: there is none. */
static char *ticket_in(char *argument)
{
	char *at = argument;
	for (;;) {
		if (!strncasecmp(at, TICKET_PREFIX, strlen(TICKET_PREFIX)))
			return at;
		at = strpbrk(at, "=@");
		if (!at)
			return NULL;
		at++;
	}
}

bool transfer_no_ticket_in_arguments(const struct command *command, int argc, char **argv)
{
	bool found = false;
	for (int i = 1; i < argc; i++) {
		char *ticket = ticket_in(argv[i]);
		if (ticket) {
			explicit_bzero(ticket, strlen(ticket));
			found = true;
		}
	}
	if (found)
		complain(command,
			 "a ticket must not be on the command line, where every user of this machine can read it.\n"
			 "  Do not use this ticket again: stop that `roci recv` and start it for a new one. Pass the "
			 "new\n"
			 "  ticket with --ticket-file or --ticket-fd, as @FILE in place of the host, or wait for the "
			 "prompt");
	return !found;
}

/* Returns what is wrong with the options, or NULL. Without --qps, a receiver allows MOVER_MAX_QPS. */
static const char *find_conflict(const struct transfer_choices *choices, bool receiving)
{
	uint64_t qps = choices->qps ? choices->qps : receiving ? MOVER_MAX_QPS : MOVER_DEFAULT_QPS;
	if (choices->quiet && choices->verbose)
		return "--quiet and --verbose exclude each other; give one of them";
	if (choices->cqs > qps)
		return "--cqs is larger than --qps, so some CQs would have no QP; lower --cqs or raise --qps";
	return NULL;
}

enum mover_status transfer_begin(const struct command *command, const struct transfer_choices *choices,
				 struct device_choice *device, struct show *show, struct mover_common *common)
{
	const char *wrong = find_conflict(choices, show->receiving);
	char why[512];

	*device = (struct device_choice){0};
	show->command = command->name;
	show->device = device;
	show->json = choices->json;
	show->quiet = choices->quiet;
	show->verbose = choices->verbose;
	show_init(show);
	if (wrong)
		return show_failure(show, MOVER_USAGE, "%s", wrong);
	wrong = choices->bind ? target_interface_wrong(choices->bind) : NULL;
	if (wrong)
		return show_failure(show, MOVER_USAGE, "--bind %s: %s", choices->bind, wrong);
	enum mover_status status = device_choose(command, choices->device, device, why);
	if (status != MOVER_OK)
		return show_failure(show, status, "%s", why);
	*common = (struct mover_common){
		.device = device->name,
		.bind_address = choices->bind,
		.qps = (unsigned)choices->qps,
		.cqs = (unsigned)choices->cqs,
		.memory_bytes = choices->memory_bytes,
		.poll = choices->poll,
		.no_uring = choices->no_uring,
		.stall_timeout_ms = (unsigned)choices->timeout_ms,
		.retry_ms = choices->retry_ms == TRANSFER_NO_RETRY_GIVEN ? TRANSFER_RETRY_MS : choices->retry_ms,
	};
	return MOVER_OK;
}
