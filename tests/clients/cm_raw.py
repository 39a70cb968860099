# SPDX-License-Identifier: BSD-2-Clause
"""Sends hand-made messages of connection management, such as no kernel's CM would send. It uses no code of the product."""
import socket
import struct

import roce_pcap

GSI_QKEY = 0x80010000
REQ, REJ, SIDR_REQ, SIDR_REP = 0x10, 0x12, 0x17, 0x18
TCP, UDP = 0x06, 0x11  # port spaces; the numbers are those of the IP protocols
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2


def gid(address):
    return bytes(10) + b'\xff\xff' + socket.inet_aton(address)


def ip_header(source, target):
    """The IP CM header with these addresses (IBTA A11.3.2)."""
    return struct.pack('>BBH12x4s12x4s', 0, 4 << 4, 12345, socket.inet_aton(source), socket.inet_aton(target))


def mad(attribute, tid, body):
    return (struct.pack('>BBBBHHQHHI', 1, 7, 2, 3, 0, 0, tid, attribute, 0, 0) + body).ljust(256, b'\0')


def req(number, space, port, source, target, ip=None):
    """A REQ (IBTA 12.6.5). `ip` replaces the IP CM header of these addresses."""
    body = struct.pack('>IIQQIIIIIIHBB', number, 0, 1 << 24 | space << 16 | port, 1, 0, 0,
                       (0x1000 + number) << 8 | 1,  # QPN, responder resources
                       1,                           # initiator depth
                       20 << 3,                     # remote response timeout, RC
                       20 << 3 | 7,                 # local response timeout, retry count
                       0xffff, 3 << 4 | 7, 15 << 4)
    path = struct.pack('>HH16s16sIBBBB', 0xffff, 0xffff, gid(source), gid(target), 0, 0, 64, 0, 17 << 3)
    return mad(REQ, number, body + path + bytes(44) + (ip or ip_header(source, target)))


def sidr_req(number, space, port, source, target):
    """A SIDR_REQ (IBTA 12.11.1.1)."""
    service = 1 << 24 | space << 16 | port
    return mad(SIDR_REQ, number, struct.pack('>IHHQ', number, 0xffff, 0, service) + ip_header(source, target))


class RawCm:
    """Speaks for an IPv4 address. It binds RoCE's port there to get the answers."""

    def __init__(self, address):
        self.address = address
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        self.socket.bind((address, roce_pcap.ROCE_PORT))
        self.socket.settimeout(20)  # only a hang takes so long

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()

    def send(self, target, message):
        """Sends it in a UD SEND Only to QP1. The ICRC assumes IPv4 identification 0, which a receiver cannot see anyway."""
        packet = struct.pack('>BBHIIII', 0x64, 0, 0xffff, 1, 0, GSI_QKEY, 1) + message
        length = 20 + 8 + len(packet) + 4
        ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, length, 0, 0x4000, 64, 17, 0, socket.inet_aton(self.address),
                         socket.inet_aton(target))
        udp = struct.pack('>HHHH', roce_pcap.ROCE_PORT, roce_pcap.ROCE_PORT, length - 20, 0)
        self.socket.sendto(packet + struct.pack('<I', roce_pcap.icrc(ip, udp, packet)), (target, roce_pcap.ROCE_PORT))

    def ask(self, target, message):
        """Sends it and returns the answer: (REJ, reason), (SIDR_REP, status) or (attribute, None). None: no answer came."""
        self.send(target, message)
        try:
            packet = self.socket.recv(4096)
        except TimeoutError:
            return None
        attribute, body = struct.unpack('>H', packet[20 + 16:20 + 18])[0], packet[20 + 24:]
        if attribute == REJ:
            return attribute, struct.unpack('>H', body[10:12])[0]
        return attribute, body[4] if attribute == SIDR_REP else None
