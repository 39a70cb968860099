/* SPDX-License-Identifier: BSD-2-Clause */
/* The file mover: files and folders over RDMA, on the public verbs and rdma_cm interfaces only.
 *
 * The story. A receiver listens and a sender connects. Both prove to each other that they know the ticket's secret
 * (secure.h); only then are names and sizes read. The sender offers entries (walk.h) in batches. The receiver answers
 * for each that it wants it, has it already, or has some chunks of it (tree.h). Content moves in windows: registered
 * buffers of one chunk each, whose rkeys are granted for one use and then revoked. A window that has arrived is checked
 * against its digest, and only then written. A file appears under its name when all of it has been checked and synced.
 *
 * Nothing here prints. Events report what happens; the command line shows them to people or writes them as JSON. */
#ifndef ROCI_MOVER_H
#define ROCI_MOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mover/ticket.h"

#define MOVER_DEFAULT_PORT         22222
#define MOVER_DEFAULT_MEMORY_BYTES (64u << 20)
#define MOVER_MAX_QPS              64
#define MOVER_TRANSFER_BYTES       16 /* of a transfer's number */
#define MOVER_DEFAULT_QPS          4  /* fewer for less content */
#define MOVER_ROCI_QPS             1  /* the same for Rocinante's own device */

/* How the bytes of a window move. */
enum mover_mode {
	MOVER_WRITE, /* the receiver grants windows, the sender writes them (RDMA WRITE) */
	MOVER_READ,  /* the sender grants windows, the receiver reads them (RDMA READ) */
	MOVER_SEND,  /* the receiver posts buffers, the sender sends into them (SEND) */
};

/* What nobody can continue where it was cut off. */
enum mover_stream {
	MOVER_NO_STREAM,
	MOVER_STDIN,  /* of the sender */
	MOVER_STDOUT, /* of the receiver */
};

/* How a transfer ended. Also the exit statuses of `roci send` and `roci recv`; the man pages list them. */
enum mover_status {
	MOVER_OK = 0,
	MOVER_FAILED = 1,       /* any other failure, such as out of memory */
	MOVER_USAGE = 2,        /* an argument or option is wrong */
	MOVER_NO_DEVICE = 3,    /* no RDMA device, or not the one asked for */
	MOVER_NO_CONNECT = 4,   /* nobody listens there, or the name does not resolve */
	MOVER_NO_TRUST = 5,     /* the peer did not prove that it knows the ticket */
	MOVER_PROTOCOL = 6,     /* the peer broke the protocol, or speaks another version of it */
	MOVER_LOCAL_IO = 7,     /* a file on this side could not be read or written */
	MOVER_REMOTE_IO = 8,    /* a file on the other side could not be read or written */
	MOVER_MISMATCH = 9,     /* a digest did not agree, or a source file changed while it was read */
	MOVER_LOST = 10,        /* the peer vanished or stalled; sending again resumes */
	MOVER_PARTLY = 11,      /* some entries failed; the others arrived */
	MOVER_INTERRUPTED = 12, /* stopped by mover_stop(); sending again resumes */
};

/* Options of both sides. Zero means the default where one is named. */
struct mover_common {
	const char *device;        /* name of the RDMA device; NULL: rdma_cm chooses */
	const char *bind_address;  /* local address, NULL for any */
	unsigned qps;              /* data QPs, 1 .. MOVER_MAX_QPS; 0: a sender asks for MOVER_DEFAULT_QPS (on
				    * roci0 for MOVER_ROCI_QPS), or for as many as there are chunks, if that is less;
				    * a receiver grants what is asked for */
	unsigned cqs;              /* CQs that they share, 1 .. qps; 0: 1 */
	uint64_t memory_bytes;     /* most bytes of registered buffers on this side; 0: MOVER_DEFAULT_MEMORY_BYTES */
	uint32_t chunk_bytes;      /* sender: 64 KiB .. 16 MiB, a power of two; 0: 1 MiB */
	bool poll;                 /* poll the CQs instead of waiting for events: less latency, one busy core */
	bool no_uring;             /* use plain file I/O even where io_uring works */
	unsigned stall_timeout_ms; /* give up a connection by which nothing comes for so long; 0: 30,000 */
	uint64_t retry_ms;         /* when a connection breaks: how long a sender connects again, and a receiver with
				    * `once` waits for it; 0: not at all */
};

enum mover_event_type {
	MOVER_LISTENING,    /* receiver: device, address, port */
	MOVER_CONNECTED,    /* again after each RECONNECTING of a sender: device, path, address, port, mode, qps */
	MOVER_STEP,         /* one protocol step, for the demo. The text is its name in capitals, a space and details:
			     * "CONNECT QP 0x4a2c", "GRANT window 3: 1048576 bytes, rkey 0x1f2e", "FIN window 3, segments: 1".
			     * Reported before a message is sent, and after one has come. Of each name the first few are
			     * reported, and then only some */
	MOVER_OFFERED,      /* sender: the walk is done: entries and bytes to offer in all */
	MOVER_PROGRESS,     /* bytes and entries so far; at most 10 a second */
	MOVER_ENTRY_DONE,   /* one entry: name, bytes, outcome */
	MOVER_WARNING,      /* text */
	MOVER_RECONNECTING, /* sender: an attempt has failed (text), and another comes; left_ns, totals. Receiver with
			     * `once`: it waits for its sender to connect again; text, left_ns; of no session */
	MOVER_ENDED,        /* status and the totals; the last event of a session */
};

enum mover_outcome {
	MOVER_STORED,    /* arrived and verified */
	MOVER_UNCHANGED, /* existed already */
	MOVER_WOULD,     /* --dry-run: would have been sent */
	MOVER_REFUSED,   /* failed; text says why */
};

