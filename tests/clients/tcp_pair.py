# SPDX-License-Identifier: BSD-2-Clause
"""tcp_pair.py PORT [server|client]: a megabyte through a TCP connection of 127.0.0.1, by the very functions of libc that a
preloaded library replaces. (Python's own sockets use accept4(), which librspreload.so does not replace.)"""
import ctypes
import socket
import struct
import sys

BYTES = 1000000
libc = ctypes.CDLL(None, use_errno=True)


def done(result):
    if result < 0:
        sys.exit(f'errno {ctypes.get_errno()}')
    return result


here = struct.pack('=HH4s8x', socket.AF_INET, socket.htons(int(sys.argv[1])), socket.inet_aton('127.0.0.1'))
buffer = ctypes.create_string_buffer(65536)
fd = done(libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0))
if sys.argv[2] == 'server':
    done(libc.bind(fd, here, len(here)))
    done(libc.listen(fd, 1))
    print('listening', flush=True)
    fd = done(libc.accept(fd, None, None))
    got = 0
    while got < BYTES:
        n = done(libc.recv(fd, buffer, len(buffer), 0))
        if not n:
            sys.exit(f'the end after {got} bytes')
        got += n
    done(libc.send(fd, buffer, 1, 0))
else:
    done(libc.connect(fd, here, len(here)))
    left = BYTES
    while left:
        left -= done(libc.send(fd, buffer, min(left, len(buffer)), 0))
    if done(libc.recv(fd, buffer, 1, 0)) != 1:
        sys.exit('no answer')
libc.shutdown(fd, 2)
libc.close(fd)
