/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wan_link -r BITS -d MICROSECONDS [-q BYTES] [-l PPM] [-s SEED] DEVICE DEVICE: a link of RATE bits per second and a
 * delay one way between two devices of this namespace, the outer ones of two veth pairs (wan_port.h). In front of each
 * direction is a queue of BYTES that drops its tail; behind it, PPM of a million packets are lost: of the same SEED the
 * same ones of each direction, by their number. Without -q the queue holds what the link carries in a round trip.
 * Prints a line when the link is there, runs until SIGTERM, and then says what it did.
 *
 * Lengths are those of IP packets. When a packet enters the queue is when the kernel had it, however late this program
 * looks: so the line loses no time, and the queue no packet, while this program waits for a processor. What it cannot
 * make good is a packet that it delivers too late. It sleeps for 50 us at least while packets are on the way, as
 * adapters gather interrupts; "late_s" is for how long more than that was overdue.
 *
 * For kernels without netem, and without root: unshare -Urn will do.
 */
#include <linux/if_ether.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wan_port.h"

#define SLOTS_LEAST 4096 /* packets on the way in one direction; powers of two */
#define SLOTS_MOST  131072
#define SECOND      UINT64_C(1000000000)
#define GATHER_NS   50000   /* between two deliveries at least */
#define LOOK_NS     1000000 /* between two looks for packets at most while some are on the way */

static struct {
	uint64_t rate_bps, delay_ns, queue_bytes;
	uint32_t loss_ppm;
	unsigned short seed;
} options;

struct direction {
	struct wan_port *from, *to;
	struct wan_packet *ring;
	uint32_t slots, head, tail;
	uint64_t next_free;     /* when the wire has sent all that waits */
	unsigned short dice[3]; /* nrand48(3) */
	/* what it did */
	uint64_t began, idle_ns, longest_ns, packets, bytes, dropped, lost, late_ns, latest_ns;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

/* The clock of the times of packets. */
static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* Before other programs, as the interrupts of an adapter are, where that is allowed (root of the host). Else this
 * program asks for short slices (sched_setattr(2), Linux 6.12), with which it waits less. */
static void take_priority(void)
{
	struct sched_param first = {.sched_priority = 1};
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline, period;
	} slices = {.size = sizeof(slices), .runtime_ns = 100000};

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		syscall(SYS_sched_setattr, 0, &slices, 0);
}

static bool is_lost(struct direction *d)
{
	return options.loss_ppm && (uint32_t)(nrand48(d->dice) % 1000000) < options.loss_ppm;
}

static void count_idle(struct direction *d, uint64_t came_at)
{
	uint64_t idle = d->next_free && came_at > d->next_free ? came_at - d->next_free : 0;

	if (!d->began)
		d->began = came_at;
	d->idle_ns += idle;
	if (idle > d->longest_ns)
		d->longest_ns = idle;
}

/* Puts the packet at the ring's end on its way, or drops it. It came to the queue then. */
static void send_off(struct direction *d, uint64_t came_at)
{
	struct wan_packet *p = &d->ring[d->tail & (d->slots - 1)];
	uint64_t wait = d->next_free > came_at ? d->next_free - came_at : 0, len = p->len - ETH_HLEN;

	if (wait * (options.rate_bps / 8) / SECOND + len > options.queue_bytes || d->tail - d->head == d->slots - 1) {
		d->dropped++;
		return;
	}
	count_idle(d, came_at);
	d->next_free = came_at + wait + len * 8 * SECOND / options.rate_bps;
	d->packets++;
	d->bytes += len;
	if (is_lost(d)) {
		d->lost++;
		return;
	}
	p->at = d->next_free + options.delay_ns;
	d->tail++;
}

static void take(struct direction *d, uint64_t now)
{
	struct wan_frame frame;

	while (wan_port_take(d->from, &frame)) {
		uint64_t came_at = frame.came_at < now ? frame.came_at : now;

		for (unsigned i = 0; wan_frame_cut(&frame, i, &d->ring[d->tail & (d->slots - 1)]); i++)
			send_off(d, came_at);
		wan_port_taken(d->from);
	}
}

/* When the next packet arrives. */
static uint64_t first_due(const struct direction *d)
{
	return d->head == d->tail ? UINT64_MAX : d->ring[d->head & (d->slots - 1)].at;
}

/* Delivers what has arrived. Returns when the next packet does. */
static uint64_t deliver(struct direction *d, uint64_t now)
{
	uint32_t end = d->head;

	for (; end != d->tail && d->ring[end & (d->slots - 1)].at <= now; end++) {
		uint64_t late = now - d->ring[end & (d->slots - 1)].at;

		d->late_ns += late;
		if (late > d->latest_ns)
			d->latest_ns = late;
	}
	if (end != d->head)
		wan_port_deliver(d->to, d->ring, d->slots, d->head, end);
	d->head = end;
	return first_due(d);
}

