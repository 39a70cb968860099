#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/all.py [--build BUILD] [--before BUILD] [--rounds N] [--only PATH,...] [--json FILE]: the whole table of how fast.

Each row is something of ours beside the same of others, or beside what the kernel can do. The measurements of a path take
turns; the table has the medians, and ratios in which more is better. bench/README.md says what the rows mean. --only takes
parts of the names in the first column. --before measures another build of ours in the same run, and adds what was gained.
Runs in network namespaces that it makes, without root (scp needs root). Takes less than 15 minutes on a quiet machine with
two processors. Nothing here fails for being slow.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'clients'))
import mover  # noqa: E402  (before the others, which put tests/clients first: it has a mover, too)
import connect  # noqa: E402
import harness  # noqa: E402
import table  # noqa: E402
import udp  # noqa: E402
from harness import Failure, Host, check, next_port, run_pair, transfer, veth_pair, wait_until  # noqa: E402
from table import Group, Measurement, Row  # noqa: E402

KIB, MIB = 1024, 1 << 20
INTEROP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'interop')
GUEST_KERNEL = '6.1'
UDP_HEADERS = 16 + 4 + 12  # BTH and ICRC, and the RETH of a WRITE's first packet
GROUPS = {}


def group(function):
    GROUPS[function.__name__] = function
    return function


def gbit_of(size, us):
    return size * 8 / us / 1e3


