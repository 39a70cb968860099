# SPDX-License-Identifier: BSD-2-Clause
"""embed.py NAME HEADER OUTPUT PAGE.HTML PAGE.CSS [--library LIBRARY.JS LICENCE] SCRIPT.JS...: makes one page of its parts, as C source.

The scripts become one, with a scope of its own. A library stays as it is, in a script of its own in front; it comes from where its
package has it. The page's policy names the scripts' hashes, so that no other script runs in it. The C source has the page in two strings:
NAME_head before the data, and NAME_tail behind them.
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
    if '</script' in script:
        sys.exit('embed.py: a script contains the end of a script')
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def main():
    name, header, output, page, css, *scripts = sys.argv[1:]
    library = licence = ''
    if scripts[0] == '--library':
        library, licence = '\n' + read(scripts[1]), read(scripts[2]).replace('-->', '-- >')
        del scripts[:3]
    script = "\n(() => {\n'use strict';\n" + '\n'.join(read(path) for path in scripts) + '})();\n'
    text = read(page).replace('@HASH@', digest(script)).replace('@LIBRARY-HASH@', digest(library)).replace('@CSS@', read(css))
    text = text.replace('@LICENCE@', licence).replace('@LIBRARY@', library).replace('@JS@', script)
    head, tail = text.split('@DATA@')
    with open(output, 'w', encoding='utf-8') as file:
        file.write(f'#include "{header}"\n' + literal(name + '_head', head) + literal(name + '_tail', tail))


if __name__ == '__main__':
    main()
