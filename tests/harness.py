# SPDX-License-Identifier: Apache-2.0
"""What the tests in Python share: how long a program that they start may take, a folder for each test, and skips that
nobody overlooks.

A test that cannot do its work on this machine prints a line "skipped: REASON" and ends with SKIPPED_EXIT, unless
something failed: ctest's summary then names it as "Skipped", and report_skips.py lists the reasons.
"""
import os
import shutil
import sys
import unittest

LIMIT = 1500  # seconds, for what takes a few on a machine that does nothing else: it may be a loaded one
SKIPPED_EXIT = 77  # SKIP_RETURN_CODE in tests/CMakeLists.txt

_skips = 0


def fresh_folder(test, scratch):
    """An empty folder for one test of a unittest.TestCase, below `scratch`: its absolute path."""
    folder = os.path.abspath(os.path.join(scratch, test.id().split(".")[-1]))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def skip(reason):
    """For tests without unittest: notes that a part is left out."""
    global _skips
    _skips += 1
    print(f"skipped: {reason}", flush=True)


def finish(failures=()):
    """Ends the process: with what failed, else as skipped, else well."""
    sys.stdout.flush()
    sys.exit("\n".join(failures) if failures else SKIPPED_EXIT if _skips else 0)


def main(argv, **more):
    """unittest.main, with skips that are told."""
    result = unittest.main(argv=argv, exit=False, **more).result
    for test, reason in result.skipped:
        skip(f"{test.id().removeprefix('__main__.')}: {reason}")
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    finish()
