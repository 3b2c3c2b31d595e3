#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package in a process with a decimal comma and every rounding mode: the same texts, data and products.

    tests/test_python_numerics.py SCRATCH
"""
import ctypes
import ctypes.util
import locale
import os
import subprocess
import sys
import unittest

import harness
import numpy
from python_support import FakeCase, matrix

import cbgen_spmv as cbgen

SCRATCH = os.path.abspath(sys.argv.pop(1))
LOCALE = "tr_TR.UTF-8"
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
X86_MODES = {"to the nearest": 0, "downward": 0x400, "upward": 0x800, "toward zero": 0xC00}  # as <fenv.h> has them
ARM_MODES = {"to the nearest": 0, "upward": 0x400000, "downward": 0x800000, "toward zero": 0xC00000}
MODES = X86_MODES if os.uname().machine == "x86_64" else ARM_MODES


def make_locale():
    folder = os.path.join(SCRATCH, "locale")
    if not os.path.isdir(os.path.join(folder, LOCALE)):
        os.makedirs(folder, exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        subprocess.run(["localedef", "--no-archive", "-i", "tr_TR", "-f", "UTF-8", os.path.join(folder, LOCALE)], check=True,
                       env=environment)
    os.environ["LOCPATH"] = folder


class SameInEveryMode(FakeCase):
    def results(self, plain, x):
        """Of a kernel and an operator for fixed values: the matrix's are tenths."""
        kernel = cbgen.generate(plain, values="fixed", bake_limit=64)
        operator = cbgen.compile(plain, values="fixed")
        y = operator @ x
        texts = kernel.source, bytes(kernel.data), kernel.plan, operator.source
        return *texts, operator.info.predicted_seconds, y.tobytes()

    def test_kernels_and_products(self):
        plain = matrix(80, 60)
        plain.data = numpy.round(plain.data * 10) / 10 + 0.3
        x = numpy.arange(60) / 7
        expected = self.results(plain, x)
        make_locale()
        for name, mode in MODES.items():
            locale.setlocale(locale.LC_ALL, LOCALE)
            self.assertEqual(locale.localeconv()["decimal_point"], ",")
            self.assertEqual(LIBM.fesetround(mode), 0)
            try:
                found = self.results(plain, x)
                kept = LIBM.fegetround()
            finally:
                LIBM.fesetround(0)
                locale.setlocale(locale.LC_ALL, "C")
            self.assertEqual(kept, mode, name)
            for one, two in zip(expected, found):
                self.assertEqual(one, two, name)


if __name__ == "__main__":
    harness.main(sys.argv[:1])
