# SPDX-License-Identifier: BSD-2-Clause
"""Starts servers that wait for connections through rdma_cm, and finds out when they are ready."""
import os

from harness import Failure, wait_until

ROCE_PORT = 4791


def udp_inodes(pid):
    """The sockets in the namespace of `pid` that are bound to RoCE's port."""
    inodes = set()
    for table in ('udp', 'udp6'):
        with open(f'/proc/{pid}/net/{table}') as f:
            for line in f.readlines()[1:]:
                field = line.split()
                if field[1].endswith(f':{ROCE_PORT:04X}'):
                    inodes.add(f'socket:[{field[9]}]')
    return inodes


def listens(process):
    """Whether the process has bound RoCE's port. It does so at the latest when it begins to listen."""
    try:
        mine = {os.readlink(f'/proc/{process.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{process.pid}/fd')}
        return bool(mine & udp_inodes(process.pid))
    except OSError:
        return False


def serve(host, *argv, env=None, ready=listens):
    """Starts a server and returns its process when ready(process) is true."""
    server = host.start(*argv, env=env)
    try:
        wait_until(f'{argv[0]} to listen', lambda: ready(server) or not server.running())
    except Failure as failure:
        server.end()
        raise Failure(f'{failure}\n{server.report()}') from None
    return server
