"""`roci send` and `roci recv` between Soft-RoCE and Soft-RoCE with the system's libraries on both sides, and between
Soft-RoCE and roci0: folders of all kinds of entries, byte for byte."""
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile

import world
from harness import ROCI, check, run_pair, tap, wait_until
from mover import MIB, Receiver, check_same, environment, events, make_large, make_odd, scratch, write

MODES = 'write', 'read', 'send'


class Bench:
    """What to send, and a place for it."""

    def __init__(self):
        self.scratch = scratch()
        self.there = os.path.join(self.scratch.name, 'there')

    def source(self, name, make, *args):
        """Made when the first case wants it."""
        folder = os.path.join(self.scratch.name, name)
        if not os.path.isdir(folder):
            os.mkdir(folder)
            make(os.path.join(folder, 'it'), *args)
        return folder

    def move(self, receiver, sender, folder, mode, *options):
        os.mkdir(self.there)
        before = sender.sent_bytes()
        try:
            with Receiver(receiver, self.there, '--once') as recv:
                process = recv.send(sender, os.path.join(folder, 'it'), '--mode', mode, *options)
                status = process.wait(60)
                check(status == 0 and recv.process.wait(20) == 0, f'{process.report()}\n{recv.process.report()}')
            check_same(folder, self.there)
        finally:
            subprocess.run(['chmod', '-R', 'u+w', self.there])
            shutil.rmtree(self.there)
        for host, end in ((receiver, recv.process), (sender, process)):
            connected = events(end, 'connected')[0]
            expected = {'device': host.device, 'embedded': not host.plain, 'mode': mode, 'encrypted': '--encrypt' in options}
            check(expected.items() <= connected.items(), f'{connected}\nis not\n{expected}')
        moved = events(process, 'ended')[-1]['bytes_moved']
        check(sender.sent_bytes() - before > moved, f'{moved} bytes have not left by {sender.link}')
        return f'{receiver.device} from {sender.device}: {moved} bytes'

    def odd(self, receiver, sender, *options):
        return self.move(receiver, sender, self.source('odd', make_odd), *options)

    def large(self, receiver, sender, *options):
        return self.move(receiver, sender, self.source('large', make_large, 64 * MIB), *options)

    def stream(self, receiver, sender):
        """Standard input to standard output, while the receiver picks its device by itself."""
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


def demo(host):
    """It shows packets, which only the embedded device can write down, so it takes that one on every machine; here beside a
    kernel that has RoCE's port."""
    with scratch() as out:
        text = host.call(ROCI, 'demo', '--out', out, plain=True, env=environment())
    check('roci0' in text, text)


def cases(bench, receiver, sender, part=False):
    way = f'{sender.kind} to {receiver.kind}'
    for mode in MODES:
        for options in [['--qps', '4']] if part else [['--qps', '1'], ['--qps', '4', '--encrypt']]:
            options = [mode, *options]
            yield f'{way}: all kinds, {" ".join(options)}', lambda o=options: bench.odd(receiver, sender, *o)
        if not part:
            yield f'{way}: 64 MiB, {mode}', lambda m=mode: bench.large(receiver, sender, m)
    yield f'{way}: a stream', lambda: bench.stream(receiver, sender)


def all_cases(rxe, roci, part=False):
    bench = Bench()
    for pair in (rxe, roci), (roci, rxe), world.kernel_pair('rxe'):
        yield from cases(bench, *pair, part)
    yield 'roci demo beside rxe', lambda: demo(rxe)


if __name__ == '__main__':
    sys.exit(tap(list(all_cases(*world.rxe_and_roci()))))
