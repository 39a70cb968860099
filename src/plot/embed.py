# SPDX-License-Identifier: BSD-2-Clause
"""embed.py OUTPUT PAGE.HTML PAGE.CSS D3.JS D3-LICENCE SCRIPT.JS: makes one page of its parts, as C source.

D3 comes from where its package has it. The page's policy names the hashes of both scripts, so that no other script runs in it. The C
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


def digest(script):
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def main():
    output, page, css, d3, licence, script = sys.argv[1:]
    library = '\n' + read(d3)
    own = "\n(function () {\n'use strict';\n" + read(script) + '})();\n'
    for text in (library, own):
        if '</script' in text:
            sys.exit('embed.py: a script contains the end of a script')
    text = read(page).replace('@HASHES@', f'{digest(library)} {digest(own)}').replace('@CSS@', read(css))
    text = text.replace('@LICENCE@', read(licence).replace('-->', '-- >')).replace('@D3@', library).replace('@JS@', own)
    head, tail = text.split('@DATA@')
    with open(output, 'w', encoding='utf-8') as file:
        file.write('#include "plot/template.h"\n' + literal('plot_page_head', head) + literal('plot_page_tail', tail))


if __name__ == '__main__':
    main()
