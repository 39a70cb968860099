# SPDX-License-Identifier: BSD-2-Clause
"""outage.py LINK LINK N: forwards frames between two interfaces of its namespace. After N frames of RoCE it forwards nothing, until
SIGUSR1; then everything again. At SIGTERM it prints how many frames of RoCE came."""
import select
import signal
import socket
import sys

import relay


def main():
    left, right, limit = relay.link_socket(sys.argv[1]), relay.link_socket(sys.argv[2]), int(sys.argv[3])
    state = {'count': 0, 'over': False}

    def end(*_):
        print(f"{state['count']} frames", flush=True)
        sys.exit(0)

    def over(*_):
        state['over'] = True
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, over)
    print('on the path', flush=True)
    while True:
        for source in select.select([left, right], [], [])[0]:
            frame, address = source.recvfrom(65536)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            if relay.is_roce(frame):
                if state['count'] >= limit and not state['over']:
                    if state['count'] == limit:
                        print('outage', flush=True)
                        state['count'] += 1
                    continue
                state['count'] += 1
            (right if source is left else left).send(frame)


if __name__ == '__main__':
    main()
