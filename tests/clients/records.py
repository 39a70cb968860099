# SPDX-License-Identifier: BSD-2-Clause
"""Reads the records and packets of a capture of Rocinante, by docs/WIRE.md. It uses no code of the product."""
import collections
import struct

BLOCK, PACKET = 0xe9636f72, 6
KINDS = ['', 'process', 'post send', 'post recv', 'post srq', 'completion', 'state', 'cm', 'fault', 'send taken', 'recv taken', 'executed']

Record = collections.namedtuple('Record', 'time kind pid qp_type opcode status flags qpn peer queue imm rkey wr_id length address '
                                'local remote text')
Packet = collections.namedtuple('Packet', 'time kind pid outbound bytes')


def parse_packet(body):
    _, high, low, captured, _ = struct.unpack_from('<5I', body)
    at, options = 20 + (captured + 3) // 4 * 4, {}
    while at < len(body):
        code, length = struct.unpack_from('<HH', body, at)
        options[code] = body[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return Packet(high << 32 | low, 'packet', struct.unpack('<I', options[6])[0], struct.unpack('<I', options[2])[0] & 3 == 2,
                  body[20:20 + captured])


def parse_record(body):
    magic, version, kind, high, low, pid, qp_type, opcode, _, status, flags, qpn, peer, queue, imm, rkey, _, wr_id, length, \
        address = struct.unpack_from('<4sHHIIIBBHIIIIIIIIQQQ', body)
    assert (magic, version) == (b'roci', 1) and len(body) == 176
    return Record(high << 32 | low, KINDS[kind], pid, qp_type, opcode, status, flags, qpn, peer, queue, imm, rkey, wr_id, length,
                  address, body[80:96], body[96:112], body[112:].split(b'\0')[0].decode())


def read(path):
    """The records and packets, in the order of the file."""
    with open(path, 'rb') as f:
        data = f.read()
    at, found = 0, []
    while at < len(data):
        kind, length = struct.unpack_from('<II', data, at)
        body = data[at + 8:at + length - 4]
        assert struct.unpack_from('<I', data, at + length - 4)[0] == length
        if kind == BLOCK:
            found.append(parse_record(body))
        elif kind == PACKET:
            found.append(parse_packet(body))
        at += length
    return found
