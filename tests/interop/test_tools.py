# SPDX-License-Identifier: BSD-2-Clause
"""`roci send` and `roci recv` between two Soft-RoCE devices with the system's libraries, and between Soft-RoCE and roci0:
folders with all kinds of entries, compared byte for byte; also over IPv6, with devices that the programs choose, and after
either side was killed. Then the other commands of `roci`, beside the kernel's device and against it; and the lessons of examples/."""
import filecmp
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import world
import capture_checks  # from tests/clients, which world adds to the path
import roce_pcap
from operations import OPERATIONS_ON
import test_examples
from harness import ROCI, check, need, next_port, program, run, run_pair, tap, veth_pair, wait_until
from mover import (LOST, MIB, OK, Receiver, check_no_wrong, check_same, environment, events, make_large, make_odd,
                   make_small, scratch, write)

OLD_KERNEL = platform.release().startswith('6.1.')
MODES = 'write', 'read', 'send'
STATS = 'roci: sent_packets'  # a process with roci0 prints it (ROCI_STATS); one with a kernel's device does not


def make_few(folder):
    """Enough data to interrupt a transfer, and no more."""
    make_small(folder, 30)
    make_large(os.path.join(folder, 'large'), 6 * MIB + 5)


class Bench:
    """The files to send, and a place to receive them."""

    def __init__(self):
        self.scratch = scratch()
        self.there = os.path.join(self.scratch.name, 'there')

    def source(self, name, make, *args):
        """A folder, made when the first case needs it."""
        folder = os.path.join(self.scratch.name, name)
        if not os.path.isdir(folder):
            os.mkdir(folder)
            make(os.path.join(folder, 'it'), *args)
        return folder

    def clear(self):
        subprocess.run(['chmod', '-R', 'u+w', self.there])
        shutil.rmtree(self.there)

    def move(self, receiver, sender, folder, mode, *options, both=(), address=None):
        """`options` are the sender's. `both` are options of both sides: none, or how they choose a device."""
        os.mkdir(self.there)
        before = sender.sent_bytes()
        try:
            with Receiver(receiver, self.there, '--once', *both, address=address) as recv:
                process = recv.send(sender, os.path.join(folder, 'it'), '--mode', mode, *options, *both)
                status = process.wait(60)
                check(status == 0 and recv.process.wait(20) == 0, f'{process.report()}\n{recv.process.report()}')
            check_same(folder, self.there)
        finally:
            self.clear()
        for host, end in ((receiver, recv.process), (sender, process)):
            connected = events(end, 'connected')[0]
            expected = {'device': host.device, 'embedded': not host.plain, 'mode': mode, 'encrypted': '--no-encrypt' not in options}
            check(expected.items() <= connected.items(), f'{connected}\nis not\n{expected}')
            check((STATS in end.text()) != host.plain, end.report())
            if not host.plain:  # it sees the kernel's device, too
                reason = 'no IP address of this machine belongs to ' if both else 'requested'
                check(connected['reason'].startswith(reason), connected)
            check(not address or ':' in connected['address'] and ':' in address, f'{connected} is not by IPv6')
        moved = events(process, 'ended')[-1]['bytes_moved']
        check(sender.sent_bytes() - before > moved, f'{moved} bytes did not leave by {sender.link}')
        return f'{receiver.device} from {sender.device}: {moved} bytes'

    def odd(self, receiver, sender, *options):
        return self.move(receiver, sender, self.source('odd', make_odd), *options)

    def few(self, receiver, sender, **kw):
        return self.move(receiver, sender, self.source('few', make_few), 'write', **kw)

    def large(self, receiver, sender, *options):
        return self.move(receiver, sender, self.source('large', make_large, 64 * MIB), *options)

    def stream(self, receiver, sender):
        """Standard input to standard output."""
        there = tempfile.mkdtemp(dir=self.scratch.name)
        ticket, source, target = (os.path.join(there, name) for name in ('ticket', 'source', 'target'))
        write(source, os.urandom(3000000))
        device = [] if receiver.plain else ['--device', receiver.device]
        recv = receiver.start('sh', '-c', f'exec "$@" >{target}', 'sh', ROCI, 'recv', '--bind', receiver.address, '--port', '0',
                              '--ticket-file', ticket, *device, '-', plain=True, env=environment())
        try:
            wait_until('the ticket', lambda: os.path.exists(ticket) or not recv.running())
            send = sender.start('sh', '-c', f'exec "$@" <{source}', 'sh', ROCI, 'send', '--device', sender.device, '-',
                                f'@{ticket}', plain=True, env=environment())
            texts = run_pair(recv, send)
        finally:
            recv.end()
        check(f'device {receiver.device}' in texts[0] and f'device {sender.device}' in texts[1], '\n'.join(texts))
        check(filecmp.cmp(source, target, shallow=False), 'the data differ')
        return '\n'.join(texts)

    def killed(self, receiver, sender, who, mode):
        """SIGKILL in the middle. Files that have their final name by then are right, and the next transfer goes on from there."""
        folder = self.source('few', make_few)
        options = os.path.join(folder, 'it'), '--mode', mode
        os.mkdir(self.there)
        try:
            with Receiver(receiver, self.there, '--timeout', '5s') as recv:
                process = recv.send(sender, *options, '--limit', '1M', '--timeout', '5s')
                try:
                    wait_until('some of it', lambda: any(e['bytes_done'] for e in events(process, 'progress')) or
                               not (process.running() and recv.process.running()))
                    for host, end in ((receiver, recv.process), (sender, process)):
                        check(end.running(), end.report())
                        check(kernel_has_qps(host, end) == host.plain, f'does the kernel have QPs of this?\n{end.report()}')
                    (process if who == 'sender' else recv.process).end(signal.SIGKILL)
                    check_no_wrong(folder, self.there)
                    if who == 'sender':  # the same receiver, the same ticket, at once
                        ended = recv.take(sender, *options)
                    else:
                        check(process.wait(40) == LOST, process.report())
                        check_no_wrong(folder, self.there)
                finally:
                    process.end()
            if who == 'receiver':
                with Receiver(receiver, self.there, '--once') as recv:
                    ended = recv.take(sender, *options)
                    check(recv.process.wait(20) == OK, recv.process.report())
            check_same(folder, self.there)
        finally:
            self.clear()
        kept = ended['bytes_kept'] + ended['bytes_unchanged']
        check(kept, f'nothing was kept: {ended}')
        return f'{kept} bytes were kept, {ended["bytes_moved"]} moved'


