# SPDX-License-Identifier: BSD-2-Clause
"""The command line: help, what it says to mistakes, completion, and that options and manual pages tell the same."""
import os
import re
import shutil
import subprocess
import sys

from harness import HERE, ROCI, check, need, tap

MAN = os.path.join(HERE, '..', '..', 'man')
COMPLETE = '''. <("$0" completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _roci; printf '%s\\n' "${COMPREPLY[@]}"'''


def roci(*argv, status=0):
    done = subprocess.run([ROCI, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60)
    check(done.returncode == status, f'roci {" ".join(argv)}: exit status {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stderr if status else done.stdout


def commands():
    part = roci('--help').split('commands:\n')[1].split('\n\n')[0]
    return [line.split()[0] for line in part.splitlines()]


def options(command):
    return set(re.findall(r'^ +(?:-\w, )?--([\w-]+)', roci(command, '--help'), re.MULTILINE)) - {'help'}


def says(text, *argv, status=2):
    got = roci(*argv, status=status)
    check(text in got, f'{text!r} is not in: {got}')


def mistakes():
    says('did you mean `roci run`', 'rnu')
    says('`roci --help` lists the commands', 'zzzzzz')
    says("unknown option '-x'; `roci --help`", '-x')
    says("did you mean '--capture'", 'run', '--captrue', 'x')
    says('--fault needs SPEC', 'run', '--fault')
    says('no program is given', 'run')
    says("unknown option '-x'", 'run', '-x')
    says("did you mean 'zsh'", 'completion', 'zhs')
    says("name what to send and the receiver's host", 'send', 'file')
    says('--qps 65 is out of range; use 1 to 64', 'send', '--qps', '65', 'file', 'host')
    says('--timeout 2ms is out of range; use 1 s to 86400 s', 'send', '--timeout', '2ms', 'file', 'host')
    says('--limit 5 is too small; use at least 1.00 KiB/s', 'send', '--limit', '5', 'file', 'host')
    says("--limit 'fast' is not a rate", 'send', '--limit', 'fast', 'file', 'host')
    says("--encrypt takes no argument; remove '=1'", 'send', '--encrypt=1', 'file', 'host')
    says("did you mean 'write'", 'send', '--mode', 'wirte', 'file', 'host')
    says('--chunk must be a power of two', 'send', '--chunk', '100K', 'file', 'host')
    says('--chunk 1K is out of range; use 64.0 KiB to 16.0 MiB', 'send', '--chunk', '1K', 'file', 'host')
    says('--cqs is larger than --qps', 'send', '--qps', '2', '--cqs', '3', 'file', 'host')
    says('--cqs is larger than --qps', 'recv', '--qps', '2', '--cqs', '3')
    says('name the folder with --dir DIR', 'recv', 'folder')
    says('one file at most', 'demo', 'a', 'b')
    says('program not found', 'run', '--', '/nonexistent/program', status=127)


def help_pages():
    check(roci('help', 'run') == roci('run', '--help'), '`roci help run` differs from `roci run --help`')
    for command in commands():
        text = roci(command, '--help')
        check(0 < text.find('\nexamples:') < text.find('\nusage:'), f'{command}: examples do not come first')


def manual_pages():
    need('scdoc')
    pages = sorted(name for name in os.listdir(MAN) if name.endswith('.scd'))
    for command in commands():
        check(f'roci-{command}.1.scd' in pages or command == 'completion', f'{command} has no manual page')
    for name in pages:
        with open(os.path.join(MAN, name)) as page:
            text = page.read()
        made = subprocess.run(['scdoc'], input=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        check(not made.returncode and not made.stderr, f'{name}: {made.stderr}')
        for section in ('EXAMPLES', 'EXIT STATUS'):
            check(f'# {section}\n' in text, f'{name} has no {section}')
        command = name.split('.')[0].partition('-')[2]
        if command:
            documented = set(re.findall(r'^\*(?:-\w\*, \*)?--([\w-]+)\*', text, re.MULTILINE)) - {'help'}
            check(documented == options(command), f'{name} and --help differ: {documented ^ options(command)}')


def complete(*words):
    done = subprocess.run(['bash', '-c', COMPLETE, ROCI, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(not done.returncode and not done.stderr, done.stderr)
    return done.stdout.split()


def bash():
    check(set(commands()) <= set(complete('roci', '')), 'not every command is completed')
    for command in commands():
        got = {word[2:] for word in complete('roci', command, '--')} - {'help'}
        check(got == options(command), f'{command}: completed {got}')
    check(complete('roci', 'run', '--capture', '/etc/passw').count('/etc/passwd') == 1, 'a file is not completed')
    check(complete('roci', 'completion', 'f') == ['fish'], 'a shell is not completed')


def other_shell(shell, name):
    text = roci('completion', shell)
    for command in commands():
        for option in options(command):
            check(re.search(rf'(--|-l ){option}\b', text), f'{shell}: {option} is missing')
    if shutil.which(name):
        done = subprocess.run([name, '-n', '/dev/stdin'], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(not done.returncode, done.stdout)
    else:
        return f'{name} is not installed: its syntax was not checked'


if __name__ == '__main__':
    sys.exit(tap([('mistakes are named, and what was meant', mistakes), ('help', help_pages),
                  ('manual pages', manual_pages), ('completion of bash', bash),
                  ('completion of zsh', lambda: other_shell('zsh', 'zsh')),
                  ('completion of fish', lambda: other_shell('fish', 'fish'))]))
