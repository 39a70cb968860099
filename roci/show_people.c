/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints events as lines for people, and draws a progress bar on a terminal. */
#include <string.h>

#include "device.h"
#include "explain_hint.h"
#include "explain_say.h"
#include "show.h"
#include "target.h"
#include "text.h"
#include "units.h"
#include "wire/plural.h"

#define LINE_EVERY_NS 10000000000ull /* of progress, if there is no terminal */

static void print_text(FILE *out, const char *text)
{
	text_print(out, text, strlen(text));
}

/* Begins a line on stderr. */
static void begin(struct show *show, unsigned session)
{
	bar_clear(&show->bar);
	if (show->many && session)
		fprintf(stderr, "[%u] ", session);
}

static const char *entries(uint64_t count)
{
	return count == 1 ? "entry" : "entries";
}

/* ", device roci0 (embedded: this machine has no RDMA device)" */
static void end_with_device(const struct show *show, const char *device)
{
	if (device)
		fprintf(stderr, ", device %s", device);
	if (show->device->embedded)
		fprintf(stderr, " (embedded: %s)", show->device->reason);
	fputc('\n', stderr);
}

static void listening(const struct show *show, const struct mover_event *event)
{
	if (show->quiet)
		return;
	fprintf(stderr, "listening on port %u", event->port);
	end_with_device(show, event->device);
}

static void offered(const struct show *show, const struct mover_event *event)
{
	const struct mover_totals *t = &event->totals;
	char bytes[UNITS_CHARS];

	if (show->quiet)
		return;
	fprintf(stderr, "offering %llu %s, %s", (unsigned long long)t->entries_total, entries(t->entries_total),
		units_bytes(bytes, t->bytes_total));
	end_with_device(show, show->device->embedded ? EMBEDDED_DEVICE : show->device->name);
}

static void connected(struct show *show, const struct mover_event *event)
{
	bool again, path_names_device = !strncmp(event->path, event->device, strlen(event->device));

	snprintf(show->where, sizeof(show->where), "%s%s%s", path_names_device ? "" : event->device,
		 path_names_device ? "" : ", ", event->path);
	again = show->broken;
	show->broken = false;
	if (show->quiet)
		return;
	begin(show, event->session);
	fprintf(stderr, "connected %s%s %s via %s, mode %s, %u QP%s%s%s%s\n", again ? "again " : "",
		show->receiving ? "from" : "to", event->address, show->where, mover_mode_name(event->mode), event->qps,
		roci_plural(event->qps), event->dry_run ? ", dry run" : "",
		event->encrypted ? "" : ", contents not encrypted", event->open ? ", without a ticket" : "");
}

/* "rtt 20.3 ms, 12 resent", as far as it is known. On a line of 80 columns this leaves room for the bar. */
static void path_is_like(const struct show *show, const struct mover_event *event, char *text, size_t room)
{
	double ms = (double)event->round_trip_ns / 1e6;
	size_t len = 0;

	*text = 0;
	if (event->round_trip_ns)
		len = (size_t)snprintf(text, room, "rtt %.*f ms", ms < 0.995 ? 2 : ms < 99.5 ? 1 : 0, ms);
	if (show->resent && len < room)
		snprintf(text + len, room - len, "%s%llu resent", len ? ", " : "", (unsigned long long)show->resent);
}

static void progress(struct show *show, const struct mover_event *event)
{
	const struct mover_totals *t = &event->totals;
	char done[UNITS_CHARS], total[UNITS_CHARS], rate[UNITS_CHARS], path[100];

	if (show->quiet)
		return;
	path_is_like(show, event, path, sizeof(path));
	if (show->bar.out) {
		bar_draw(&show->bar, t->bytes_done, t->bytes_total, event->bytes_per_s, *path ? path : show->where);
	} else if (t->elapsed_ns >= show->printed_at_ns + LINE_EVERY_NS || t->elapsed_ns < show->printed_at_ns) {
		show->printed_at_ns = t->elapsed_ns;
		begin(show, event->session);
		fprintf(stderr, "%s of %s, %llu of %llu %s, %s%s%s\n", units_bytes(done, t->bytes_done),
			units_bytes(total, t->bytes_total), (unsigned long long)t->entries_done,
			(unsigned long long)t->entries_total, entries(t->entries_total),
			units_rate(rate, event->bytes_per_s), *path ? ", " : "", path);
	}
}

