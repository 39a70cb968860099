# SPDX-License-Identifier: BSD-2-Clause
"""tamper.py LINK LINK HOW: an attacker on the path. Forwards frames between two interfaces of its namespace, and changes the content of
files in them, with a correct ICRC, which needs no key. At SIGTERM it prints how many packets it has changed.

HOW is "flip": one bit of the first packet that carries much; or "swap": exchanges two words that differ, in content()."""
import struct
import sys

import relay
import roce_pcap

# XXH3 multiplies the halves of each word after an exclusive or with a constant of its stripe (64 bytes), and adds the word itself to
# another lane. In these two words, of the same lane, the lower halves make the product 0, so the upper halves only count in the
# sum: exchanged, they give the same digest. xxhash.h has the constants, as kSecret.
FIRST, SECOND = bytes.fromhex('7c01812c'), bytes.fromhex('ded46de9')
FIRST_AT, SECOND_AT = 64, 128
HONEST, FORGED = (b'this', b'that'), (b'that', b'this')
PROBES = 0xc1, 0xc5  # opcodes: OFFER and MTU PROBE carry much, too, and nothing of a file
MUCH = 900  # bytes of an IP packet: more than the handshake's


def content(words=HONEST, length=64 << 10):
    """The beginning of a chunk. With the words FORGED its XXH3-128 is the same."""
    data = bytearray(length)
    data[FIRST_AT:FIRST_AT + 8] = FIRST + words[0]
    data[SECOND_AT:SECOND_AT + 8] = SECOND + words[1]
    return bytes(data)


def change(roce, how):
    """Changes the bytes from the BTH to the pad. Returns whether it did."""
    if roce[0] in PROBES:
        return False
    if how == 'flip':
        roce[len(roce) // 2] ^= 1
        return True
    a, b = roce.find(FIRST + HONEST[0]), roce.find(SECOND + HONEST[1])
    if a < 0 or b < 0:
        return False
    roce[a + 4:a + 8], roce[b + 4:b + 8] = FORGED
    return True


def tampered(frame, how):
    """The frame with other content, or None if it has none."""
    ip, udp, roce = frame[14:34], frame[34:42], bytearray(frame[42:14 + struct.unpack('>H', frame[16:18])[0] - 4])
    if not change(roce, how):
        return None
    udp = udp[:6] + b'\0\0'  # no checksum
    return frame[:14] + ip + udp + bytes(roce) + struct.pack('<I', roce_pcap.icrc(ip, udp, bytes(roce)))


def main():
    how, changed = sys.argv[3], []

    def change_first(frame):
        other = None
        if relay.is_roce(frame) and frame[12] == 8 and len(frame) > MUCH and not changed:
            other = tampered(frame, how)
        if other:
            changed.append(True)
        return other or frame
    relay.print_at_end(lambda: f'{len(changed)} packets changed')
    relay.forward(sys.argv[1:3], change_first)


if __name__ == '__main__':
    main()
