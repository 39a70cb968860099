# SPDX-License-Identifier: BSD-2-Clause
"""Reads a capture of RoCEv2: the pcap file, the headers, and the ICRC by zlib's CRC. It uses no code of the product.

As a program: roce_pcap.py FILE... prints how many packets of each opcode a file has, and the packets with a wrong ICRC.
"""
import collections
import struct
import sys
import zlib

ROCE_PORT = 4791
ETHERNET, RAW_IP = 1, 101  # link types

OPERATIONS = {
    0: 'SEND_FIRST', 1: 'SEND_MIDDLE', 2: 'SEND_LAST', 3: 'SEND_LAST_IMM', 4: 'SEND_ONLY', 5: 'SEND_ONLY_IMM',
    6: 'WRITE_FIRST', 7: 'WRITE_MIDDLE', 8: 'WRITE_LAST', 9: 'WRITE_LAST_IMM', 10: 'WRITE_ONLY', 11: 'WRITE_ONLY_IMM',
    12: 'READ_REQUEST', 13: 'READ_RESPONSE_FIRST', 14: 'READ_RESPONSE_MIDDLE', 15: 'READ_RESPONSE_LAST',
    16: 'READ_RESPONSE_ONLY', 17: 'ACK', 18: 'ATOMIC_ACK', 19: 'CMP_SWAP', 20: 'FETCH_ADD', 22: 'SEND_LAST_INV',
    23: 'SEND_ONLY_INV', 28: 'FLUSH', 29: 'ATOMIC_WRITE',
}
CNP = 0x81  # congestion notification
TRANSPORTS = {0: 'RC', 1: 'UC', 3: 'UD'}

Packet = collections.namedtuple('Packet', 'number version opcode name ip udp bth icrc computed length_right')


def frames(path):
    """Yields (number, Ethernet frame) of a classic pcap file, numbered as in Wireshark. Raw IP gets an Ethernet header."""
    with open(path, 'rb') as f:
        data = f.read()
    magic = data[:4]
    order = '<' if magic in (b'\xd4\xc3\xb2\xa1', b'\x4d\x3c\xb2\xa1') else '>'
    if struct.unpack(order + 'I', magic)[0] not in (0xa1b2c3d4, 0xa1b23c4d):
        raise ValueError(f'{path} is not a pcap file')
    link_type = struct.unpack(order + 'I', data[20:24])[0]
    if link_type not in (ETHERNET, RAW_IP):
        raise ValueError(f'{path} does not hold Ethernet frames')
    at, number = 24, 0
    while at < len(data):
        captured, original = struct.unpack(order + 'II', data[at + 8:at + 16])
        if captured != original:
            raise ValueError(f'{path}: frame {number + 1} is cut')
        number += 1
        frame = data[at + 16:at + 16 + captured]
        if link_type == RAW_IP:
            frame = bytes(12) + (b'\x08\x00' if frame[0] >> 4 == 4 else b'\x86\xdd') + frame
        yield number, frame
        at += 16 + captured


def masked_ip(ip):
    """The IP header for the ICRC (IBTA A17.3.3): all bits that routers may change are ones."""
    masked = bytearray(ip)
    if ip[0] >> 4 == 4:
        masked[1] = 0xff             # type of service
        masked[8] = 0xff             # time to live
        masked[10:12] = b'\xff\xff'  # checksum
    else:
        masked[0] |= 0x0f            # traffic class and flow label
        masked[1:4] = b'\xff\xff\xff'
        masked[7] = 0xff             # hop limit
    return bytes(masked)


def icrc(ip, udp, bth_to_pad):
    udp = udp[:6] + b'\xff\xff'
    bth = bytearray(bth_to_pad)
    bth[4] = 0xff
    return zlib.crc32(b'\xff' * 8 + masked_ip(ip) + udp + bytes(bth)) & 0xffffffff


def parse(number, frame):
    """The RoCEv2 packet in a frame; None if there is none."""
    if frame[12:14] == b'\x08\x00':
        length = (frame[14] & 15) * 4
        protocol, total = frame[23], struct.unpack('>H', frame[16:18])[0]
        if length != 20 or struct.unpack('>H', frame[20:22])[0] & 0x3fff:
            return None  # options or a fragment: not RoCEv2
    elif frame[12:14] == b'\x86\xdd':
        length, protocol = 40, frame[20]
        total = 40 + struct.unpack('>H', frame[18:20])[0]
    else:
        return None
    ip, rest = frame[14:14 + length], frame[14 + length:14 + total]
    if protocol != 17 or struct.unpack('>H', rest[2:4])[0] != ROCE_PORT:
        return None
    udp, bth = rest[:8], rest[8:-4]
    name = 'CNP' if bth[0] == CNP else f'{TRANSPORTS.get(bth[0] >> 5, bth[0] >> 5)}_{OPERATIONS.get(bth[0] & 31, bth[0] & 31)}'
    return Packet(number, ip[0] >> 4, bth[0], name, ip, udp, bth, struct.unpack('<I', rest[-4:])[0], icrc(ip, udp, bth),
                  struct.unpack('>H', udp[4:6])[0] == len(rest))


def packets(path):
    return [packet for packet in (parse(number, frame) for number, frame in frames(path)) if packet]


def main():
    status = 0
    for path in sys.argv[1:]:
        found = packets(path)
        wrong = [p for p in found if p.icrc != p.computed]
        counts = collections.Counter(p.name for p in found)
        print(f'{path}: {len(found)} packets, {len(wrong)} with a wrong ICRC;',
              ', '.join(f'{name} {n}' for name, n in sorted(counts.items())))
        for p in wrong[:10]:
            print(f'  frame {p.number} {p.name}: ICRC {p.icrc:08x}, computed {p.computed:08x}')
        status |= bool(wrong)
    return status


if __name__ == '__main__':
    sys.exit(main())
