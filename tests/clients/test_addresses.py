# SPDX-License-Identifier: BSD-2-Clause
"""Addresses that come and go while programs run: the GID table, its events, listeners and connections follow."""
import re
import subprocess
import sys

from cm_server import serve
from harness import ROCI, Process, check, isolate, need, next_port, program, run_pair, tap, veth_pair, wait_until


class Watch:
    """`addresses watch` on a host."""

    def __init__(self, host, *argv):
        self.process = host.start(program('addresses'), 'watch')
        self.until('the table', lambda table, port: port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.end()

    def last(self):
        """The table that was printed last, {address: index}, and the port's (state, MTU)."""
        self.text = self.process.text()
        tables = re.split(r'(?m)^event .*\n', self.text)
        port = re.search(r'(?m)^port (\w+) (\d+)$', tables[-1])
        table = {address.replace('::ffff:', ''): int(index)
                 for index, address in re.findall(r'(?m)^gid (\d+) (\S+)$', tables[-1])}
        return table, port and (port[1], int(port[2]))

    def until(self, what, condition):
        """Waits for an event after which the condition holds. Returns the table and the port's state then."""
        def holds():
            check(self.process.running(), self.process.report())
            table, port = self.last()
            return port and condition(table, port) and (table, port)
        try:
            return wait_until(what, holds)
        except Exception as failure:
            raise type(failure)(f'{failure}\n{self.process.report()}') from None

    def events(self, kind):
        """How many were in what last() read: so a table and events are of one moment."""
        return self.text.count(f'event {kind}, port 1')


def watch_gids():
    """Each change is a GID_CHANGE, after which verbs and sysfs have the new table. An address keeps its index."""
    with Watch(b) as watch:
        before, _ = watch.last()
        b.run('ip', 'addr', 'add', '10.78.0.1/24', 'dev', b.link)
        table, _ = watch.until('the new GID', lambda table, port: '10.78.0.1' in table)
        check(watch.events('GID table change') > 0, watch.process.report())
        check(table['10.78.0.1'] == max(before.values()) + 1, watch.process.report())
        b.run('ip', 'addr', 'del', '10.78.0.1/24', 'dev', b.link)
        watch.until('the GID to go', lambda table, port: table == before)
        b.run('ip', 'addr', 'add', '10.78.0.1/24', 'dev', b.link)
        again, _ = watch.until('the GID to come back', lambda table, port: '10.78.0.1' in table)
        check(again == table, watch.process.report())
        b.run('ip', 'addr', 'del', '10.78.0.1/24', 'dev', b.link)
        watch.until('the GID to go again', lambda table, port: table == before)
        check(watch.events('port error') == 0, watch.process.report())


def unread_events():
    """A program that does not fetch its events finds one GID_CHANGE, not hundreds."""
    late = b.start(program('addresses'), 'late', '-a', '10.78.0.9')
    try:
        wait_until('the program', lambda: 'waiting' in late.text() or not late.running())
        with Watch(b) as watch:
            for host in range(1, 6):
                b.run('ip', 'addr', 'add', f'10.78.0.{host}/24', 'dev', b.link)
                watch.until('the GID', lambda table, port: f'10.78.0.{host}' in table)
        b.run('ip', 'addr', 'add', '10.78.0.9/24', 'dev', b.link)
        check(late.wait(30) == 0, late.report())
        check('\n1 events' in late.text(), late.report())
    finally:
        late.end()
        for host in 1, 2, 3, 4, 5, 9:
            b.run('ip', 'addr', 'flush', 'to', f'10.78.0.{host}/32', 'dev', b.link)


def watch_link():
    """The lid closes and opens: the addresses have their indices again."""
    with Watch(b) as watch:
        before, _ = watch.last()
        b.run('ip', 'link', 'set', b.link, 'down')
        watch.until('the GIDs to go', lambda table, port: b.address not in table)
        b.run('ip', 'link', 'set', b.link, 'up')
        b.run('ip', 'addr', 'add', f'{b.ipv6}/64', 'dev', b.link, 'nodad')  # the kernel drops it with the link
        watch.until('the GIDs to come back', lambda table, port: table == before)


def watch_port():
    """The port is down when there is no address at all."""
    with Watch(b) as watch:
        before, port = watch.last()
        check(port[0] == 'active', watch.process.report())
        b.run('ip', 'link', 'set', b.link, 'down')
        b.run('ip', 'link', 'set', 'lo', 'down')
        _, port = watch.until('the port error', lambda table, port: not table and watch.events('port error') == 1)
        check(port[0] == 'down', watch.process.report())
        b.run('ip', 'link', 'set', 'lo', 'up')
        _, port = watch.until('the port to come up', lambda table, port: watch.events('port active') == 1)
        check(port[0] == 'active', watch.process.report())
        b.run('ip', 'link', 'set', b.link, 'up')
        b.run('ip', 'addr', 'add', f'{b.ipv6}/64', 'dev', b.link, 'nodad')
        watch.until('the GIDs', lambda table, port: table == before)


def watch_mtu():
    """The port's MTU follows the interface's."""
    with Watch(b) as watch:
        check(watch.last()[1][1] == 1024, watch.process.report())
        for host in a, b:
            host.run('ip', 'link', 'set', host.link, 'mtu', '9000')
        b.run('ip', 'addr', 'add', '10.78.0.2/24', 'dev', b.link)
        watch.until('the MTU', lambda table, port: '10.78.0.2' in table and port[1] == 4096)
        for host in a, b:
            host.run('ip', 'link', 'set', host.link, 'mtu', '1500')
        b.run('ip', 'addr', 'del', '10.78.0.2/24', 'dev', b.link)
        watch.until('the MTU of before', lambda table, port: '10.78.0.2' not in table and port[1] == 1024)


def devinfo_table():
    """The table of a program that starts now, {index: address}."""
    need('ibv_devinfo')
    text = b.call('ibv_devinfo', '-v')
    return {int(index): gid for index, gid in re.findall(r'GID\[\s*(\d+)\]:\s*(\S+?),?(?:\s|$)', text)}


def tentative():
    return 'tentative' in b.run('ip', '-6', 'addr', 'show', 'dev', b.link)


def refused(index):
    """What a program says that connects from this index of the table, and may not."""
    argv = ['ibv_rc_pingpong', '-p', str(next_port()), '-g', index]
    server = b.start(*argv, env={'ROCI_WHY': '1'})
    wait_until('the server to listen', lambda: b.listens(int(argv[2])) or not server.running())
    client = b.start(*argv, b.address)
    try:
        check(server.wait(20) not in (0, None), server.report())
    finally:
        client.end()
    return server.text()


def duplicate_detection():
    """While IPv6 looks for duplicates the new address has its index already, in programs that run and in those that start."""
    b.run('sh', '-c', f'echo 1 >/proc/sys/net/ipv6/conf/{b.link}/accept_dad')
    b.run('sh', '-c', f'echo 8 >/proc/sys/net/ipv6/conf/{b.link}/dad_transmits')
    with Watch(b) as watch:
        before, _ = watch.last()
        b.run('ip', '-6', 'addr', 'add', 'fd78::1/64', 'dev', b.link)
        during = devinfo_table()
        new = next(index for index, gid in during.items() if gid == 'fd78::1')
        check('is tentative: the kernel' in refused(str(new)), 'nobody says why')
        check(tentative(), 'too late: the address is ready')
        table, _ = watch.until('the tentative GID', lambda table, port: 'fd78::1' in table)
        wait_until('the address', lambda: not tentative())
        watch.until('the event', lambda *_: watch.events('GID table change') > 1)
        check(watch.last()[0] == table, watch.process.report())
        check(devinfo_table() == during, f'{during}\n{devinfo_table()}')
        check({address: table[address] for address in before} == before, watch.process.report())
        check('fd78::1' in during.values(), str(during))
    b.run('ip', '-6', 'addr', 'del', 'fd78::1/64', 'dev', b.link)


def own_files():
    """Programs that number the addresses differently each find their own numbers in sysfs."""
    old = Process(b, [ROCI, 'run', '--', program('addresses'), 'ask'], stdin=subprocess.PIPE)

    def tables(n):
        wait_until(f'table {n}', lambda: old.text().count('port active') >= n or not old.running())
        check(old.running(), old.report())
        return dict(reversed(line.split()[1:]) for line in old.text().split('port active')[n - 1].splitlines() if line.startswith('gid'))

    def again():
        n = old.text().count('port active') + 1
        old.popen.stdin.write(b'\n')
        old.popen.stdin.flush()
        return tables(n)

    try:
        tables(1)
        b.run('ip', 'addr', 'add', 'fd78::1/64', 'dev', b.link, 'nodad')
        wait_until('the GID', lambda: 'fd78::1' in again())
        table = again()
        fresh = devinfo_table()
        check(fresh[int(table['fd78::1'])] != 'fd78::1', f'both count alike, which shows nothing: {fresh}')
        check(again() == table, old.report())
        b.run('ip', 'addr', 'add', '10.78.0.3/24', 'dev', b.link)
        wait_until('the next GID', lambda: '::ffff:10.78.0.3' in again())
    finally:
        old.end()
        for address in 'fd78::1/128', '10.78.0.3/32':
            b.run('ip', 'addr', 'flush', 'to', address, 'dev', b.link)


def no_netlink():
    """In a sandbox without netlink sockets the device has the same addresses, and data flows."""
    need('ibv_rc_pingpong')
    expected = devinfo_table()
    text = b.call(program('no_netlink'), 'ibv_devinfo', '-v')
    check(all(gid in text for gid in expected.values()), text)
    port = str(next_port())
    server = b.start(program('no_netlink'), 'ibv_rc_pingpong', '-g', '0', '-p', port)
    wait_until('the server to listen', lambda: b.listens(int(port)) or not server.running())
    run_pair(server, a.start(program('no_netlink'), 'ibv_rc_pingpong', '-g', '0', '-p', port, b.address))


def cm_wildcard(family):
    """A server that listens on the wildcard address is reached at an address that came later."""
    need('rping')
    port = ['-p', str(next_port())]
    ours, theirs = {4: ('10.79.0.1/24', '10.79.0.2/24'), 6: ('fd79::1/64', 'fd79::2/64')}[family]
    server = serve(b, 'rping', '-s', '-a', '0.0.0.0' if family == 4 else '::', '-C', '10', *port)
    try:
        for host, address in (a, ours), (b, theirs):
            host.run('ip', 'addr', 'add', address, 'dev', host.link, *(['nodad'] if family == 6 else []))
        wait_until('the socket', lambda: bound(b, theirs[:-3]))
        client = a.start('rping', '-c', '-a', theirs[:-3], '-C', '10', *port)
        run_pair(server, client)
    finally:
        server.end()
        for host, address in (a, ours), (b, theirs):
            host.run('ip', 'addr', 'del', address, 'dev', host.link)


def cm_returns():
    """A server that listens on one address is reached there after it was lost and came back."""
    need('rping')
    port = ['-p', str(next_port())]
    a.run('ip', 'addr', 'add', '10.81.0.1/24', 'dev', a.link)
    b.run('ip', 'addr', 'add', '10.81.0.2/24', 'dev', b.link)
    server = serve(b, 'rping', '-s', '-a', '10.81.0.2', '-C', '10', *port)
    try:
        b.run('ip', 'addr', 'del', '10.81.0.2/24', 'dev', b.link)
        wait_until('the socket to close', lambda: not bound(b, '10.81.0.2'))
        b.run('ip', 'addr', 'add', '10.81.0.2/24', 'dev', b.link)
        wait_until('the socket', lambda: bound(b, '10.81.0.2'))
        run_pair(server, a.start('rping', '-c', '-a', '10.81.0.2', '-C', '10', *port))
    finally:
        server.end()
        a.run('ip', 'addr', 'del', '10.81.0.1/24', 'dev', a.link)
        b.run('ip', 'addr', 'del', '10.81.0.2/24', 'dev', b.link)


def bound(host, address):
    """Whether a socket of RoCE's port has the address."""
    text = host.run('ss', '-uanH', 'sport', '=', ':4791')
    return f' {address}:4791 ' in text or f' [{address}]:4791 ' in text


def count(process):
    """The last count of messages that it printed."""
    check(process.running(), process.report())
    numbers = [line for line in process.text().splitlines() if line.isdigit()]
    return int(numbers[-1]) if numbers else 0


def wait_more(process):
    """Waits until it has exchanged more messages."""
    before = count(process)
    wait_until('messages', lambda: count(process) > before + 1000)


def connection(wait, change):
    """An RC connection with a server at an address that may come after its start; then change(process) of client and server."""
    a.run('ip', 'addr', 'add', '10.80.0.1/24', 'dev', a.link)
    port = str(next_port())
    if not wait:
        b.run('ip', 'addr', 'add', '10.80.0.2/24', 'dev', b.link)
    processes = [b.start(program('addresses'), 'serve', '-a', '10.80.0.2', '-p', port, *(['-w'] if wait else []))]
    try:
        if wait:
            wait_until('the server', lambda: 'waiting' in processes[0].text() or not processes[0].running())
            b.run('ip', 'addr', 'add', '10.80.0.2/24', 'dev', b.link)
        wait_until('the server to listen', lambda: b.listens(int(port)) or not processes[0].running())
        processes.append(a.start(program('addresses'), 'send', '-a', '10.80.0.1', '-p', port, b.address))
        for process in processes:
            wait_more(process)
        change(processes)
    except Exception as failure:
        raise type(failure)('\n'.join([str(failure), *(p.report() for p in processes)])) from None
    finally:
        for process in processes:
            process.end()
        a.run('ip', 'addr', 'del', '10.80.0.1/24', 'dev', a.link)
        b.run('ip', 'addr', 'del', '10.80.0.2/24', 'dev', b.link)


def comes_back(host, address):
    """The address is lost and comes back; the connection goes on."""
    def change(processes):
        host.run('ip', 'addr', 'del', f'{address}/24', 'dev', host.link)
        wait_until('the socket to close', lambda: not bound(host, address))
        wait_until('a line', lambda: any(f'has lost the address {address} ({host.link})' in p.text() for p in processes))
        host.run('ip', 'addr', 'add', f'{address}/24', 'dev', host.link)
        wait_until('the socket', lambda: bound(host, address))
        for process in processes:
            wait_more(process)
    return change


isolate()
a, b = veth_pair()
sys.exit(tap([
    ('a program that waits for events sees GID_CHANGE and the new table', watch_gids),
    ('events that a program does not fetch', unread_events),
    ('a link that goes down and comes up', watch_link),
    ('the port goes down and comes up', watch_port),
    ('the MTU of the port follows', watch_mtu),
    ('duplicate address detection shifts no index', duplicate_detection),
    ('the files in sysfs are of the program that reads them', own_files),
    ('a sandbox without netlink', no_netlink),
    ('rdma_cm: a wildcard listener accepts at a later IPv4 address', lambda: cm_wildcard(4)),
    ('rdma_cm: a wildcard listener accepts at a later IPv6 address', lambda: cm_wildcard(6)),
    ('rdma_cm: a listener whose address was lost and came back', cm_returns),
    ('an RC connection at a later address', lambda: connection(True, lambda _: None)),
    ('an RC connection whose receiver loses its address for a moment', lambda: connection(False, comes_back(b, '10.80.0.2'))),
    ('an RC connection whose sender loses its address for a moment', lambda: connection(False, comes_back(a, '10.80.0.1'))),
]))