def kernel_has_qps(host, process):
    """Whether this process has connections with QPs of the kernel's devices."""
    ids = json.loads(host.run('rdma', '-j', 'resource', 'show', 'cm_id') or '[]')
    return any(i.get('pid') == process.pid and 'lqpn' in i for i in ids)


def demo(host, mode):
    """The demo shows packets, which only the embedded device can record, so it uses that one on every machine. Here a kernel
    has RoCE's port."""
    with scratch() as out:
        text = host.call(ROCI, 'demo', '--out', out, '--mode', mode, plain=True, env=environment())
    check('roci0' in text and 'Verified  all 16777' in text and f'--mode {mode}' in text, text)


def port_taken(rxe, roci):
    """roci0 where the kernel has RoCE's port: it names the owner, and does not reach other hosts."""
    port = ['-p', str(next_port())]
    listener = roci.serve('rping', '-s', '-a', roci.address, *port)
    try:
        process = rxe.start(ROCI, 'run', '--', 'rping', '-c', '-a', roci.address, *port, '-C', '1')
        status = process.wait(30)
        check(status not in (0, None), process.report())
        check(f"UDP port 4791 of {rxe.address} is taken, by another program or the kernel's rdma_rxe module" in process.text(),
              process.report())
    finally:
        listener.end()
    return process.text()


def start_serve(server):
    """A `roci serve` that listens, and its port."""
    port = str(next_port())
    next_port()  # TCP's
    serve = server.start(ROCI, 'serve', '--json', '--bind', server.address, '--port', port, '--device', device_of(server), plain=True, env=environment())
    wait_until('roci serve', lambda: 'listening' in serve.text() or not serve.running())
    return serve, port


