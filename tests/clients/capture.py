# SPDX-License-Identifier: BSD-2-Clause
"""Captures the frames of an interface of this namespace into a pcap file. It uses a packet socket, because that works with
CAP_NET_RAW in this namespace. Capture programs do not work here: they change their user, which this namespace forbids."""
import os
import socket
import struct
import threading

from harness import check, wait_until

ETH_P_ALL = 3
SOL_PACKET, PACKET_STATISTICS = 263, 6
MARKER = b'the capture ends here'


class Capture:
    def __init__(self, link, path):
        self.link, self.path = link, path
        self.done = threading.Event()
        self.failure = None

    def __enter__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self.socket.bind((self.link, 0))
        self.socket.settimeout(1)
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()
        return self

    def write(self):
        try:
            with open(self.path, 'wb', buffering=0) as f:  # a test may read the file during the capture
                f.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
                while not self.done.is_set():
                    try:
                        frame = self.socket.recv(262144)
                    except socket.timeout:
                        continue
                    if MARKER in frame:
                        return
                    f.write(struct.pack('<IIII', 0, 0, len(frame), len(frame)) + frame)
        except OSError as error:
            self.failure = error

    def __exit__(self, kind, value, trace):
        """Sends a marker. When the thread has read the marker, it has also read all frames before it."""
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.link.encode())
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)

        def ended():
            sender.sendto(MARKER, ('255.255.255.255', 9))
            return not self.thread.is_alive()
        try:
            wait_until('the end of the capture', ended)
        finally:
            self.done.set()
            self.thread.join(10)
            sender.close()
        _, dropped = struct.unpack('II', self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.socket.close()
        if kind is None:
            check(not self.failure, f'{os.path.basename(self.path)}: {self.failure}')
            check(not dropped, f'the capture lost {dropped} frames')
