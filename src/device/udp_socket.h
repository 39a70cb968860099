/* SPDX-License-Identifier: BSD-2-Clause */
/* The udp link from inside, for udp*.c only. */
#ifndef ROCI_DEVICE_UDP_SOCKET_H
#define ROCI_DEVICE_UDP_SOCKET_H

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "device/kept_answers.h"
#include "device/udp.h"
#include "wire/gid.h"

#define UDP_GROUP_SOCKETS (ROCI_MAX_MCAST_GROUPS * ROCI_MAX_GIDS) /* a link-local group has one on each interface */
#define UDP_SOCKETS       (ROCI_MAX_GIDS + UDP_GROUP_SOCKETS)     /* GIDs first, by index; then groups */
#define UDP_RECV_MESSAGES 32
#define UDP_RECV_BYTES    65536 /* no datagram is longer */
#define UDP_CONTROL_BYTES 128
#define UDP_PACKED_BYTES  2048 /* packets of a run that are not longer are packed into one piece */
#define UDP_ERRORS        8    /* ICMP messages that wait for roci_udp_next_error() */
#define UDP_RETRY_SOON_NS                                                                                              \
	50000000u /* until a missing port is tried again, while packets are sent: QPs may time out in half a second */

union udp_name {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Whether the kernel cuts long messages into packets (GSO) for a socket. It refuses where the interface computes no
 * checksums (before Linux 6.11), which only sending shows. So packets go singly until one that asked for it was sent:
 * the kernel gives the same packet, with the same IPv4 identification, where there is nothing to cut. */
enum udp_gso { UDP_GSO_UNTRIED, UDP_GSO_WORKS, UDP_GSO_REFUSED };

/* Whether the process that has the port forwards: the last time that it was asked. */
struct udp_inquiry {
	uint64_t at;
	uint32_t holder;    /* inode of the socket that had the port; 0: none was seen */
	uint8_t unanswered; /* in a row, by this one */
};

struct udp_socket {
	int fd; /* -1: not open */
	bool ipv4;
	enum udp_gso gso;
	bool fragments; /* what does not fit the path goes in fragments, else it is refused */
	bool warned;    /* somebody was, that it cannot be bound */
	bool asked;     /* to receive at a GID: it is opened again when the address is back */
	bool wanted;    /* it was to be opened, and could not: it is tried again at retry_at */
	int error; /* of a wanted one: why; 0: the process that has the port sends by our side door what is for us */
	uint64_t tried_at; /* of a wanted one: when it was last bound in vain */
	uint32_t holder;   /* inode of a socket that had the port then; 0: none was seen */
	struct udp_inquiry inquiry;
	uint16_t port; /* of a source */
	uint32_t ifindex;
	unsigned joins; /* of a group; 0: the place is free */
	uint8_t gid[16];
};

/* What two packets of a run have between their payloads. */
struct udp_joint {
	uint8_t bytes[sizeof(((struct roci_frame *)0)->trailer) + ROCI_MAX_HEADER_BYTES];
};

/* Arguments of sendmmsg() and recvmmsg(), and the bytes received: 2 MiB that are touched as needed. */
struct udp_send_area {
	struct mmsghdr msgs[ROCI_LINK_SEND_BATCH];
	unsigned first[ROCI_LINK_SEND_BATCH];                           /* message's first frame */
	struct iovec iov[ROCI_TX_SPANS + 2 * ROCI_LINK_SEND_BATCH + 1]; /* + 1: the side door's header */
	struct udp_joint joints[ROCI_LINK_SEND_BATCH];
	union udp_name names[ROCI_LINK_SEND_BATCH];
	_Alignas(8) uint8_t control[ROCI_LINK_SEND_BATCH][UDP_CONTROL_BYTES];
	uint8_t packed[ROCI_LINK_SEND_BATCH * UDP_PACKED_BYTES];
};

struct udp_recv_area {
	struct mmsghdr msgs[UDP_RECV_MESSAGES];
	struct iovec iov[UDP_RECV_MESSAGES];
	union udp_name names[UDP_RECV_MESSAGES];
	struct roci_arrival arrivals[UDP_RECV_MESSAGES];
	_Alignas(8) uint8_t control[UDP_RECV_MESSAGES][UDP_CONTROL_BYTES];
	_Alignas(64) uint8_t bytes[UDP_RECV_MESSAGES][UDP_RECV_BYTES];
};

struct roci_udp {
	struct roci_link link;
	struct roci_udp_config config;
	struct udp_socket sockets[UDP_SOCKETS];
	unsigned sockets_end;                     /* those from here on were never open, and take no memory */
	bool everywhere;                          /* listens at every GID, those of the future too */
	struct udp_socket sources[ROCI_MAX_GIDS]; /* that packets of QPs leave from, by GID index (udp_source.c) */
	int questions[ROCI_MAX_GIDS];             /* by GID index, or -1 (udp_route.c) */
	int source_questions[2];                  /* of IPv4 and IPv6, or -1 */
	struct roci_kept_answers kept;            /* to both */
	unsigned open[UDP_SOCKETS];               /* indices of the open ones */
	unsigned open_count;
	unsigned busy; /* index in open[] of the socket that had something last */
	bool quiet;    /* it had nothing when it was last read */
	unsigned turn; /* index in open[] of the socket that is read beside it */
	unsigned reads;
	uint64_t retry_at; /* when the ports that could not be had are tried again; UINT64_MAX: there is none */
	uint64_t sibling_at[ROCI_SLOTS]; /* when a process of this registry was last seen to have the slot */
	uint64_t used_at;                /* when a packet was last sent without the port */
	uint64_t retry_soon_ns; /* between attempts while packets are sent: UDP_RETRY_SOON_NS, or more where one is long
				 */
	unsigned recv_messages; /* asked for at a time: few while they are long, so that they stay in the cache */
	unsigned recv_dirty;    /* msgs[] that the last recvmmsg() has changed */
	uint64_t errors_reported; /* bit per errno < 64 */
	bool fragments_reported;
	unsigned error_count;
	struct roci_udp_error errors[UDP_ERRORS];
	struct udp_send_area out;
	struct udp_recv_area in;
};

/* The socket address of `gid`, port 4791. Returns its length. */
socklen_t roci_udp_name(union udp_name *name, const uint8_t gid[16], uint32_t ifindex);

static inline uint16_t roci_udp_name_port(const union udp_name *name)
{
	return ntohs(name->any.sa_family == AF_INET ? name->v4.sin_port : name->v6.sin6_port);
}

static inline void roci_udp_name_set_port(union udp_name *name, uint16_t port)
{
	if (name->any.sa_family == AF_INET)
		name->v4.sin_port = htons(port);
	else
		name->v6.sin6_port = htons(port);
}

static inline void roci_udp_name_gid(const union udp_name *name, uint8_t gid[16])
{
	if (name->any.sa_family == AF_INET)
		roci_gid_from_ipv4(gid, &name->v4.sin_addr);
	else
		memcpy(gid, &name->v6.sin6_addr, 16);
}

/* A UDP socket of `gid`'s family with all options of a RoCEv2 receiver, unbound. Returns it or a negative errno. */
int roci_udp_socket(const uint8_t gid[16], uint32_t ifindex);

/* From now on, what does not fit the path goes in fragments, or is refused. */
void roci_udp_allow_fragments(struct udp_socket *s, bool allowed);

/* ICMP messages about what the socket sends are kept for it from now on. */
void roci_udp_report_errors(int fd, bool ipv4);
/* Takes some of them, and what the kernel says about calls that have failed. Returns how many came by ICMP. */
unsigned roci_udp_take_errors(struct roci_udp *udp, const struct udp_socket *s);

/* Adds socket `index`, which has been bound, to open[] and to the epoll descriptor. Returns 0 or a negative errno. */
int roci_udp_add(struct roci_udp *udp, unsigned index);
void roci_udp_remove(struct roci_udp *udp, unsigned index);

/* True where the process that has port 4791 of `gid` is one of ours, of any user, and sends by side doors what is for
 * others. Takes half a second where it is not, and somebody has bound exactly this address. */
bool roci_udp_is_relayed(const struct roci_slot_key *key, const uint8_t gid[16], uint32_t ifindex);

/* It was to be opened, and is not. */
static inline bool roci_udp_is_missing(const struct udp_socket *s)
{
	return s->wanted && s->fd < 0;
}

/* Who has the ports that are missing. */
struct udp_survey {
	struct roci_udp *udp;
	uint32_t same; /* bit per GID index: it is the one that had the port when it was last bound in vain */
	unsigned fits[ROCI_MAX_GIDS];
	uint32_t holders[ROCI_MAX_GIDS]; /* inode of the socket; 0: none was seen */
};
/* One reading of the kernel's lists. */
void roci_udp_survey(struct roci_udp *udp, struct udp_survey *survey);
/* Asks whoever has the port of GID `index`, and clears its error where he forwards. */
void roci_udp_inquire(struct roci_udp *udp, unsigned index, uint64_t now);
/* The same where another socket has the port by now, or did not answer the first time: twice a socket at most, and
 * once in ten seconds for each address that is missing. Warns where he does not forward. */
void roci_udp_inquire_again(struct roci_udp *udp, unsigned index, uint32_t holder, uint64_t now);
/* Says on stderr, once, that the port cannot be had: `err`. */
void roci_udp_warn(struct udp_socket *s, const uint8_t gid[16], int err);

/* The socket that packets to `av` leave from: the source where av->src_port is its port, else the one that receives. */
struct udp_socket *roci_udp_source_of(struct roci_udp *udp, const struct roci_av *av);
void roci_udp_close_sources(struct roci_udp *udp);
void roci_udp_close_source_questions(struct roci_udp *udp);
/* The source port that a random number stands for: one of those above 4791 that Wireshark does not take for another
 * protocol's. */
uint16_t roci_udp_port_for(uint32_t random);
/* Binds to `port` of the GID; 0: the kernel chooses. Returns 0 or a negative errno. */
int roci_udp_bind(int fd, const struct roci_gid_entry *from, uint16_t port);
/* What is sent to the socket takes no room in its buffer from now on. Returns 0 or a negative errno. */
int roci_udp_receive_nothing(int fd);
/* As roci_udp_route(), and asks the kernel in any case. */
int roci_udp_route_afresh(struct roci_udp *udp, uint64_t now, unsigned index, const uint8_t dgid[16],
			  uint32_t *carries);
/* Closes the socket of udp_route.c for GID `index`, if there is one. */
void roci_udp_close_question(struct roci_udp *udp, unsigned index);
/* Closes the source of GID `index`, and the socket of roci_udp_route(). Its port stays for roci_udp_source_port(),
 * unless `forget`. */
void roci_udp_close_source(struct roci_udp *udp, unsigned index, bool forget);

/* GID `index` is ready: joins the groups on its interface. */
void roci_udp_join_on(struct roci_udp *udp, unsigned index);

unsigned roci_udp_max_run(struct roci_link *link, const struct roci_av *av);
void roci_udp_send(struct roci_link *link, struct roci_frame *frames, unsigned count);
unsigned roci_udp_recv(struct roci_link *link, struct roci_datagram *out);
void roci_udp_prepare_recv(struct roci_udp *udp);

#endif