def perf(server, client, *more):
    """`roci perf`: every operation, both directions and events. Figures are printed; how good they are is not judged."""
    told = []
    serve, port = start_serve(server)
    try:
        for op, options in (('send', ('--qps', '3', '--cqs', '2')), ('send-imm', ('--events',)), ('write', ('--bidir', '--tcp')), ('write-imm', ()),
                            ('read', ('--qps', '2')), ('cas', ()), ('faa', ('--bidir',))):
            sizes = () if op in ('cas', 'faa') else ('--size', '64,16K')
            end = client.start(ROCI, 'perf', '--json', '--op', op, *sizes, '--time', '200ms', *options, *more, '--port', port,
                               '--device', device_of(client), server.address, plain=True, env=environment())
            status = end.wait(90)
            check(status == 0, f'{end.report()}\n{serve.report()}')
            lines = [json.loads(line) for line in end.text().splitlines() if line.startswith('{')]
            found = [line for line in lines if line['event'] == 'result']
            check(len(found) == (4 if sizes else 2) * (2 if '--tcp' in options else 1) and all(r['messages'] > 0 for r in found), end.report())
            check((STATS in end.text()) != client.plain, end.report())
            told.append(f'{op}: ' + ', '.join(f'{r["phase"]} of {r["bytes"]} B '
                                              + (f'{r["percentiles_ns"]["50"] / 1e3:.0f} us' if 'latency' in r['phase'] else f'{r["bytes_per_s"] / 1e6:.1f} MB/s')
                                              for r in found))
    finally:
        serve.end(signal.SIGINT)
    check((STATS in serve.text()) != server.plain, serve.report())
    return '\n'.join(told)


def ping_all(server, client, expected=None):
    """`roci ping --op all`: every combination that both devices can do works. Those that cannot be are the standard's, and what
    Soft-RoCE or the system's libraries lack."""
    if not expected:
        lacking = {'atomic-write', 'flush'} if OLD_KERNEL else {'flush'}
        expected = {(op, qp) for qp in OPERATIONS_ON for op in OPERATIONS_ON[qp] if op not in lacking}
    serve, port = start_serve(server)
    try:
        ping = client.start(ROCI, 'ping', '--op', 'all', '--json', '--port', port, '--device', device_of(client), server.address,
                            plain=True, env=environment())
        status = ping.wait(120)
    finally:
        serve.end(signal.SIGINT)
    lines = [json.loads(line) for line in ping.text().splitlines() if line.startswith('{')]
    done = [line for line in lines if line['event'] == 'combination']
    check(status == 0, f'{ping.report()}\n{serve.report()}\n{[c for c in done if c["possible"] and not c["good"]]}')
    worked = {(c['op'], c['qp']) for c in done if c['possible'] and c['good']}
    check(expected <= worked, f'missing: {expected - worked}\n{ping.report()}')
    reasons = {f'{c["op"]} on {c["qp"]} by {c["connect"]}: {c["reason"]}' for c in done if not c['possible'] and c['op'] in OPERATIONS_ON[c['qp']]}
    for host, end in ((server, serve), (client, ping)):
        check((STATS in end.text()) != host.plain, end.report())
    return '\n'.join([f'{len([c for c in done if c["possible"]])} combinations', *sorted(reasons)])


def device_of(host):
    return host.device if host.plain else 'embedded'


def setup(kind):
    """`roci setup` makes a device on another interface, which works; it does so once, and --undo removes it once."""
    host, _ = veth_pair()
    name = f'{kind}_{host.link}'
    check(f'{name} is on {host.link} now' in run(ROCI, 'setup', kind, host.link), 'it was there already')
    check(f'{name} is on {host.link} already' in run(ROCI, 'setup', kind, host.link), 'it was made twice')
    check(name in run('rdma', 'link', 'show'), run('rdma', 'link', 'show'))
    text = run(ROCI, 'ping', '--loopback', '--device', name, '-c', '3', '-i', '0')
    check(f'from device {name} to device {name}' in text and '3 operations, 0 failed' in text, text)
    check(f'{name} is removed' in run(ROCI, 'setup', '--undo', kind, host.link), 'it was not removed')
    check(name not in run('rdma', 'link', 'show'), run('rdma', 'link', 'show'))
    check('nothing to do' in run(ROCI, 'setup', '--undo', kind, host.link), 'it was removed twice')
    return text


class RunWith(world.Side):
    """Its programs run under `roci run` with these options."""

    def __init__(self, host, options):
        self.__dict__.update(host.__dict__)
        self.options = options

    def start(self, *argv, env=None, plain=False):
        return super().start(*([] if plain else [ROCI, 'run', *self.options, '--']), *argv, env=env, plain=True)


