/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of a session. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mover/clock.h"
#include "mover/session.h"

#define PROGRESS_NS 100000000ull
#define FIRST_STEPS 3  /* of each name are reported, */
#define EVERY_STEP  64 /* and then one in so many */

void session_emit(struct session *s, struct mover_event *event)
{
	event->session = s->report.number;
	event->dry_run = s->terms.dry_run;
	events_emit(s->report.events, event);
}

/* The counter of a step's name: a message type, or an operation that moves data. */
static unsigned *step_counter(struct session *s, const char *name)
{
	static const char *const others[] = {"WRITE", "READ", "SEND"};

	for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strcmp(name, others[i]) == 0)
			return &s->report.steps[PROTO_TYPES + i];
	for (unsigned i = 1; i < PROTO_TYPES; i++)
		if (strcmp(name, proto_type_name((enum proto_type)i)) == 0)
			return &s->report.steps[i];
	return &s->report.steps[0];
}

void session_step(struct session *s, const char *name, const char *format, ...)
{
	char text[400];
	unsigned count = (*step_counter(s, name))++;
	int len;
	va_list args;

	if (count >= FIRST_STEPS && count % EVERY_STEP)
		return;
	len = snprintf(text, sizeof(text), "%s ", name);
	va_start(args, format);
	vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
	va_end(args);
	session_emit(s, &(struct mover_event){.type = MOVER_STEP, .text = text});
}

void session_warn(struct session *s, const char *text)
{
	session_emit(s, &(struct mover_event){.type = MOVER_WARNING, .text = text});
}

static void update_elapsed(struct session *s)
{
	if (s->report.connected_ns)
		s->totals.elapsed_ns = mover_now_ns() - s->report.connected_ns;
}

/* What this session has moved, and what was there before: the session before may have moved it. So kept bytes are only
 * those that cannot have been. */
struct mover_totals session_totals(const struct session *s)
{
	const struct mover_totals *before = &s->report.before;
	struct mover_totals t = s->totals;
	uint64_t older = t.bytes_kept > before->bytes_moved ? t.bytes_kept - before->bytes_moved : 0;

	t.bytes_kept = older > before->bytes_kept ? older : before->bytes_kept;
	t.bytes_moved += before->bytes_moved;
	if (t.bytes_done < before->bytes_done)
		t.bytes_done = before->bytes_done;
	if (t.entries_done < before->entries_done)
		t.entries_done = before->entries_done;
	return t;
}

void session_progress(struct session *s, bool now)
{
	uint64_t time = mover_now_ns();
	struct mover_totals totals;

	if (!s->report.connected_ns || (!now && time - s->report.progress_ns < PROGRESS_NS))
		return;
	s->report.progress_ns = time;
	s->totals.elapsed_ns = s->report.progress.elapsed_ns;
	if (!now && memcmp(&s->totals, &s->report.progress, sizeof(s->totals)) == 0)
		return;
	update_elapsed(s);
	s->report.progress = s->totals;
	totals = session_totals(s);
	rate_see(&s->report.rate, totals.bytes_moved, time);
	if (s->control.round_trip.count)
		s->report.round_trip_ns = round_trip_ns(&s->control.round_trip);
	session_emit(s, &(struct mover_event){
				.type = MOVER_PROGRESS,
				.totals = totals,
				.bytes_per_s = s->report.rate.bytes_per_s,
				.round_trip_ns = s->report.round_trip_ns,
			});
}

void session_connected(struct session *s)
{
	char address[INET6_ADDRSTRLEN] = "";
	struct rdma_cm_id *id = s->control.conn.id;
	struct sockaddr *peer = rdma_get_peer_addr(id);

	if (peer && peer->sa_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)peer)->sin_addr, address, sizeof(address));
	else if (peer && peer->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)peer)->sin6_addr, address, sizeof(address));
	if (!s->report.connected_ns)
		s->report.connected_ns = mover_now_ns();
	session_emit(s, &(struct mover_event){
				.type = MOVER_CONNECTED,
				.device = s->dev.verbs->device->name,
				.path = connection_path(s->dev.verbs->device),
				.address = address,
				.port = ntohs(rdma_get_dst_port(id)),
				.mode = s->terms.mode,
				.qps = s->terms.qps,
				.encrypted = s->terms.encrypt,
				.open = mover_secure_is_open(s->control.secure),
			});
}

void session_reconnecting(struct session *s, uint64_t left_ns)
{
	update_elapsed(s);
	session_emit(s, &(struct mover_event){
				.type = MOVER_RECONNECTING,
				.text = s->text,
				.left_ns = left_ns,
				.totals = session_totals(s),
			});
}

void session_ended(struct session *s)
{
	update_elapsed(s);
	session_emit(s, &(struct mover_event){
				.type = MOVER_ENDED,
				.status = s->status,
				.text = *s->text ? s->text : NULL,
				.totals = session_totals(s),
				.part_file = s->report.part_file,
				.part_files = s->report.part_files,
				.cut_off = s->status != MOVER_OK ? s->report.stream : MOVER_NO_STREAM,
			});
}

void session_entry_done(struct session *s, const uint8_t *name, size_t name_len, uint64_t bytes,
			enum mover_outcome outcome, const char *text)
{
	session_emit(s, &(struct mover_event){
				.type = MOVER_ENTRY_DONE,
				.outcome = outcome,
				.name = name,
				.name_len = name_len,
				.bytes = bytes,
				.text = text,
			});
}
