# SPDX-License-Identifier: BSD-2-Clause
"""Checks a capture by programs that are not ours: Wireshark decodes it, and zlib computes every ICRC."""
import os
import subprocess

import roce_pcap
from harness import check, need

BTH_BYTES, RETH_BYTES, PATH_MTU = 12, 16, 1024


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


def is_super_frame(packet):
    """Whether a frame holds several packets that segmentation offload has not divided yet: it is longer than a First or
    Middle packet can be."""
    return packet.name.endswith(('FIRST', 'MIDDLE')) and len(packet.bth) > BTH_BYTES + RETH_BYTES + PATH_MTU


def icrcs(path):
    """Compares the ICRC of every packet with zlib's CRC."""
    found = [p for p in roce_pcap.packets(path) if not is_super_frame(p)]
    check(found, 'no packet')
    wrong = [f'frame {p.number} {p.name}: ICRC {p.icrc:08x}, computed {p.computed:08x}, IP {p.ip.hex()}'
             for p in found if p.icrc != p.computed or not p.length_right]
    check(not wrong, f'{len(wrong)} of {len(found)} ICRCs are wrong\n' + '\n'.join(wrong[:20]))
    return f'{len(found)} ICRCs agree'
