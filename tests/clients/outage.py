# SPDX-License-Identifier: BSD-2-Clause
"""outage.py LINK LINK N: forwards frames between two interfaces of its namespace. After N frames of RoCE it forwards nothing, until
SIGUSR1; then everything again. At SIGTERM it prints how many frames of RoCE came."""
import signal
import sys

import relay


def main():
    limit = int(sys.argv[3])
    state = {'count': 0, 'over': False}

    def over(*_):
        state['over'] = True

    def up_to_the_limit(frame):
        if not relay.is_roce(frame):
            return frame
        if state['count'] >= limit and not state['over']:
            if state['count'] == limit:
                print('outage', flush=True)
                state['count'] += 1
            return None
        state['count'] += 1
        return frame
    signal.signal(signal.SIGUSR1, over)
    relay.print_at_end(lambda: f"{state['count']} frames")
    relay.forward(sys.argv[1:3], up_to_the_limit)


if __name__ == '__main__':
    main()
