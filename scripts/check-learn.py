#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""check-learn.py [--update] [CHAPTER...]: runs the commands of docs/learn and compares what they print with what the text shows.

A block that begins with ```console has commands (lines with "$ ") and their output. ```console server has one command that
runs beside the next block; ```console unordered is printed by several threads, or is a
capture with packets that may come twice, so order and number of equal lines are free. Numbers
that differ from run to run (hexadecimal ones, times, rates) are not compared. Everything runs in a network namespace with
nothing but loopback, and in a folder with the programs of examples/. The Chinese text must show the same blocks as the
English one. --update writes what the commands print into both texts instead.

ROCI and ROCI_EXAMPLES name `roci` and the folder of the built examples, as Meson sets them.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, 'tests', 'clients'))

from harness import SLOW, Failure, Skip, check, isolate, need, tap, wait_until  # noqa: E402

BUILD = os.path.join(ROOT, 'build')
ROCI = os.environ.get('ROCI', os.path.join(BUILD, 'roci', 'roci'))
EXAMPLES = os.environ.get('ROCI_EXAMPLES', os.path.join(BUILD, 'examples'))
LEARN = os.path.join(ROOT, 'docs', 'learn')
BLOCK = re.compile(r'^```console *([a-z ]*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SECONDS = 120
DROPPED = re.compile(r'Running as user .*')  # tshark says so to root
NUMBERS = [(re.compile(r'0x[0-9a-f]+'), '0x#'), (re.compile(r'PSN \d+'), 'PSN #'), (re.compile(r'\b\d+\.\d+\b(?!\.)'), '#'), (re.compile(r'[ \t]+'), ' ')]


def path_of(language, chapter):
    return os.path.join(LEARN, language, chapter)


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def blocks(text):
    """[words, [[command, output lines], ...]] of each block."""
    found = []
    for words, body in BLOCK.findall(text):
        commands = []
        for line in body.splitlines():
            if line.startswith('$ '):
                commands.append([line[2:], []])
            else:
                commands[-1][1].append(line)
        found.append([words.split(), commands])
    return found


def lines_of(output):
    return [line.rstrip() for line in output.rstrip().splitlines() if not DROPPED.match(line)]


def normal(lines, words):
    same = []
    for line in lines:
        for pattern, instead in NUMBERS:
            line = pattern.sub(instead, line)
        if line.strip():
            same.append(line.strip())
    return sorted(set(same)) if 'unordered' in words else same


def listens():
    """Whether any TCP socket listens here. perftest does, and says so when it ends."""
    text = read('/proc/net/tcp') + read('/proc/net/tcp6')
    return any(line.split()[3] == '0A' for line in text.splitlines() if line)


class Scene:
    """A folder with the programs; and a server, while there is one."""

    def __init__(self, folder):
        self.folder, self.server = folder, None
        for name in os.listdir(EXAMPLES):
            if re.match(r'\d\d-[a-z-]*$', name):
                os.symlink(os.path.join(EXAMPLES, name), os.path.join(folder, name))
        self.env = dict(os.environ, PATH=f'{os.path.dirname(ROCI)}:{os.environ["PATH"]}', LC_ALL='C.UTF-8', ROCI_STATS='',
                        ROCI_RUNDIR=os.path.join(folder, 'run'))
        os.mkdir(self.env['ROCI_RUNDIR'], 0o700)  # other processes of this user have nothing to do with these

    def start(self, command, out):
        return subprocess.Popen(['sh', '-c', command], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT)

    def serve(self, command):
        """Starts a command and returns when it has printed that it waits, or has a TCP socket that listens."""
        self.out = tempfile.TemporaryFile()
        self.server = self.start(f'exec {command}', self.out)

        def waits():
            text = os.pread(self.out.fileno(), 1 << 16, 0).lower()
            return b'waiting' in text or listens() or self.server.poll() is not None
        wait_until(f'{command} to wait', waits)

    def call(self, command):
        with tempfile.TemporaryFile() as out:
            process = self.start(command, out)
            try:
                process.wait(SECONDS * SLOW)
            except subprocess.TimeoutExpired:
                raise Failure(f'does not end: {command}') from None
            finally:
                process.kill()
            return lines_of(os.pread(out.fileno(), 1 << 20, 0).decode(errors='replace'))

    def end_server(self):
        """What the server printed."""
        try:
            self.server.wait(SECONDS * SLOW)
        except subprocess.TimeoutExpired:
            raise Failure('the server does not end') from None
        finally:
            self.server.kill()
            self.server = None
        return lines_of(os.pread(self.out.fileno(), 1 << 20, 0).decode(errors='replace'))


def run_blocks(chapter):
    """The blocks of a chapter with what the commands print now."""
    shown = blocks(read(path_of('en', chapter)))
    for program in {command.split()[0] for _, commands in shown for command, _ in commands} & {'tshark'}:
        need(program)
    printed = [[words, [[command, None] for command, _ in commands]] for words, commands in shown]
    with tempfile.TemporaryDirectory() as folder:
        scene, server_block = Scene(folder), None
        for words, commands in printed:
            for entry in commands:
                if 'server' in words:
                    scene.serve(entry[0])
                    server_block = entry
                else:
                    entry[1] = scene.call(entry[0])
            if server_block and 'server' not in words:
                server_block[1] = scene.end_server()
                server_block = None
    return shown, printed


def english(chapter):
    for (words, shown), (_, printed) in zip(*run_blocks(chapter)):
        for (command, expected), (_, got) in zip(shown, printed):
            check(normal(got, words) == normal(expected, words),
                  f'$ {command}\nthe text shows:\n' + '\n'.join(expected) + '\nit prints:\n' + '\n'.join(got))


def chinese(chapter):
    here, there = (blocks(read(path_of(language, chapter))) for language in ('en', 'zh'))
    check(here == there, 'the blocks are not those of the English text')


def update(chapter):
    """What is right stays as it is."""
    shown, printed = run_blocks(chapter)
    for (words, before), (_, now) in zip(shown, printed):
        for old, new in zip(before, now):
            new[1] = old[1] if normal(old[1], words) == normal(new[1], words) else new[1]
    texts = ['```console' + ''.join(f' {word}' for word in words) + '\n' +
             ''.join(f'$ {command}\n' + ''.join(f'{line}\n' for line in got) for command, got in commands) + '```'
             for words, commands in printed]
    for language in 'en', 'zh':
        path = path_of(language, chapter)
        if os.path.exists(path):
            text, each = read(path), iter(texts)
            text = BLOCK.sub(lambda _, each=each: next(each), text)
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)


def main():
    chapters = sorted(os.listdir(os.path.join(LEARN, 'en')))
    if '--update' in sys.argv:
        sys.argv.remove('--update')
        for chapter in chapters:
            if not sys.argv[1:] or any(word in chapter for word in sys.argv[1:]):
                update(chapter)
        return 0
    cases = [(f'en/{c}', lambda c=c: english(c)) for c in chapters]
    cases += [(f'zh/{c}', lambda c=c: chinese(c)) for c in chapters]
    return tap(cases)


if __name__ == '__main__':
    if not os.path.exists(ROCI):
        print('1..0 # SKIP nothing is built')
        sys.exit(0)
    isolate()
    sys.exit(main())
