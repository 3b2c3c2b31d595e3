#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CUDA library with the code of one GPU only: that of the others becomes zeros, which compress to nothing.

    bench/keep_arch.py LIBRARY OUTPUT ARCH      ARCH: 90 for sm_90; prints what is left

Device code lies in containers, a header and entries; an entry is a header and one GPU's code: PTX, machine code or what is
linked at run time. Nothing moves, so the library loads as before. A container without machine code for ARCH stays whole.
"""
import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)
CONTAINER = struct.Struct("<IHHQ")        # magic, version, bytes of this header, bytes of the entries
ENTRY = struct.Struct("<HHIQIIHHI")       # kind, version, bytes of this header, bytes that follow, four more, architecture
MACHINE_CODE = 2


def entries(library, at, end):
    """(kind, architecture, offset, bytes) of each entry's code; None where this is no container after all."""
    found = []
    while at < end:
        if at + ENTRY.size > end:
            return None
        kind, _, header, length, *_, arch = ENTRY.unpack_from(library, at)
        if header < ENTRY.size or at + header + length > end:
            return None
        found.append((kind, arch, at + header, length))
        at += header + length
    return found


def containers(library):
    """The entries of each container."""
    at = library.find(MAGIC)
    while 0 <= at <= len(library) - CONTAINER.size:
        _, _, header, length = CONTAINER.unpack_from(library, at)
        start, end = at + header, at + header + length
        found = entries(library, start, end) if header >= CONTAINER.size and end <= len(library) else None
        if found:
            yield found
        at = library.find(MAGIC, end if found else at + 1)


def keep(library, arch):
    """Clears what other GPUs would run; returns the bytes kept and cleared."""
    kept = cleared = 0
    for found in containers(library):
        if (MACHINE_CODE, arch) not in [one[:2] for one in found]:
            continue
        for _, of, at, length in found:
            if of == arch:
                kept += length
            else:
                library[at:at + length] = bytes(length)
                cleared += length
    return kept, cleared


def main():
    if len(sys.argv) != 4 or not sys.argv[3].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    source, target, arch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        with open(source, "rb") as file:
            library = bytearray(file.read())
        kept, cleared = keep(library, arch)
        if not kept:
            print(f"'{source}' has no machine code for sm_{arch}", file=sys.stderr)
            return 1
        with open(target, "wb") as file:
            file.write(library)
    except OSError as error:
        print(f"'{error.filename}': {error.strerror}", file=sys.stderr)
        return 1
    print(f"sm_{arch}: {kept / 2**20:.1f} MiB of code kept, {cleared / 2**20:.1f} MiB of other GPUs' cleared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