static void rest(uint64_t next, uint64_t now)
{
	uint64_t most = options.delay_ns / 2 < LOOK_NS ? options.delay_ns / 2 : LOOK_NS,
		 ns = next > now ? next - now : 0;
	struct timespec wait = {0};

	ns = ns < most ? ns : most;
	wait.tv_nsec = (long)(ns > GATHER_NS ? ns : GATHER_NS);
	nanosleep(&wait, NULL);
}

/* Returns for how long packets were overdue. */
static uint64_t run(struct direction d[2])
{
	struct pollfd fds[2] = {{.fd = d[0].from->fd, .events = POLLIN}, {.fd = d[1].from->fd, .events = POLLIN}};
	uint64_t overdue = 0;

	while (!stopped) {
		uint64_t now = now_ns(), a, b, due;

		take(&d[0], now);
		take(&d[1], now);
		a = first_due(&d[0]);
		b = first_due(&d[1]);
		due = (a < b ? a : b);
		if (due < now && now - due > GATHER_NS)
			overdue += now - due - GATHER_NS;
		a = deliver(&d[0], now);
		b = deliver(&d[1], now);
		if (a == UINT64_MAX && b == UINT64_MAX)
			poll(fds, 2, 1000);
		else
			rest(a < b ? a : b, now_ns());
	}
	return overdue;
}

static void report(const char *name, const struct direction *d)
{
	printf("\"%s\": {\"seconds\": %.3f, \"idle_s\": %.3f, \"longest_idle_s\": %.4f, \"packets\": %lu, \"bytes\": "
	       "%lu, "
	       "\"dropped\": %lu, \"lost\": %lu, \"late_us\": %.0f, \"latest_us\": %.0f, \"overrun\": %u, \"failed\": "
	       "%lu}, ",
	       name, (double)(d->next_free - d->began) / 1e9, (double)d->idle_ns / 1e9, (double)d->longest_ns / 1e9,
	       (unsigned long)d->packets, (unsigned long)d->bytes, (unsigned long)d->dropped, (unsigned long)d->lost,
	       d->packets ? (double)d->late_ns / 1e3 / (double)d->packets : 0, (double)d->latest_ns / 1e3,
	       wan_port_overrun(d->from), (unsigned long)d->to->failed);
}

static void report_all(const struct direction d[2], uint64_t overdue)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	putchar('{');
	report("there", &d[0]);
	report("back", &d[1]);
	printf("\"late_s\": %.3f, \"user_s\": %.2f, \"system_s\": %.2f}\n", (double)overdue / 1e9,
	       (double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec / 1e6,
	       (double)use.ru_stime.tv_sec + (double)use.ru_stime.tv_usec / 1e6);
}

/* Twice the packets of 1,500 bytes that the queue and the way hold, since there are shorter ones. */
static void make_ring(struct direction *d)
{
	uint64_t bytes = options.queue_bytes + options.rate_bps / 8 * options.delay_ns / SECOND;

	for (d->slots = SLOTS_LEAST; d->slots < SLOTS_MOST && d->slots < bytes / 1500 * 2;)
		d->slots *= 2;
	d->ring = mmap(NULL, d->slots * sizeof(*d->ring), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (d->ring != MAP_FAILED)
		return;
	perror("memory");
	exit(2);
}

int main(int argc, char **argv)
{
	static struct wan_port ports[2];
	struct direction d[2] = {{.from = &ports[0], .to = &ports[1]}, {.from = &ports[1], .to = &ports[0]}};
	struct sigaction action = {.sa_handler = stop};
	int c;

	while ((c = getopt(argc, argv, "r:d:q:l:s:")) != -1) {
		switch (c) {
		case 'r': options.rate_bps = strtoull(optarg, NULL, 10); break;
		case 'd': options.delay_ns = strtoull(optarg, NULL, 10) * 1000; break;
		case 'q': options.queue_bytes = strtoull(optarg, NULL, 10); break;
		case 'l': options.loss_ppm = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 's': options.seed = (unsigned short)strtoul(optarg, NULL, 10); break;
		default: return 2;
		}
	}
	if (optind + 2 != argc || !options.rate_bps) {
		fprintf(stderr,
			"usage: wan_link -r BITS -d MICROSECONDS [-q BYTES] [-l PPM] [-s SEED] DEVICE DEVICE\n");
		return 2;
	}
	if (!options.queue_bytes)
		options.queue_bytes = options.rate_bps / 8 * 2 * options.delay_ns / SECOND;
	for (unsigned i = 0; i < 2; i++) {
		wan_port_open(&ports[i], argv[optind + (int)i]);
		make_ring(&d[i]);
		memcpy(d[i].dice, (unsigned short[3]){0, (unsigned short)i, options.seed}, sizeof(d[i].dice));
	}
	sigaction(SIGTERM, &action, NULL);
	prctl(PR_SET_TIMERSLACK, 1000ul);
	take_priority();
	puts("ready");
	fflush(stdout);
	report_all(d, run(d));
}
