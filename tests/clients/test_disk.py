# SPDX-License-Identifier: BSD-2-Clause
"""The directory that a user's processes share (host registry, sysfs tree), on disks that are full, small, missing or
read-only, or under names that somebody else has taken. Programs work on the next directory, with a line that says why; where no
directory is left, they end with an error, never with a signal."""
import os
import shlex
import sys
import tempfile

from harness import DEVICE, ROCI, Host, Process, check, isolate, next_port, tap

FULL = 'mount -t tmpfs -o size=1m none {0}; head -c 2m /dev/zero > {0}/ballast 2>/dev/null || :;'
ROOM = 'mount -t tmpfs -o size=64m none {0};'
SERVER = '"$ROCI" run -- stdbuf -oL $PINGPONG >/tmp/server 2>&1 & server=$!;'
SERVER += 'for i in $(seq 600); do grep -q "local address" /tmp/server && break; kill -0 $server || break; sleep 0.05; done;'
CLIENT = '"$ROCI" run -- $PINGPONG 127.0.0.1; status=$?; [ $status = 0 ] || kill $server;'
CLIENT += 'wait $server; one=$?; cat /tmp/server; [ $status = 0 ] || exit $status; exit $one'
PAIR = SERVER + CLIENT


def play(script, status=0, env=None):
    """Runs a shell script in a mount namespace, with /tmp and /mnt of its own. Returns what it printed. The build may lie below
    /tmp, so it is reached by another name."""
    pingpong = f'ibv_rc_pingpong -d {DEVICE} -g 0 -n 100 -p {next_port()}'
    build = os.path.dirname(os.path.dirname(ROCI))
    begin = f'mount --bind {shlex.quote(build)} /media; ROCI=/media/roci/roci;' + ROOM.format('/mnt')
    script = begin + ('' if '/tmp;' in script else ROOM.format('/tmp')) + script
    process = Process(host, ['unshare', '-m', 'sh', '-c', script],
                      dict({'PINGPONG': pingpong, 'XDG_RUNTIME_DIR': '/mnt', 'ROCI_RUNDIR': ''}, **(env or {})))
    got = process.wait(60)
    text = process.text()
    check(got is not None and (got == 0 if status == 0 else 0 < got < 126), f'exit status {got}:\n{process.report()}')
    return text


def says(text, *wanted):
    for part in wanted:
        check(part in text, f'"{part}" is missing in:\n{text}')


def falls_back(script, *wanted):
    """Whatever `script` makes of /dev/shm, a pair of programs runs on /tmp, and says why."""
    text = play(script + PAIR)
    says(text, *wanted)
    if not wanted:
        check('host registry' not in text, text)


SHM = '/dev/shm/roci-0 cannot hold the host registry: '
TMP = '/tmp/roci-0 cannot hold the host registry: '
XDG = '/mnt/roci-0 cannot hold the host registry: '
NO_ROOM = 'No space left on device'
NOT_MINE = 'it is not a directory of yours alone, of mode 0700'


def missing():
    keep = 'null zero random urandom'
    falls_back(f'cd /mnt; for d in {keep}; do touch $d; mount --bind /dev/$d $d; done; cd /; mount --rbind /mnt /dev;')


def both_full():
    says(play(FULL.format('/dev/shm') + FULL.format('/tmp') + PAIR.replace('/tmp/', '/mnt/')),
         SHM + NO_ROOM, TMP + NO_ROOM, 'it is in /mnt/roci-0')


def all_full():
    script = ''.join(FULL.format(d) for d in ('/dev/shm', '/tmp', '/mnt')) + '"$ROCI" run -- $PINGPONG'
    says(play(script, status=1), SHM + NO_ROOM, TMP + NO_ROOM, XDG + NO_ROOM, 'cannot write the sysfs files of roci0')


def fills_up():
    """The disk becomes full while programs run: they go on, and more of them start."""
    text = play('mount -t tmpfs -o size=8m none /dev/shm;' + SERVER + 'head -c 16m /dev/zero > /dev/shm/ballast 2>/dev/null;' + CLIENT)
    check('host registry' not in text, text)


