# SPDX-License-Identifier: BSD-2-Clause
"""The command line: its help, its messages for mistakes, completion, and whether the manual pages list the same options."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import HERE, ROCI, SLOW, check, need, tap

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


def option_rows(command):
    """The options of a command's table, in their order in --help: (letter, name, argument, default)."""
    rows = []
    for line in roci(command, '--help').split('\nusage:')[1].splitlines():
        option = re.match(r' +(?:-(\w), )?--([\w-]+)(?: ([A-Z]+))?(?= |$)', line)
        if option:
            rows.append([*option.groups(), None])
        default = re.search(r' \[([^]]+)\]$', line)
        if default and line.startswith(' ') and rows:
            rows[-1][3] = default[1]
    return rows


def options(command):
    return {name for _, name, _, _ in option_rows(command)}


def says(text, *argv, status=2):
    got = roci(*argv, status=status)
    check(text in got, f'{text!r} is not in: {got}')
    return got


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
    says('--timeout 2ms is out of range; use 1s to 24h', 'send', '--timeout', '2ms', 'file', 'host')
    says('--limit 5 is too small; use at least 1K', 'send', '--limit', '5', 'file', 'host')
    says("--limit 'fast' is not a rate", 'send', '--limit', 'fast', 'file', 'host')
    says("--no-encrypt takes no argument; remove '=1'", 'send', '--no-encrypt=1', 'file', 'host')
    says("did you mean 'write'", 'send', '--mode', 'wirte', 'file', 'host')
    says('--chunk must be a power of two', 'send', '--chunk', '100K', 'file', 'host')
    says('--chunk 1K is out of range; use 64K to 16M', 'send', '--chunk', '1K', 'file', 'host')
    says('--cqs is larger than --qps', 'send', '--qps', '2', '--cqs', '3', 'file', 'host')
    says('--cqs is larger than --qps', 'recv', '--qps', '2', '--cqs', '3')
    says('name the folder with --dir DIR', 'recv', 'folder')
    says("--name '..' cannot be a file's name: it has a component", 'send', '--name', '..', '-', 'host')
    says("--name 'a/b' cannot be a file's name: it is a path", 'send', '--name', 'a/b', '-', 'host')
    says('--retry-for goes with --once', 'recv', '--retry-for', '1m')
    says('--retry-for and - exclude each other', 'recv', '--once', '--retry-for', '1m', '-')
    says('--interval goes with --watch', 'stats', '--interval', '2s', '1')
    says('one file at most', 'demo', 'a', 'b')
    for argv in (['run'], ['run', '--'], ['dump'], ['dump', '--run'], ['ladder'], ['ladder', '--'], ['demo']):
        says("an argument is empty: '' names nothing; usage", *argv, '')
    for argv in (['run'], ['dump', '--run'], ['ladder']):
        got = says('program not found', *argv, '--', '/nonexistent/program', status=127)
        check(got.count('\n') == 1, got)
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, 'script')
            with open(script, 'w') as file:
                file.write('#!/nonexistent/interpreter\n')
            os.chmod(script, 0o755)
            says('script: the interpreter or loader that it names is not there', *argv, '--', script, status=126)


def full_output():
    """What cannot be written is told, and the command fails; that nobody reads on is no failure."""
    for argv in (['--version'], ['--help'], ['ping', '--help'], ['explain', '12'], ['explain', '--list', '--json'], ['stats'],
                 ['ping', '--loopback', '--device', 'embedded', '-c', '1', '--json'], ['completion', 'bash']):
        with open('/dev/full', 'w') as full:
            done = subprocess.run([ROCI, *argv], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60 * SLOW)
        check(done.returncode == 1 and 'not all of the output could be written' in done.stderr, f'{argv}: exit status {done.returncode}\n{done.stderr}')
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([ROCI, *argv], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60 * SLOW, restore_signals=False)
        os.close(write)  # SIGPIPE is ignored, so that the command itself finds out
        check(done.returncode == 0 and 'output' not in done.stderr, f'{argv}: exit status {done.returncode}\n{done.stderr}')


def help_pages():
    check(roci('help', 'run') == roci('run', '--help'), '`roci help run` differs from `roci run --help`')
    for word in ('help', '--help', '-h'):
        check(roci('help', word) == roci('help'), f'`roci help {word}` is no help')
    for command in commands():
        text = roci(command, '--help')
        check(0 < text.find('\nexamples:') < text.find('\nusage:'), f'{command}: examples do not come first')


