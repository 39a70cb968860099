# SPDX-License-Identifier: BSD-2-Clause
"""Checks a capture by programs that are not ours: Wireshark decodes it, and zlib computes every ICRC."""
import os
import struct
import subprocess

import roce_pcap
from harness import check, need

SHORTEST, LONGEST = 12 + 4, 12 + 16 + 4 + 1024 + 4  # BTH and ICRC; also RETH, immediate data and the path MTU


def tshark(path, *fields):
    """Returns (frame number, value of each field) for every RoCEv2 packet of a capture. No packet may be malformed.
    Some dissectors are off, because they take the payload for another protocol. ICMP is left out: it may quote a packet
    that came after its receiver had ended."""
    need('tshark')
    argv = ['tshark', '-r', path, '-Y', 'udp.dstport == 4791 && !icmp && !icmpv6', '--disable-protocol', 'rpcordma',
            '--disable-protocol', 'infiniband.eoib', '-T', 'fields', '-E', 'occurrence=a']
    fields = ('frame.number', '_ws.malformed', '_ws.expert.message', *fields)
    for field in fields:
        argv += ['-e', field]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                          env=dict(os.environ, HOME=os.path.dirname(path)))
    check(done.returncode == 0, f'tshark failed:\n{done.stderr}')
    rows = [line.split('\t') for line in done.stdout.splitlines()]
    bad = [' '.join(row) for row in rows if row[1] or row[2]]
    check(not bad, f'tshark complains about {len(bad)} of {len(rows)} packets:\n' + '\n'.join(bad[:20]))
    numbers = {p.number for p in roce_pcap.packets(path)}
    check({int(row[0]) for row in rows} == numbers, 'tshark sees other packets than the capture holds')
    return [(int(row[0]), *row[3:]) for row in rows]


def divided(packet):
    """The packets of a frame that segmentation offload has not divided yet, each as (ICRC, computed). Linux divides it: all are as
    long as the first but for the last, which may be shorter, and the IPv4 identification counts. The frame does not tell how long
    the first is: the length is right with which all ICRCs agree. Returns [] if there is none."""
    message = packet.bth + packet.icrc.to_bytes(4, 'little')
    for length in range(SHORTEST, min(len(message), LONGEST + 1), 4):
        parts = []
        for index, at in enumerate(range(0, len(message), length)):
            part = message[at:at + length]
            parts.append((int.from_bytes(part[-4:], 'little'), roce_pcap.icrc(*headers(packet, index, len(part)), part[:-4])))
            if parts[-1][0] != parts[-1][1]:
                break
        else:
            return parts
    return []


def headers(packet, index, length):
    """The IP and the UDP header of one of the packets of such a frame."""
    ip, udp = bytearray(packet.ip), packet.udp[:4] + struct.pack('>H', 8 + length) + packet.udp[6:]
    if packet.version == 4:
        ident = struct.unpack('>H', ip[4:6])[0] + index
        ip[2:6] = struct.pack('>HH', len(ip) + 8 + length, ident & 0xffff)
    else:
        ip[4:6] = struct.pack('>H', 8 + length)
    return bytes(ip), udp


def icrcs(path):
    """Compares the ICRC of every packet with zlib's CRC."""
    found = roce_pcap.packets(path)
    check(found, 'no packet')
    agree, wrong = 0, []
    for p in found:
        parts = [(p.icrc, p.computed)] if p.icrc == p.computed else divided(p)
        agree += len(parts)
        if not parts or not p.length_right:
            wrong.append(f'frame {p.number} {p.name}: ICRC {p.icrc:08x}, computed {p.computed:08x}, IP {p.ip.hex()}, {p.bth.hex()[:200]}')
    check(not wrong, f'{len(wrong)} of {len(found)} ICRCs are wrong\n' + '\n'.join(wrong[:20]))
    return f'{agree} ICRCs agree'