def all_ops(server, client, run_options, *args):
    """Every opcode of all_ops, with roci0 on one side, under `roci run` with these options. Returns the output of that side."""
    lacking = ['-a', '-f'] if OLD_KERNEL else ['-f']
    hosts = [host if host.plain else RunWith(host, run_options) for host in (server, client)]
    texts = world.transfer(*hosts, [program('all_ops'), '-x', *lacking, *args], '-g')
    for host, text in zip(hosts, texts):
        check((STATS in text) != host.plain, text)
    return texts[server.plain]


def capture(server, client):
    """`roci run --capture` records the packets of both sides, and their ICRCs are those that zlib computes."""
    need('editcap')
    with scratch() as folder:
        pcapng, pcap = os.path.join(folder, 'it.pcapng'), os.path.join(folder, 'it.pcap')
        all_ops(server, client, ['--capture', pcapng])
        run('editcap', '-F', 'pcap', pcapng, pcap)
        sources = {socket.inet_ntoa(packet.ip[12:16]) for packet in roce_pcap.packets(pcap)}
        check(sources == {server.address, client.address}, f'packets from {sources} only')
        return capture_checks.icrcs(pcap)


def fault(server, client):
    """`roci run --fault` loses, duplicates and reorders packets of roci0; both ends recover."""
    text = all_ops(server, client, ['--fault', 'loss=0.05,dup=0.05,reorder=0.05,seed=1'], '-r', '2')
    check(any(f'roci: {name}' in text for name in ('retransmits', 'rx_duplicate', 'rx_out_of_order')), text)


def cases(bench, receiver, sender, part=False):
    way = f'{sender.kind} to {receiver.kind}'
    every = [['--qps', '1', '--no-encrypt'], ['--qps', '4']]
    for mode in MODES:
        of_part = [['--qps', '4', '--no-encrypt'], *([['--qps', '1']] if mode == 'write' and not OLD_KERNEL else [])]
        for options in of_part if part else every:
            options = [mode, *options]
            yield f'{way}: all kinds, {" ".join(options)}', lambda o=options: bench.odd(receiver, sender, *o)
        if not part:
            yield f'{way}: 64 MiB, {mode}', lambda m=mode: bench.large(receiver, sender, m)
    yield f'{way}: a stream', lambda: bench.stream(receiver, sender)
    if not part:
        for who, mode in (('sender', 'write'), ('receiver', 'read')):
            yield (f'{way}: the {who} is killed, {mode}, and resumed',
                   lambda w=who, m=mode: bench.killed(receiver, sender, w, m))


def all_cases(rxe, roci, part=False):
    bench, auto = Bench(), ['--device', 'auto']
    for receiver, sender in (rxe, roci), (roci, rxe), world.kernel_pair('rxe'):
        way = f'{sender.kind} to {receiver.kind}'
        yield from cases(bench, receiver, sender, part)
        if not part or sender is rxe:
            yield f'{way}: --device auto', lambda r=receiver, s=sender: bench.few(r, s, both=auto)
    for receiver, sender in () if part else ((rxe, roci), (roci, rxe)):
        yield (f'{sender.kind} to {receiver.kind}: IPv6',
               lambda r=receiver, s=sender: bench.few(r, s, address=r.ipv6))
    for mode in MODES[:1] if part else MODES:
        yield f'roci demo --mode {mode} beside rxe', lambda m=mode: demo(rxe, m)
    yield 'roci run beside rxe: the port is taken', lambda: port_taken(rxe, roci)
    yield 'roci setup rxe', lambda: setup('rxe')
    for server, client in (rxe, roci), (roci, rxe):
        way = f'{client.kind} to {server.kind}'
        yield f'{way}: roci run --capture', lambda s=server, c=client: capture(s, c)
        yield f'{way}: roci ping --op all', lambda s=server, c=client: ping_all(s, c)
        yield f'{way}: roci perf', lambda s=server, c=client: perf(s, c)
        yield f'{way}: roci run --fault', lambda s=server, c=client: fault(s, c)
    # With deep queues Soft-RoCE of Linux 6.1 ends SENDs to itself with "remote invalid request" after RNR NAKs.
    yield 'rxe to rxe: roci perf', lambda: perf(*world.kernel_pair('rxe'), '--depth', '16')
    yield from test_examples.with_soft_roce(rxe, roci)


if __name__ == '__main__':
    sys.exit(tap(list(all_cases(*world.rxe_and_roci()))))
