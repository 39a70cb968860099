# SPDX-License-Identifier: BSD-2-Clause
"""Captures the packets of all_ops between two hosts. Wireshark must find every opcode and nothing malformed, and zlib must
compute every ICRC.

Segmentation offload is off, because with it a capture on a veth shows frames of several packets. One more run has it on, for
the ICRCs of the packets in such frames. The device's own capture (ROCI_CAPTURE) must pass the same checks.
"""
import collections
import os
import sys
import tempfile

import capture_checks
import roce_pcap
from capture import Capture
from harness import check, isolate, program, run, tap, transfer, veth_pair

MTU = 1500  # gives a path MTU of 1024

BOTH = ['SEND_FIRST', 'SEND_MIDDLE', 'SEND_LAST', 'SEND_LAST_IMM', 'SEND_ONLY', 'SEND_ONLY_IMM', 'WRITE_FIRST',
        'WRITE_MIDDLE', 'WRITE_LAST', 'WRITE_LAST_IMM', 'WRITE_ONLY', 'WRITE_ONLY_IMM']
RC_ONLY = ['READ_REQUEST', 'READ_RESPONSE_FIRST', 'READ_RESPONSE_MIDDLE', 'READ_RESPONSE_LAST', 'READ_RESPONSE_ONLY',
           'ACK', 'ATOMIC_ACK', 'CMP_SWAP', 'FETCH_ADD', 'SEND_LAST_INV', 'SEND_ONLY_INV', 'ATOMIC_WRITE', 'FLUSH']
EXPECTED = {f'RC_{name}' for name in BOTH + RC_ONLY} | {f'UC_{name}' for name in BOTH} | {
    'UD_SEND_ONLY', 'UD_SEND_ONLY_IMM'}


def capture(name, address, offload):
    """Captures a run of all_ops. Returns the file."""
    path = os.path.join(directory, f'{name}.pcap')
    state = 'on' if offload else 'off'
    for host in (host_a, host_b):
        host.run('ethtool', '-K', host.link, 'gso', state, 'gro', state, 'tso', state, 'tx-udp-segmentation', state)
    with Capture(host_a.link, path):
        transfer(host_b, host_a, [program('all_ops')], ['-g', host_b.gid_index(address(host_b))],
                 ['-g', host_a.gid_index(address(host_a))])
    return path


def own_capture(name, address):
    """all_ops captures its own packets with ROCI_CAPTURE. Both processes write to one file."""
    path = os.path.join(directory, f'{name}.pcapng')
    transfer(host_a, host_a, [program('all_ops')], ['-g', host_a.gid_index(address)], ['-g', host_a.gid_index(address)],
             env={'ROCI_CAPTURE': path})
    files[name] = os.path.join(directory, f'{name}.pcap')
    run('editcap', '-F', 'pcap', path, files[name])


def opcodes(name, version):
    found = roce_pcap.packets(files[name])
    missing = EXPECTED - {p.name for p in found}
    check(not missing, f'opcodes that the capture lacks: {", ".join(sorted(missing))}')
    unknown = {p.name for p in found} - EXPECTED - {'CNP'}  # a receiver under load may send congestion notifications
    check(not unknown, f'opcodes that all_ops does not use: {", ".join(sorted(unknown))}')
    check(all(p.version == version for p in found), f'not all packets are IPv{version}')
    return ', '.join(f'{n} {opcode}' for opcode, n in sorted(collections.Counter(p.name for p in found).items()))


def decoded(name):
    rows = capture_checks.tshark(files[name], 'infiniband.bth.opcode', 'infiniband.invariant.crc')
    found = {p.number: p for p in roce_pcap.packets(files[name])}
    for number, opcode, crc in rows:
        packet = found[number]
        check(int(opcode, 0) == packet.opcode, f'frame {number}: opcode {opcode}, not {packet.opcode}')
        if packet.name not in ('RC_ATOMIC_WRITE', 'RC_FLUSH', 'CNP'):  # unknown to this decoder
            check(crc and int(crc, 0) == int.from_bytes(packet.icrc.to_bytes(4, 'little'), 'big'),
                  f'frame {number} {packet.name}: tshark finds the ICRC {crc}')
    return f'{len(rows)} packets decoded'


def made(name, address, offload):
    files[name] = capture(name, address, offload)


def cases():
    for version, address in ((4, lambda host: host.address), (6, lambda host: host.ipv6)):
        name = f'IPv{version}'
        yield f'{name}: all_ops runs', lambda n=name, a=address: made(n, a, False)
        yield f'{name}: every opcode is in the capture', lambda n=name, v=version: opcodes(n, v)
        yield f'{name}: tshark decodes every packet', lambda n=name: decoded(n)
        yield f'{name}: zlib agrees with every ICRC', lambda n=name: capture_checks.icrcs(files[n])
        offload = f'IPv{version} with segmentation offload'
        yield f'{offload}: all_ops runs', lambda n=offload, a=address: made(n, a, True)
        yield f'{offload}: zlib agrees with every ICRC', lambda n=offload: capture_checks.icrcs(files[n])
        own = f'own capture, IPv{version}'
        yield f'{own}: all_ops runs', lambda n=own, a='127.0.0.1' if version == 4 else '::1': own_capture(n, a)
        yield f'{own}: every opcode is in the capture', lambda n=own, v=version: opcodes(n, v)
        yield f'{own}: tshark decodes every packet', lambda n=own: decoded(n)
        yield f'{own}: zlib agrees with every ICRC', lambda n=own: capture_checks.icrcs(files[n])


if __name__ == '__main__':
    isolate()
    host_a, host_b = veth_pair(MTU)
    files = {}
    with tempfile.TemporaryDirectory() as directory:
        sys.exit(tap(list(cases())))
