"""`roci send` and `roci recv` between Soft-RoCE and Soft-RoCE with the system's libraries on both sides, and between
Soft-RoCE and roci0: folders of all kinds of entries, byte for byte."""
import os
import shutil
import subprocess
import sys

import world
from harness import ROCI, check, tap
from mover import MIB, Receiver, check_same, events, make_large, make_odd, scratch

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

    def move(self, receiver, sender, folder, *options):
        os.mkdir(self.there)
        try:
            with Receiver(receiver, self.there, '--once') as recv:
                process = recv.send(sender, os.path.join(folder, 'it'), *options)
                status = process.wait(60)
                check(status == 0 and recv.process.wait(20) == 0, f'{process.report()}\n{recv.process.report()}')
                check_same(folder, self.there)
                return f'{receiver.device} from {sender.device}: {events(process, "ended")[-1]["bytes_moved"]} bytes'
        finally:
            subprocess.run(['chmod', '-R', 'u+w', self.there])
            shutil.rmtree(self.there)

    def odd(self, receiver, sender, *options):
        return self.move(receiver, sender, self.source('odd', make_odd), *options)

    def large(self, receiver, sender, *options):
        return self.move(receiver, sender, self.source('large', make_large, 64 * MIB), *options)

    def stream(self, receiver, sender):
        """Standard input to standard output, while the receiver picks its device by itself."""
        data = os.urandom(3000000)
        ticket = os.path.join(self.scratch.name, 'ticket')
        device = [] if receiver.plain else ['--device', receiver.device]
        argv = [ROCI, 'recv', '--bind', receiver.address, '--port', '0', '--ticket-file', ticket, *device, '-']
        out = os.path.join(self.scratch.name, 'out')
        with open(out, 'wb') as f:
            recv = subprocess.Popen(receiver.prefix + argv, stdout=f, stderr=subprocess.PIPE)
        try:
            world.wait_until('the ticket', lambda: os.path.exists(ticket) or recv.poll() is not None)
            send = subprocess.run([*sender.prefix, ROCI, 'send', '--device', sender.device, '-', f'@{ticket}'], input=data,
                                  stderr=subprocess.PIPE, timeout=60)
            text = recv.communicate(timeout=60)[1].decode()
        finally:
            recv.kill()
            recv.wait()
        text = f'send: exit status {send.returncode}\n{send.stderr.decode()}\nrecv: exit status {recv.returncode}\n{text}'
        check(send.returncode == 0 and recv.returncode == 0, text)
        with open(out, 'rb') as f:
            out = f.read()
        check(out == data, 'the data differ')
        return text


def cases(bench, receiver, sender, part=False):
    way = f'{sender.kind} to {receiver.kind}'
    for mode in MODES:
        for options in [['--qps', '4']] if part else [['--qps', '1'], ['--qps', '4', '--encrypt']]:
            options = ['--mode', mode, *options]
            yield f'{way}: all kinds, {" ".join(options)}', lambda o=options: bench.odd(receiver, sender, *o)
        if not part:
            yield f'{way}: 64 MiB, {mode}', lambda m=mode: bench.large(receiver, sender, '--mode', m)
    yield f'{way}: a stream', lambda: bench.stream(receiver, sender)


if __name__ == '__main__':
    bench = Bench()
    rxe, roci = world.rxe_and_roci()
    pairs = (rxe, roci), (roci, rxe), world.kernel_pair('rxe')
    sys.exit(tap([case for pair in pairs for case in cases(bench, *pair)]))