struct mover_totals {
	uint64_t entries_total, entries_done, entries_unchanged, entries_failed;
	uint64_t bytes_total;     /* of content, holes included */
	uint64_t bytes_done;      /* verified by the receiver, whether moved, kept or unchanged */
	uint64_t bytes_moved;     /* over the wire */
	uint64_t bytes_kept;      /* from an earlier, interrupted transfer, and verified again */
	uint64_t bytes_unchanged; /* of files that were skipped */
	uint64_t elapsed_ns;      /* since the first CONNECTED */
};

struct mover_event {
	enum mover_event_type type;
	unsigned session;           /* counts from 1; 0: the event belongs to no session */
	enum mover_status status;   /* ENDED */
	enum mover_outcome outcome; /* ENTRY_DONE */
	enum mover_mode mode;       /* CONNECTED */
	unsigned qps;               /* CONNECTED */
	bool encrypted, open;       /* CONNECTED: chunks are encrypted; the peer needed no ticket */
	bool dry_run;               /* CONNECTED, ENTRY_DONE, ENDED: nothing is sent, only listed */
	const char *device;         /* LISTENING, CONNECTED: such as "mlx5_0", "roci0" */
	const char *path;           /* CONNECTED: what carries the data: "rnic", "rxe", "iwarp", "roci0 over udp" */
	const char *address;        /* LISTENING: own, CONNECTED: the peer's */
	uint16_t port;
	const uint8_t *name; /* ENTRY_DONE: the entry's path, any bytes but NUL, not terminated */
	size_t name_len;
	uint64_t bytes;     /* ENTRY_DONE: its size */
	const char *text;   /* STEP, WARNING, ENTRY_DONE (why refused), ENDED (what went wrong and what to do next) */
	double bytes_per_s; /* PROGRESS: over the network, in the last seconds; 0: not known yet */
	uint64_t round_trip_ns;    /* PROGRESS: to the peer, with the queues on the way; 0: not measured */
	uint64_t left_ns;          /* RECONNECTING: how long attempts may still begin */
	const char *part_file;     /* ENDED, receiver: a temporary file that stays for a resumed transfer; NULL: none */
	unsigned part_files;       /* ... and how many there are */
	enum mover_stream cut_off; /* ENDED: in the midst of it */
	struct mover_totals totals; /* OFFERED, PROGRESS, RECONNECTING, ENDED */
};

/* Called from a session's thread, or one of its workers; never twice at once. What the event points to is valid during
 * the call. */
typedef void mover_event_fn(void *context, const struct mover_event *event);

struct mover_send_options {
	struct mover_common common;
	const char *const *paths; /* files, folders, symbolic links; "-" is standard input */
	size_t path_count;
	const char *stdin_name; /* the name of standard input at the receiver; NULL: "stdin" */
	const char *host;
	uint16_t port;
	const struct mover_ticket *ticket; /* NULL: open; the receiver has to allow that */
	enum mover_mode mode;
	bool encrypt;  /* chunks too; names and sizes always are. Nobody can change chunks in either case */
	bool checksum; /* compare content, even if size and mtime are the same; the receiver must allow it */
	bool dry_run;  /* report what would be sent, and send nothing */
	uint64_t limit_bytes_per_s; /* 0: none */
	/* MOVER_TRANSFER_BYTES: the transfer's number, a secret. With the number of a transfer that broke, this one
	 * continues that, and no other sender does; NULL: a new one. */
	const uint8_t *transfer;
	bool retry_first; /* common.retry_ms is also for the first connection: the receiver may not listen yet */
};

struct mover_recv_options {
	struct mover_common common;
	const char *dir;                   /* the folder for files; NULL: to_stdout */
	bool to_stdout;                    /* write the one file or stream to standard output */
	bool once;                         /* end after one session that was let in */
	bool open;                         /* let senders in without a ticket */
	bool keep;                         /* replace nothing that exists */
	bool links;                        /* store symbolic links that point out of the folder, too */
	bool compare;                      /* tell senders digests of files that are there: `checksum` */
	uint16_t port;                     /* 0: any free one; LISTENING reports it */
	unsigned max_sessions;             /* at a time; 0: 16 */
	const struct mover_ticket *ticket; /* NULL where only `open` */
	bool keep_ticket;                  /* the ticket stays valid after a transfer */
	/* Called when a one-time ticket has been used up: fills in the next. With the context of the events, and like
	 * them never twice at once. False: there is none, so nobody else is let in; the same where this is NULL. */
	bool (*next_ticket)(void *context, struct mover_ticket *ticket);
};

/* Sends. Blocks. Returns how it ended, after the ENDED event. */
enum mover_status mover_send(const struct mover_send_options *options, mover_event_fn *event, void *context);

/* Receives until mover_stop(), or with `once` until the session has ended. Blocks. Returns the status of that session
 * with `once`, otherwise MOVER_OK; or why it could not listen. */
enum mover_status mover_recv(const struct mover_recv_options *options, mover_event_fn *event, void *context);

/* Whether standard input, "-", is among the paths. */
bool mover_sends_stdin(const char *const *paths, size_t count);

/* Makes every mover_send() and mover_recv() of the process end soon. What has arrived stays for a resumed transfer.
 * Safe in a signal handler. */
void mover_stop(void);

/* Names for people and for JSON: "write", "ok", "stored", "entry_done"; NULL where out of range. */
const char *mover_mode_name(enum mover_mode mode);
const char *mover_status_name(enum mover_status status);
const char *mover_outcome_name(enum mover_outcome outcome);
const char *mover_event_name(enum mover_event_type type);

#endif