def has_room_again():
    """Programs that start later use the registry of those that run."""
    play(FULL.format('/dev/shm') + SERVER + 'rm /dev/shm/ballast; umount /dev/shm;' + ROOM.format('/dev/shm') +
         '"$ROCI" run -- $PINGPONG 127.0.0.1 && wait $server && ls /tmp/roci-0/host-* && ! ls /dev/shm/roci-0/host-*')


def one_inode():
    """A disk that has an inode for the registry, and no other."""
    says(play('mkdir /mnt/r; mount -t tmpfs -o nr_inodes=2 none /mnt/r; chmod 700 /mnt/r;' + PAIR, env={'ROCI_RUNDIR': '/mnt/r'}),
         'cannot write the sysfs files of roci0')


def squatted(where, what):
    return f'mkdir {where}/roci-0; mount --bind {what} {where}/roci-0 || exit;'


def all_squatted():
    script = ROOM.format('/dev/shm') + ROOM.format('/tmp') + ''.join(squatted(d, STRANGERS) for d in ('/dev/shm', '/tmp', '/mnt'))
    says(play(script + '"$ROCI" run -- $PINGPONG', status=1), SHM + NOT_MINE, TMP + NOT_MINE, XDG + NOT_MINE)


def serve_cannot():
    """`roci serve` without a device ends, and says each reason once."""
    text = play('for d in /dev/shm /tmp /mnt; do mount -t tmpfs -o ro none $d; done; "$ROCI" serve --device embedded; test $? = 2 || exit 0; exit 2', status=2)
    says(text, SHM + 'Read-only file system', 'serve: ')
    check(text.count(SHM) == 1 and text.count('cannot open roci0') == 1 and 'listening' not in text and 'does not listen' not in text, text)


if __name__ == '__main__':
    if 'STRANGERS' not in os.environ:
        # A directory of another user: in the user namespace its owner is nobody. It is made before, as nobody else is there.
        if os.geteuid():
            os.environ['STRANGERS'] = '/usr'
        else:
            os.environ['STRANGERS'] = tempfile.mkdtemp(prefix='roci-test-disk-', dir='/var/tmp')
            os.chown(os.environ['STRANGERS'], 65534, 65534)
    STRANGERS = os.environ['STRANGERS']
    isolate()
    host = Host('a')
    status = tap([
        ('/dev/shm is full', lambda: falls_back(FULL.format('/dev/shm'), SHM + NO_ROOM + '; it is in /tmp/roci-0')),
        ('/dev/shm of 1 MiB', lambda: falls_back('mount -t tmpfs -o size=1m none /dev/shm;', SHM + NO_ROOM)),
        ('/dev/shm of 64 MiB', lambda: falls_back(ROOM.format('/dev/shm'))),
        ('/dev/shm without an inode', lambda: falls_back('mount -t tmpfs -o nr_inodes=1 none /dev/shm;', SHM + NO_ROOM)),
        ('/dev/shm is missing', missing),
        ('/dev/shm is read-only', lambda: falls_back('mount -t tmpfs -o ro none /dev/shm;', SHM + 'Read-only file system')),
        ('/dev/shm and /tmp noexec', lambda: falls_back('mount -t tmpfs -o noexec none /dev/shm; mount -t tmpfs -o noexec none /tmp;')),
        ('a directory of another user', lambda: falls_back(ROOM.format('/dev/shm') + squatted('/dev/shm', STRANGERS), SHM + NOT_MINE)),
        ('a file under the name', lambda: falls_back(ROOM.format('/dev/shm') + 'touch /dev/shm/roci-0;', SHM + 'Not a directory')),
        ('/dev/shm and /tmp are full', both_full),
        ('all are full', all_full),
        ('all are taken by another user', all_squatted),
        ('roci serve has no device', serve_cannot),
        ('the disk fills up while programs run', fills_up),
        ('the disk has room again', has_room_again),
        ('room for the registry only', one_inode),
    ])
    if STRANGERS != '/usr':
        os.rmdir(STRANGERS)
    sys.exit(status)
