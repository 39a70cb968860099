# SPDX-License-Identifier: BSD-2-Clause
"""Makes captures that no network has seen: pcapng blocks of packets, and of the records of docs/WIRE.md."""
import struct

import roce_pcap

A, B, T0 = (10, 0, 0, 1), (10, 0, 0, 2), 1763829000 * 10**9


def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack('<II', kind, 12 + len(body)) + body + struct.pack('<I', 12 + len(body))


HEAD = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1)) + block(1, struct.pack('<HHIHHII', 101, 0, 262144, 9, 1, 9, 0))


def packet(time_ns, source, destination, opcode, qpn, psn, rest=b'', pid=0, ack=False):
    bth = struct.pack('>BBHII', opcode, 0, 0xffff, qpn, psn | (0x80000000 if ack else 0))
    udp = struct.pack('>HHHH', 50000, 4791, 8 + len(bth) + len(rest) + 4, 0)
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + 8 + len(bth) + len(rest) + 4, 0, 0x4000, 64, 17, 0, bytes(source), bytes(destination))
    whole = ip + udp + bth + rest + struct.pack('<I', roce_pcap.icrc(ip, udp, bth + rest))
    options = struct.pack('<HHI', 6, 4, pid) + struct.pack('<HHI', 2, 4, 2) + bytes(4) if pid else b''
    return block(6, struct.pack('<IIIII', 0, time_ns >> 32, time_ns & 0xffffffff, len(whole), len(whole)) + whole
                 + bytes(-len(whole) % 4) + options)


def gid(address):
    return bytes(10) + b'\xff\xff' + bytes(address) if address else bytes(16)


def record(kind, time_ns, pid, text='', qpn=0, wr_id=0, opcode=0, status=0, length=0, flags=0, peer=0, local=None, remote=None):
    return block(0xe9636f72, struct.pack('<4sHHIIIBBHIIIIIIIIQQQ', b'roci', 1, kind, time_ns >> 32, time_ns & 0xffffffff, pid, 2, opcode, 0, status,
                                         flags, qpn, peer, 1, 0, 0, 0, wr_id, length, 0) + gid(local) + gid(remote)
                 + text.encode()[:63].ljust(64, b'\0'))