/* One line says that the connection has broken. What comes until there is another only changes the bar. */
static void reconnecting(struct show *show, const struct mover_event *event)
{
	const struct mover_totals *t = &event->totals;
	double part = t->bytes_total ? (double)t->bytes_done / (double)t->bytes_total : -1;
	char left[UNITS_CHARS], text[100];

	if (show->quiet)
		return;
	units_clock(left, (double)event->left_ns / 1e9);
	if (show->receiving) {
		begin(show, event->session);
		fprintf(stderr, "%s for %s; Ctrl-C stops\n", event->text, left);
		return;
	}
	if (!show->broken) {
		begin(show, event->session);
		fprintf(stderr, "roci %s: ", show->command);
		print_text(stderr, event->text);
		fprintf(stderr, "\n  connecting again, for up to %s; Ctrl-C stops\n", left);
	}
	show->broken = true;
	snprintf(text, sizeof(text), "no connection; trying for %s more", left);
	bar_draw_text(&show->bar, part, text);
}

/* Refused entries are always printed; the others with --verbose or in a dry run. */
static void entry_done(struct show *show, const struct mover_event *event)
{
	bool refused = event->outcome == MOVER_REFUSED;
	FILE *out = refused ? stderr : show->list;

	if (!refused && (show->quiet || (!show->verbose && event->outcome != MOVER_WOULD)))
		return;
	begin(show, refused ? event->session : 0);
	if (refused)
		fprintf(out, "roci %s: ", show->command);
	else if (show->verbose || event->outcome != MOVER_WOULD)
		fprintf(out, "%-10s  ",
			event->outcome == MOVER_WOULD ? (show->receiving ? "would receive" : "would send")
						      : mover_outcome_name(event->outcome));
	text_print(out, event->name, event->name_len);
	if (event->text) {
		fputs(": ", out);
		print_text(out, event->text);
	}
	fputc('\n', out);
	fflush(out);
}

/* "3 entries, 1.20 GiB in 2.1 s (571 MiB/s); 2 unchanged; kept 512 MiB from an earlier attempt" */
static void summary(const struct show *show, const struct mover_totals *t, bool dry_run)
{
	static const char *const done[2][2] = {{"sent", "received"}, {"would send", "would receive"}};
	char bytes[UNITS_CHARS], rate[UNITS_CHARS];
	double seconds = (double)t->elapsed_ns / 1e9;
	uint64_t fresh = t->entries_done - t->entries_unchanged;

	fprintf(stderr, "%s %llu %s, %s", done[dry_run][show->receiving], (unsigned long long)fresh, entries(fresh),
		units_bytes(bytes, (dry_run ? t->bytes_total : t->bytes_done) - t->bytes_unchanged));
	if (t->bytes_moved)
		fprintf(stderr, " in %.*f s (%s)", seconds < 10 ? 2 : 0, seconds,
			units_rate(rate, seconds > 0 ? (double)t->bytes_moved / seconds : 0));
	if (t->entries_unchanged)
		fprintf(stderr, "; %llu unchanged", (unsigned long long)t->entries_unchanged);
	if (t->bytes_kept)
		fprintf(stderr, "; kept %s from an earlier attempt", units_bytes(bytes, t->bytes_kept));
	fputc('\n', stderr);
}

/* After a connection that has broken, or a stream that could not be stored. */
static const char *advice_of_lost(const struct show *show, const struct mover_event *event)
{
	if (event->cut_off == MOVER_STDOUT)
		return show->receiving ? "nobody can continue what went to standard output"
				       : "nobody can continue what went to the receiver's standard output";
	if (event->cut_off)
		return show->receiving
			       ? "nobody can read the sender's standard input again: what has arrived of it is dropped"
			       : "nobody can read standard input again: what has arrived of it is dropped";
	if (!show->receiving)
		return "run the same command again to resume: what has arrived is kept";
	return show->many ? "its sender may connect again; the same ticket resumes the transfer" : NULL;
}

/* The next step, where the mover's text does not say it. NULL: none. */
static const char *advice(const struct show *show, const struct mover_event *event)
{
	switch (event->status) {
	case MOVER_NO_DEVICE: return show->device->embedded ? NULL : "`--device embedded` works on every machine";
	case MOVER_NO_TRUST:
		return "a ticket works for one receiver and one transfer; use the one that `roci recv` shows now";
	case MOVER_LOST: return advice_of_lost(show, event);
	case MOVER_LOCAL_IO: return show->receiving && event->cut_off ? advice_of_lost(show, event) : NULL;
	case MOVER_REMOTE_IO:
		if (show->receiving)
			return NULL;
		return event->cut_off ? advice_of_lost(show, event)
				      : "when that is put right, run the same command again: it sends what is missing";
	case MOVER_MISMATCH:
		return show->receiving ? NULL
				       : "run the same command again: it sends only what changed; "
					 "`roci send - < FILE` sends a file that never rests";
	default: return NULL;
	}
}