class Bench:
    """Two hosts, or one: server and client. One method per thing that is measured; each returns a figure."""

    def __init__(self, build, seconds, hosts):
        self.build, self.seconds, (self.server, self.client) = build, seconds, hosts

    def address(self, host):
        return host.address

    def program(self, name):
        return os.path.join(self.build, 'bench', name)

    # ---- ours ----

    def perftest(self, *argv):
        return udp.perftest(self.server, self.client, self.address, argv)

    def gbit(self, tool, size, *more):
        duration = ['-D', str(self.seconds + 2), '-f', '1', '--report_gbits']
        return float(self.perftest(tool, '-s', str(size), *duration, *more)[3])

    def gbit_by_events(self, tool, size, count):
        """One message at a time. perftest has no duration with events."""
        return float(self.perftest(tool, '-s', str(size), '-n', str(count), '-t', '1', '--report_gbits', '-e')[3])

    def message_rate(self, size, *tool):
        return udp.message_rate(self.server, self.client, self.address, self.seconds, tool, size)

    def latency(self, tool, size, *more):
        """The median, one way."""
        return float(self.perftest(tool, '-s', str(size), '-n', '10000', *more)[4])

    def many_qps(self, count, *more):
        text = transfer(self.server, self.client, [self.program('many_qps'), '-n', str(count), *more],
                        ['-g', self.server.gid_index(self.server.address)],
                        ['-g', self.client.gid_index(self.client.address)], seconds=120)
        return dict((unit, float(value)) for value, unit in re.findall(r'([\d.]+) (bytes|WRITEs|%)', text[1]))

    def processes_gbit(self, count):
        """The sum of `count` pairs of processes."""
        argv = ['ib_write_bw', '-s', str(64 * KIB), '-D', str(self.seconds + 4), '-f', '2', '--report_gbits', '-F', '-d',
                harness.DEVICE]
        pairs = []
        try:
            for _ in range(count):
                port = next_port()
                server = self.server.start(*argv, '-p', str(port), '-x', self.server.gid_index(self.server.address))
                pairs.append((port, server))
            for port, server in pairs:
                wait_until('the server to listen', lambda: self.server.listens(port) or not server.running())
            clients = [self.client.start(*argv, '-p', str(port), '-x', self.client.gid_index(self.client.address),
                                         self.server.address) for port, _ in pairs]
            texts = [run_pair(server, client, 120)[1] for (_, server), client in zip(pairs, clients)]
        finally:
            for _, server in pairs:
                server.end()
        return sum(float(udp.result_line(text)[3]) for text in texts)

    # ---- theirs ----

    def tcp_gbit(self):
        return udp.tcp_gbit(self.server, self.client, self.address, self.seconds)

    def tcp_exchange_us(self, request, answer, count):
        argv = [self.program('limit_tcp'), '-q', str(request), '-a', str(answer), '-n', str(count)]
        port = str(next_port())
        server = self.server.start(*argv, '-p', port, plain=True)
        wait_until('limit_tcp', lambda: self.server.listens(int(port)) or not server.running())
        client = self.client.start(*argv, '-p', port, self.server.address, plain=True)
        return float(run_pair(server, client)[1].split()[0])

    def raw_udp(self, length, run):
        """Packets a second, Gbit/s."""
        argv = [self.program('limit_udp'), '-p', str(next_port()), '-t', str(self.seconds), '-l', str(length)]
        server = self.server.start(*argv, plain=True)
        wait_until('limit_udp', lambda: 'ready' in server.text() or not server.running())
        text, _ = run_pair(server, self.client.start(*argv, '-r', str(run), self.server.address, plain=True))
        return tuple(float(x) for x in re.search(r'(\d+) packets/s ([\d.]+) Gbit/s', text).groups())

    def udp_exchange_us(self, length):
        """Half a round trip of packets of this length, where both ends poll."""
        argv = [self.program('limit_udp'), '-p', str(next_port()), '-l', str(length), '-x', '10000']
        server = self.server.start(*argv, plain=True)
        wait_until('limit_udp', lambda: 'ready' in server.text() or not server.running())
        return float(run_pair(server, self.client.start(*argv, self.server.address, plain=True))[1].split()[0])

    def copy(self, length):
        """Microseconds of a process_vm_writev(), GB/s."""
        text = self.client.call(self.program('limit_copy'), '-l', str(length), '-t', str(self.seconds), plain=True)
        return tuple(float(x) for x in re.search(r'([\d.]+) us ([\d.]+) GB/s', text).groups())

    def ucx(self, test, tls, count):
        """The figures of ucx_perftest's result: iterations, median, ..., messages a second."""
        harness.need('ucx_perftest')
        env = dict(UCX_TLS=tls, UCX_WARN_UNUSED_ENV_VARS='n')
        argv = ['ucx_perftest', '-f', '-t', test, '-s', '8', '-n', str(count), '-p', str(next_port())]
        if tls == 'tcp':  # it looks for interfaces in /sys, which shows those of the namespace that mounted it
            env['UCX_NET_DEVICES'] = self.client.link
            argv = ['unshare', '-m', 'sh', '-c', 'mount -t sysfs sysfs /sys && exec "$@"', 'sh', *argv]
        server = self.server.start(*argv, env=env, plain=True)
        port = int(argv[-1])
        wait_until('ucx_perftest', lambda: self.server.listens(port) or not server.running())
        _, text = run_pair(server, self.client.start(*argv, self.server.address, env=env, plain=True))
        return [float(x) for x in text.strip().splitlines()[-1].split()]


class Spinners:
    """A program on each processor that does nothing but take time, while this is entered."""

    def __init__(self):
        self.programs = []

    def __enter__(self):
        self.programs = [subprocess.Popen(['sh', '-c', 'while :; do :; done']) for _ in range(os.cpu_count())]

    def __exit__(self, *_):
        for spinner in self.programs:
            spinner.kill()
            spinner.wait()


# ---- the groups ----

def by_local_path(take):
    """The measurement over the local path."""
    def with_path():
        os.environ['ROCI_PATH'] = 'local'
        try:
            return take()
        finally:
            del os.environ['ROCI_PATH']
    return with_path


