# SPDX-License-Identifier: BSD-2-Clause
"""embed.py OUTPUT PAGE.HTML PAGE.CSS SCRIPT.JS...: makes one page of its parts, as C source.

The scripts become one, with a scope of its own. The page's policy names the script's hash, so that no other script runs in it. The C
source has the page in two strings: before the data, and behind them.
"""
import base64
import hashlib
import sys


def literal(name, text):
    """The text as an array of bytes: compilers need not take strings of more than 4095 characters."""
    data = text.encode()
    rows = [','.join(str(byte) for byte in data[at:at + 40]) for at in range(0, len(data), 40)]
    return f'const unsigned char {name}[] = {{\n' + ',\n'.join(rows) + f'}};\nconst size_t {name}_len = sizeof({name});\n'


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def main():
    output, page, css, *scripts = sys.argv[1:]
    script = "\n(() => {\n'use strict';\n" + '\n'.join(read(path) for path in scripts) + '})();\n'
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = read(page).replace('@HASH@', digest).replace('@CSS@', read(css)).replace('@JS@', script)
    head, tail = text.split('@DATA@')
    with open(output, 'w', encoding='utf-8') as file:
        file.write('#include "ladder/template.h"\n' + literal('ladder_page_head', head) + literal('ladder_page_tail', tail))


if __name__ == '__main__':
    main()