/* After a transfer that this side could not store. */
static void say_again(const struct show *show, const struct mover_event *event)
{
	if (show->receiving && event->session && event->status == MOVER_LOCAL_IO && !event->cut_off)
		fprintf(stderr, "\n  when this is put right, %ssend the same again: it %s",
			show->many ? "" : "run `roci recv` again and ",
			event->part_file ? "goes on from here" : "sends what is missing");
}

/* What stays on the disk of a transfer that did not end well, what it is for, and how to get rid of it. */
static void say_parts(const struct show *show, const struct mover_event *event)
{
	fputs("\n  what has arrived is in ", stderr);
	print_text(stderr, event->part_file);
	if (event->part_files > 1)
		fprintf(stderr, " and %u more", event->part_files - 1);
	fputs("; delete it, and its .journal, if the transfer is not to go on", stderr);
}

static void ended(struct show *show, const struct mover_event *event)
{
	const struct mover_totals *t = &event->totals;
	const char *next = advice(show, event);
	char bytes[UNITS_CHARS];

	begin(show, event->session);
	if (event->status == MOVER_OK) {
		if (!show->quiet)
			summary(show, t, event->dry_run);
		return;
	}
	fprintf(stderr, "roci %s: ", show->command);
	print_text(stderr, event->text ? event->text : mover_status_name(event->status));
	if (t->bytes_done > t->bytes_unchanged)
		fprintf(stderr, "; %s arrived", units_bytes(bytes, t->bytes_done - t->bytes_unchanged));
	if (t->bytes_kept)
		fprintf(stderr, ", %s of it in an earlier attempt", units_bytes(bytes, t->bytes_kept));
	fprintf(stderr, "%s%s", next ? "\n  " : "", next ? next : "");
	say_again(show, event);
	if (event->part_file)
		say_parts(show, event);
	fputc('\n', stderr);
	explain_say(stderr, explain_hint(event->status, event->text));
}

void show_people(struct show *show, const struct mover_event *event)
{
	switch (event->type) {
	case MOVER_LISTENING: listening(show, event); break;
	case MOVER_CONNECTED: connected(show, event); break;
	case MOVER_PROGRESS: progress(show, event); break;
	case MOVER_ENTRY_DONE: entry_done(show, event); break;
	case MOVER_RECONNECTING: reconnecting(show, event); break;
	case MOVER_ENDED: ended(show, event); break;
	case MOVER_OFFERED: offered(show, event); break;
	case MOVER_STEP:
		if (!show->verbose)
			break;
		begin(show, event->session);
		fputs("  ", stderr);
		print_text(stderr, event->text);
		fputc('\n', stderr);
		break;
	case MOVER_WARNING:
		begin(show, event->session);
		fprintf(stderr, "roci %s: ", show->command);
		print_text(stderr, event->text);
		fputc('\n', stderr);
		break;
	}
}

/* What a sender has to run. Where everybody is let in, no ticket names the port. */
static void show_way(const struct mover_ticket *ticket, bool open)
{
	const char *bracket = strchr(ticket->host, ':') ? "[" : "";
	char host[sizeof(ticket->host) + 16], port[8] = "";
	const char *means = target_of_peer(ticket->host, host, sizeof(host));

	if (open && ticket->port != MOVER_DEFAULT_PORT)
		snprintf(port, sizeof(port), ":%u", ticket->port);
	fprintf(stderr, "on %s machine, run:\n  roci send %sPATH... %s%s%s%s\n",
		target_is_loopback(ticket->host) ? "this" : "the other", open ? "--open " : "", bracket, host,
		*bracket ? "]" : "", port);
	if (means)
		fprintf(stderr, "(%s)\n", means);
}

void show_people_open(struct show *show, const struct mover_ticket *ticket)
{
	if (!show->quiet)
		show_way(ticket, true);
}

static void show_first_ticket(const struct mover_ticket *ticket, const char *line)
{
	show_way(ticket, false);
	fprintf(stderr, "and enter this ticket when it asks for it:\n  %s\n", line);
}

static void show_ticket_file(const char *file, bool first)
{
	fputs(first ? "the ticket is in " : "the ticket for the next transfer is in ", stderr);
	print_text(stderr, file);
	fputs(first ? "; copy this file to the other machine, and there run: roci send PATH... @FILE\n" : "\n", stderr);
}

void show_people_ticket(struct show *show, const struct mover_ticket *ticket, const char *file)
{
	bool first = !show->ticket_shown;
	char line[MOVER_TICKET_CHARS];

	bar_clear(&show->bar);
	show->ticket_shown = true;
	if (file) {
		if (!show->quiet)
			show_ticket_file(file, first);
		return;
	}
	mover_ticket_print(ticket, line);
	if (show->quiet)
		fprintf(stderr, "%s\n", line);
	else if (first)
		show_first_ticket(ticket, line);
	else
		fprintf(stderr, "the ticket for the next transfer:\n  %s\n", line);
}