@group
def local(hosts, options):
    b = Bench(options.build, options.seconds, hosts['one'])
    g = Group('local')
    for size, name in ((64 * KIB, '64 KiB'), (MIB, '1 MiB')):
        copy = f'process_vm_writev {name}'
        g.measurements[copy] = Measurement('Gbit/s', lambda s=size: b.copy(s)[1] * 8)
        for tool, least in (('ib_write_bw', 0.9), ('ib_read_bw', 0.8), ('ib_send_bw', 0.8)):
            g.measurements[f'{tool} {name}'] = Measurement('Gbit/s', by_local_path(lambda t=tool, s=size: b.gbit(t, s)), ours=True)
            g.rows.append(Row(f'{tool} {name}', f'{tool} {name}', (copy,), least))
    g.measurements.update({
        'process_vm_writev 8': Measurement('us', lambda: b.copy(8)[0]),
        'ib_write_lat 8': Measurement('us', by_local_path(lambda: b.latency('ib_write_lat', 8)), ours=True),
        'ib_send_lat 8': Measurement('us', by_local_path(lambda: b.latency('ib_send_lat', 8)), ours=True),
        'ucx tag_lat posix,cma': Measurement('us', lambda: b.ucx('tag_lat', 'posix,cma,self', 100000)[1]),
        'ib_send_bw 8': Measurement('messages/s', by_local_path(lambda: b.message_rate(8, 'ib_send_bw') * 1e6), ours=True),
        'ucx tag_bw posix,cma': Measurement('messages/s', lambda: b.ucx('tag_bw', 'posix,cma,self', 1000000)[-1]),
    })
    g.rows += [Row('ib_write_lat 8 bytes', 'ib_write_lat 8', ('process_vm_writev 8',), 0.67),
               Row('ib_send_lat 8 bytes', 'ib_send_lat 8', ('ucx tag_lat posix,cma',), 1),
               Row('ib_send_bw 8 bytes', 'ib_send_bw 8', ('ucx tag_bw posix,cma',), 1)]
    return g


