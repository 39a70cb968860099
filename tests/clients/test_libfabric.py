# SPDX-License-Identifier: BSD-2-Clause
"""Runs libfabric (Debian's libfabric-bin): its verbs provider must see roci0 without a complaint, and carry messages."""
import re
import sys

from harness import SANITIZER, Skip, check, isolate, need, run_pair, tap, veth_pair, wait_until

CONTROL_PORT = 47592  # of fi_pingpong


def info():
    """Newer ones read the PCI address of the device from /sys, and warn where that is none. Other providers warn of themselves."""
    need('fi_info')
    text = host_a.call('fi_info', '-p', 'verbs', env={'FI_LOG_LEVEL': 'warn'})
    warnings = [line for line in text.splitlines() if re.search(r':verbs:.*<warn>|sysfs|pci', line, re.IGNORECASE)]
    check(not warnings, '\n'.join(warnings))
    check(re.search(r'domain: roci0$', text, re.MULTILINE) and 'FI_PROTO_RDMA_CM_IB_RC' in text, text)


def pingpong(server_host, client_host, provider, endpoint, address):
    need('fi_pingpong')
    if SANITIZER:
        raise Skip('libfabric does not survive a sanitizer')
    argv = ['fi_pingpong', '-p', provider, '-e', endpoint, '-I', '20']
    server = server_host.start(*argv)
    wait_until('the server to listen', lambda: server_host.listens(CONTROL_PORT) or not server.running())
    run_pair(server, client_host.start(*argv, address))


if __name__ == '__main__':
    isolate()
    host_a, host_b = veth_pair()
    sys.exit(tap([
        ('fi_info without a warning', info),
        ('datagrams between two hosts', lambda: pingpong(host_b, host_a, 'verbs', 'dgram', host_b.address)),
        # Without an address, it listens on the loopback interface.
        ('messages', lambda: pingpong(host_a, host_a, 'verbs', 'msg', '127.0.0.1')),
        ('reliable datagrams', lambda: pingpong(host_a, host_a, 'verbs;ofi_rxm', 'rdm', '127.0.0.1')),
    ]))
