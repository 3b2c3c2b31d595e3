#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes powers.h: 5^q for q in [-342, 308], cut (never rounded up) to 128 bits with the top bit set."""
FIRST, LAST = -342, 308


def cut(q):
    if q >= 0:
        value = 5**q
        shift = value.bit_length() - 128
        return value >> shift if shift >= 0 else value << -shift
    divisor = 5**-q
    value = (1 << (divisor.bit_length() + 127)) // divisor
    return value if value < 1 << 128 else value >> 1


print("// SPDX-License-Identifier: Apache-2.0")
print("/* Written by powers.py: the leading 128 bits of 5^q, cut, high half first. */")
print("#ifndef CBGEN_FRONTEND_POWERS_H\n#define CBGEN_FRONTEND_POWERS_H\n\n#include <stdint.h>\n")
print("enum { CB_POWERS_FIRST = %d, CB_POWERS_LAST = %d };\n" % (FIRST, LAST))
print("/* clang-format off */")
print("static const uint64_t cb_powers_of_five[CB_POWERS_LAST - CB_POWERS_FIRST + 1][2] = {")
for q in range(FIRST, LAST + 1):
    value = cut(q)
    assert 1 << 127 <= value < 1 << 128
    print("    {0x%016x, 0x%016x}," % (value >> 64, value & (1 << 64) - 1))
print("};\n/* clang-format on */\n\n#endif")