def wire_bandwidth(name, b, payload, least_tcp, least_udp):
    packet = payload + UDP_HEADERS
    raw = f'raw UDP, {payload} bytes a packet'
    g = Group(name, {
        'ib_write_bw 64 KiB': Measurement('Gbit/s', lambda: b.gbit('ib_write_bw', 64 * KIB), ours=True),
        'iperf3 TCP': Measurement('Gbit/s', b.tcp_gbit),
        raw: Measurement('Gbit/s', lambda: b.raw_udp(packet, min(64, 65000 // packet))[1]),
    })
    g.rows = [Row('ib_write_bw 64 KiB', 'ib_write_bw 64 KiB', ('iperf3 TCP',), least_tcp),
              Row('ib_write_bw 64 KiB', 'ib_write_bw 64 KiB', (raw,), least_udp)]
    return g


@group
def wire_9000(hosts, options):
    return wire_bandwidth('wire 9000', Bench(options.build, options.seconds, hosts['veth 9000']), 8832, 2.0, 0.7)


@group
def wire_1500(hosts, options):
    return wire_bandwidth('wire 1500', Bench(options.build, options.seconds, hosts['veth 1500']), 1408, 1.2, 0.7)


@group
def wire_small(hosts, options):
    b = Bench(options.build, options.seconds, hosts['veth 9000'])
    g = Group('wire small', {
        'ib_send_lat 8': Measurement('us', lambda: b.latency('ib_send_lat', 8), ours=True),
        'ib_write_lat 8': Measurement('us', lambda: b.latency('ib_write_lat', 8), ours=True),
        'ucx tag_lat tcp': Measurement('us', lambda: b.ucx('tag_lat', 'tcp', 10000)[1]),
        'ucx put_lat tcp': Measurement('us', lambda: b.ucx('ucp_put_lat', 'tcp', 10000)[1]),
        'raw UDP, both polling': Measurement('us', lambda: b.udp_exchange_us(8 + UDP_HEADERS)),
        'SEND RC': Measurement('messages/s', lambda: b.message_rate(64, 'ib_send_bw') * 1e6, ours=True),
        'SEND UD': Measurement('messages/s', lambda: b.message_rate(64, 'ib_send_bw', '-c', 'UD') * 1e6, ours=True),
        'sendmmsg': Measurement('messages/s', lambda: b.raw_udp(64, 1)[0]),
    })
    g.rows = [Row('ib_send_lat 8 bytes', 'ib_send_lat 8', ('ucx tag_lat tcp',), 1),
              Row('ib_send_lat 8 bytes', 'ib_send_lat 8', ('raw UDP, both polling',)),
              Row('ib_write_lat 8 bytes', 'ib_write_lat 8', ('ucx put_lat tcp',), 1),
              Row('SENDs of 64 bytes, RC', 'SEND RC', ('sendmmsg',), 3),
              Row('SENDs of 64 bytes, UD', 'SEND UD', ('sendmmsg',), 3)]
    return g


def by_events(name, b, beside):
    """1 MiB at a time and 64 bytes, both ends asleep. beside(take) measures under the conditions of the group."""
    tcp_big, tcp_small = 'TCP 1 MiB, 1 byte back', 'TCP 64 bytes, half a round trip'

    def big(tool):
        return Measurement('Gbit/s', lambda: beside(lambda: b.gbit_by_events(tool, MIB, 1000)), ours=True)
    g = Group(name, {
        'ib_send_bw -e': big('ib_send_bw'),
        'ib_read_bw -e': big('ib_read_bw'),
        'ib_send_lat -e': Measurement('us', lambda: beside(lambda: b.latency('ib_send_lat', 64, '-e')), ours=True),
        tcp_big: Measurement('Gbit/s', lambda: beside(lambda: gbit_of(MIB, b.tcp_exchange_us(MIB, 1, 1000)))),
        tcp_small: Measurement('us', lambda: beside(lambda: b.tcp_exchange_us(64, 64, 10000)) / 2),
    })
    return g, tcp_big, tcp_small


@group
def asleep(hosts, options):
    b = Bench(options.build, options.seconds, hosts['veth 9000'])
    g, tcp_big, tcp_small = by_events('asleep', b, lambda take: take())
    g.rows = [Row('ib_send_bw -e -t 1, 1 MiB', 'ib_send_bw -e', (tcp_big,), 1.2),
              Row('ib_read_bw -e -t 1, 1 MiB', 'ib_read_bw -e', (tcp_big,), 1.2),
              Row('ib_send_lat -e, 64 bytes', 'ib_send_lat -e', (tcp_small,), 1)]
    return g


@group
def crowded(hosts, options):
    b = Bench(options.build, options.seconds, hosts['veth 9000'])

    def beside(take):
        with Spinners():
            return take()
    g, tcp_big, tcp_small = by_events('crowded', b, beside)
    g.measurements['ib_write_bw'] = Measurement(
        'Gbit/s', lambda: beside(lambda: b.gbit('ib_write_bw', MIB, '-t', '1')), ours=True)
    g.rows = [Row('ib_send_bw -e -t 1, 1 MiB', 'ib_send_bw -e', (tcp_big,), 0.9),
              Row('ib_read_bw -e -t 1, 1 MiB', 'ib_read_bw -e', (tcp_big,), 0.9),
              Row('ib_send_lat -e, 64 bytes', 'ib_send_lat -e', (tcp_small,), 0.9),
              Row('ib_write_bw -t 1, 1 MiB', 'ib_write_bw', (tcp_big,), 0.9)]
    return g


@group
def files(hosts, options):
    names = {'roci send': True, 'nc': False, 'rsync': False, 'scp': False}
    names = {name: ours for name, ours in names.items() if not mover.left_out(name)}
    wire = mover.Wire(harness.ROCI, None, options.scratch, 9000)
    large, small = f'{options.scratch}/large', f'{options.scratch}/small'
    mover.make_large(large, 1024 * MIB)
    mover.make_small(small, 10000)
    g = Group('files')

    def take(name, source, at):
        """The seconds to the end (0) or until all is synced (1): one copy has both, for whichever is asked for next."""
        wire.roci = harness.ROCI
        both_ends = copied.setdefault((wire.roci, name, source), {})
        if at not in both_ends:
            both_ends.update(enumerate(mover.measure(wire, name, source, keep=source == small)[:2]))  # many removals slow ext4
        return both_ends.pop(at)

    copied = {}
    for at, end in enumerate(('', ', synced')):  # `roci recv` returns when all is synced, the others long before
        for what, source in ((f'1 GiB{end}', large), (f'10,000 files{end}', small)):
            for name, ours in names.items():
                g.measurements[f'{name}, {what}'] = Measurement('s', lambda n=name, s=source, i=at: take(n, s, i), ours)
            others = tuple(f'{name}, {what}' for name in names if name != 'roci send')
            g.rows.append(Row(f'roci send, {what}', f'roci send, {what}', others, 1.3))
    return g


def by_both_paths(hosts, options):
    """A suffix for names, and how many_qps runs."""
    wire = Bench(options.build, options.seconds, hosts['veth 9000'])
    here = Bench(options.build, options.seconds, hosts['one'])
    return (('', wire.many_qps), (', local', lambda *argv: by_local_path(lambda: here.many_qps(*argv))()))


@group
def both(hosts, options):
    g = Group('both')
    for path, run in by_both_paths(hosts, options):
        for count in (8, 4096, 16000):
            g.measurements[f'{count} QPs{path}'] = Measurement(
                'WRITEs/s', lambda r=run, n=count: r(n, '-t', str(options.seconds))['WRITEs'], ours=True)
        g.rows += [Row(f'WRITEs of 4 KiB, {count} QPs{path}', f'{count} QPs{path}', (f'8 QPs{path}',), 1) for count in (4096, 16000)]
    return g


@group
def memory(hosts, options):
    g = Group('memory', rounds=1)
    for path, run in by_both_paths(hosts, options):
        g.measurements[f'QP{path}'] = Measurement('bytes', lambda r=run: r(4096)['bytes'], ours=True)
        g.rows.append(Row(f'an idle RC QP, queues of 16{path}', f'QP{path}', limit=4608))
    return g


@group
def idle(hosts, options):
    g = Group('idle', rounds=1)
    for path, run in by_both_paths(hosts, options):
        g.measurements[f'QPs{path}'] = Measurement('%', lambda r=run: r(4096, '-i', '10')['%'], ours=True)
        g.rows.append(Row(f'processor of 4096 idle QPs{path}', f'QPs{path}', limit=0.0005))
    return g


@group
def many(hosts, options):
    b = Bench(options.build, options.seconds, hosts['veth 9000'])
    return Group('many', {
        '16 processes': Measurement('Gbit/s', lambda: b.processes_gbit(16), ours=True),
        '1 process, 16 QPs': Measurement('Gbit/s', lambda: b.gbit('ib_write_bw', 64 * KIB, '-q', '16'), ours=True),
    }, [Row('ib_write_bw 64 KiB, 16 processes', '16 processes', ('1 process, 16 QPs',), 0.8)])


@group
def rate(hosts, options):
    server, client = hosts['veth 1500']
    args = ['-n', '5000', '-o', '100']
    return Group('rate', {
        'rdma_cm': Measurement('/s', lambda: connect.rdma_rate(server, client, server.address, args), ours=True),
        'TCP': Measurement('/s', lambda: connect.tcp_rate(server, client, server.address, args)),
    }, [Row('connections', 'rdma_cm', ('TCP',), 0.8)])


def download_kernel():
    """While there is a network: into the cache."""
    sys.path.append(INTEROP)
    import kernels
    try:
        kernels.Kernel(GUEST_KERNEL), kernels.busybox()
    except kernels.Unavailable:
        pass  # the guest's rows will say why


class Guest:
    """roci0 and Soft-RoCE in one guest with two processors, over the same veth. One boot measures both."""

    def __init__(self):
        self.found = {}  # by build

    def us(self, name, which):
        """which: roci0, raw UDP or rxe."""
        if harness.ROCI not in self.found:
            self.found[harness.ROCI] = self.measure()
        return self.found[harness.ROCI][name][which]

    def measure(self):
        argv = [sys.executable, '-B', os.path.join(INTEROP, 'run.py'), GUEST_KERNEL, 'test_speed.py', '1500']
        env = dict(os.environ, ROCI=harness.ROCI, ROCI_CLIENTS=harness.PROGRAMS)
        try:
            done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
        except subprocess.TimeoutExpired:
            raise Failure('the guest did not end within 900 seconds') from None
        figures = r'(ib_\w+_lat) 8 bytes: roci0 ([\d.]+), raw UDP ([\d.]+), rxe ([\d.]+) us'
        found = {name: dict(zip(('roci0', 'raw UDP', 'rxe'), map(float, us))) for name, *us in re.findall(figures, done.stdout)}
        check(done.returncode == 0 and len(found) == 2, done.stdout)
        return found


@group
def guest(hosts, options):
    run, g = Guest(), Group('guest', rounds=1)
    for name in ('ib_write_lat', 'ib_send_lat'):
        g.measurements[f'{name} 8'] = Measurement('us', lambda n=name: run.us(n, 'roci0'), ours=True)
        g.measurements[f'{name} 8, rxe'] = Measurement('us', lambda n=name: run.us(n, 'rxe'))
        g.rows.append(Row(f'{name} 8 bytes', f'{name} 8', (f'{name} 8, rxe',), 0.5))
    g.measurements['raw UDP'] = Measurement('us', lambda: run.us('ib_send_lat', 'raw UDP'))
    g.rows.append(Row('ib_send_lat 8 bytes', 'ib_send_lat 8', ('raw UDP',)))
    return g


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(os.path.dirname(__file__), '..', 'build'))
    parser.add_argument('--before', help='another build, to compare with')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=int, default=1, help='of each measurement that has a duration')
    parser.add_argument('--only', default='', help=f'which of {", ".join(GROUPS)}')
    parser.add_argument('--json', metavar='FILE', help='writes the table there, too')
    parser.add_argument('--dir', help='where files are copied: a folder on the file system to measure')
    parser.add_argument('--quiet', action='store_true', help='prints the table only')
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    wanted = [word.replace(' ', '_') for word in options.only.split(',')]
    options.groups = [name for name in GROUPS if any(word in name for word in wanted)]
    check(options.groups, f'no row is called {options.only}; there are: {", ".join(GROUPS)}')
    return options


def build_of(path):
    roci = os.path.join(os.path.abspath(path), 'roci', 'roci')
    check(os.access(roci, os.X_OK), f'{roci} is not built')
    return roci, os.path.join(os.path.abspath(path), 'tests', 'clients')


def main():
    options = parse()
    builds = {'': build_of(options.build)}
    if options.before:
        builds['before'] = build_of(options.before)
    harness.ROCI, harness.PROGRAMS = builds['']
    if 'guest' in options.groups:
        download_kernel()
    mover.isolate()
    start = time.monotonic()
    one = Host('one')
    # 'b' starts servers, 'a' is the client.
    hosts = {'one': (one, one), 'veth 9000': veth_pair(9000)[::-1], 'veth 1500': veth_pair(1500)[::-1]}
    progress = (lambda text: None) if options.quiet else (lambda text: print(text, flush=True))
    with tempfile.TemporaryDirectory(dir=options.dir) as options.scratch:
        results = []
        for name in options.groups:
            results += table.measure([GROUPS[name](hosts, options)], options.rounds, builds, progress)
    print()
    table.show(results)
    print(f'{time.monotonic() - start:.0f} s')
    if options.json:
        table.save(results, options.json)


if __name__ == '__main__':
    try:
        main()
    except (Failure, harness.Skip) as failure:
        sys.exit(f'all.py: {failure}')
