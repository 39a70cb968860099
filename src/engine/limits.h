/* SPDX-License-Identifier: BSD-2-Clause */
/* The limits that the device announces and keeps. */
#ifndef ROCI_ENGINE_LIMITS_H
#define ROCI_ENGINE_LIMITS_H

#define ROCI_MAX_QP            16000 /* of 16,384 QPNs of a process's block */
#define ROCI_MAX_QP_WR         32768
#define ROCI_MAX_SGE           32
#define ROCI_MAX_INLINE        1024 /* bytes */
#define ROCI_MAX_CQ            65536
#define ROCI_MAX_CQE           4194304
#define ROCI_MAX_SRQ           16384
#define ROCI_MAX_SRQ_WR        32768
#define ROCI_MAX_MR            524288
#define ROCI_MAX_MW            524288
#define ROCI_MAX_PD            65536
#define ROCI_MAX_AH            65536
#define ROCI_MAX_RD_ATOMIC     16 /* outstanding RDMA READ and atomic operations of a QP, either side */
#define ROCI_MAX_MCAST_GROUPS  256
#define ROCI_MAX_MCAST_ATTACH  64          /* QPs of one group */
#define ROCI_MAX_MESSAGE_BYTES 0x80000000u /* 2 GiB, IBTA 9.7.8 */
#define ROCI_MAX_GIDS          32
#define ROCI_MAX_MTU           4096 /* bytes: the largest path MTU */
#define ROCI_MAX_PAYLOAD       8832 /* bytes of a packet between two Rocinantes, at most: plpmtu.h */
#define ROCI_GRH_BYTES         40

#endif
