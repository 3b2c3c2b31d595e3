#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists what a run of ctest left out, and judges it.

    tests/report_skips.py RESULTS [ALLOWED]

RESULTS is what ctest's --output-junit wrote, whole outputs included. ALLOWED has a line for each skip that is accepted,
"TEST REASON": TEST as ctest names it, REASON a part of what the test says; above it, lines that begin with '#' say why.
Exits 1 when a skip is not among them. A test that ctest counts as skipped and that gives no reason is never accepted.
"""
import re
import sys
import xml.etree.ElementTree

NO_REASON = "it does not say why"


def skips_of(results):
    """[(test, reason)], sorted."""
    found = []
    for test in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
        reasons = list(dict.fromkeys(re.findall(r"(?m)^skipped: (.*\S)\s*$", test.findtext("system-out") or "")))
        if not reasons and test.find("skipped") is not None:
            reasons = [NO_REASON]
        found += [(test.get("name"), reason) for reason in reasons]
    return sorted(found)


def allowed_of(text):
    lines = [line.strip() for line in text.splitlines()]
    return [tuple(line.split(None, 1)) for line in lines if line and not line.startswith("#")]


def is_allowed(skip, allowed):
    return skip[1] != NO_REASON and any(skip[0] == test and reason in skip[1] for test, reason in allowed)


def main(results, *lists):
    skips, allowed = skips_of(results), []
    for path in lists:
        with open(path, encoding="utf-8") as file:
            allowed += allowed_of(file.read())
    refused = [skip for skip in skips if lists and not is_allowed(skip, allowed)]
    print(f"\nSkipped: {len(skips)}" + (f", of them {len(refused)} that {lists[0]} does not allow" if refused else ""))
    for skip in skips:
        print(f"  {skip[0]}: {skip[1]}" + ("   <- not allowed" if skip in refused else ""))
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