def check_manual(name, text):
    made = subprocess.run(['scdoc'], input=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    check(not made.returncode and not made.stderr, f'{name}: {made.stderr}')
    sections = re.findall(r'^# (.*)$', text, re.MULTILINE)
    check(sections[:4] == ['NAME', 'SYNOPSIS', 'EXAMPLES', 'DESCRIPTION'], f'{name} begins with {sections[:4]}')
    for section in ('OPTIONS', 'EXIT STATUS', 'ENVIRONMENT', 'SEE ALSO'):
        check(section in sections, f'{name} has no {section}')


def check_manual_options(command, text):
    """The manual page has the same options as --help, with the same arguments and defaults, in the same order."""
    part = text.split('\n# OPTIONS\n')[1].split('\n# ')[0]
    heads = list(re.finditer(r'^\*(?:-(\w)\*, \*)?--([\w-]+)\*(?: _([A-Z]+)_)?$', part, re.MULTILINE))
    documented = []
    for head, following in zip(heads, [*heads[1:], None]):
        about = part[head.end():following and following.start()]
        default = re.search(r'\(default: ([^)]+)\)', about)
        documented.append([*head.groups(), default and default[1].replace('\n\t', ' ')])
    check(documented == option_rows(command), f'{command}: the manual page has\n{documented}\n--help has\n{option_rows(command)}')


def manual_pages():
    need('scdoc')
    pages = {}
    for name in os.listdir(MAN):
        if name.endswith('.scd'):
            with open(os.path.join(MAN, name)) as page:
                pages[name.split('.')[0]] = page.read()
    for name, text in pages.items():
        check_manual(name, text)
    for command in commands():
        check(f'*{command}*' in pages['roci'], f'roci(1) does not name the command {command}')
        if command != 'completion':  # roci(1) describes it
            check_manual_options(command, pages[f'roci-{command}'])


def complete(*words):
    done = subprocess.run(['bash', '-c', COMPLETE, ROCI, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(not done.returncode and not done.stderr, done.stderr)
    return done.stdout.split()


def bash():
    check(set(commands()) <= set(complete('roci', '')), 'not every command is completed')
    for command in commands():
        got = {word[2:] for word in complete('roci', command, '--')}
        check(got == options(command), f'{command}: completed {got}')
    check(complete('roci', 'run', '--capture', '/etc/passw').count('/etc/passwd') == 1, 'a file is not completed')
    check(complete('roci', 'completion', 'f') == ['fish'], 'a shell is not completed')
    check(complete('roci', 'run', '--path', '') == ['local', 'wire'], 'a path is not completed')


def other_shell(shell, command_options):
    """`command_options` is a pattern that finds the options of a command in the shell's script."""
    script = roci('completion', shell)
    for command in commands():
        part = '\n'.join(re.findall(command_options.format(command), script, re.MULTILINE | re.DOTALL))
        for option in options(command):
            check(re.search(rf'(--|-l ){option}\b', part), f'{shell}: --{option} of {command} is missing')
    if not shutil.which(shell):
        return f'{shell} is not installed: its syntax was not checked'
    done = subprocess.run([shell, '-n', '/dev/stdin'], input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(not done.returncode, done.stdout)


def zsh():
    return other_shell('zsh', r'^\t\({}\)$.*?^\t\t;;$')


def fish():
    return other_shell('fish', r"__fish_seen_subcommand_from {}'[^\n]*")


def stats_of_another_user():
    """The message names the user, and says who may look."""
    if os.geteuid():
        says('process 1 belongs to root (user 0): only that user', 'stats', '1', status=1)
        return
    other = subprocess.Popen(['sleep', '60'], user=65534)
    try:
        says('belongs to', 'stats', str(other.pid), status=1)
    finally:
        other.kill()
        other.wait()


if __name__ == '__main__':
    sys.exit(tap([('messages for mistakes', mistakes), ('output that cannot be written', full_output), ('help', help_pages),
                  ('manual pages', manual_pages), ('completion of bash', bash),
                  ('completion of zsh', zsh), ('completion of fish', fish),
                  ('the counters of another user', stats_of_another_user)]))
