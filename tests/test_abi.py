#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that were linked with the last release of this soname run with this library, as far as abidiff (Debian:
abigail-tools) can tell from debug information. tests/data/abi/libcbgen-SOVERSION.abi is what that release had, as abidw
writes it of the header alone. Functions may be added, enumerators and members at the end of structs, too, since structs
say their size; all else takes another soname, that is another minor number until 1.0.0.

    tests/test_abi.py BUILD SCRATCH             in the source directory
    CBGEN_UPDATE_ABI=1 tests/test_abi.py …      writes that file: with each release, and for a new soname
"""
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import harness

BUILD, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
with open("include/cbgen.h", encoding="utf-8") as opened:
    HEADER = opened.read()
MAJOR, MINOR = re.findall(r"^#define CBGEN_VERSION_(?:MAJOR|MINOR) (\d+)$", HEADER, re.M)
SOVERSION = f"0.{MINOR}" if MAJOR == "0" else MAJOR
KEPT = f"tests/data/abi/libcbgen-{SOVERSION}.abi"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=harness.LIMIT)


def must(*command):
    result = run(*command)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout


def dump(header, name):
    """The interface of a library that has the header's functions and nothing else."""
    folder = os.path.join(SCRATCH, name)
    os.makedirs(folder)
    source, library = os.path.join(folder, "stub.c"), os.path.join(folder, "stub.so")
    with open(os.path.join(folder, "cbgen.h"), "w", encoding="utf-8") as file:
        file.write(header)
    bare = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include "cbgen.h"\n')
        for declaration in re.findall(r"^CBGEN_API ([^;]*);", bare, re.M):
            file.write(f"{declaration} {{ __builtin_unreachable(); }}\n")
    must("cc", "-g", "-w", "-fPIC", "-shared", f"-Wl,-soname,libcbgen.so.{SOVERSION}", f"-I{folder}",
         f"-Wl,--version-script={BUILD}/cbgen.map", source, "-o", library)
    path = os.path.join(folder, "stub.abi")
    must("abidw", "--no-show-locs", "--no-comp-dir-path", "--no-corpus-path", "--no-elf-needed", "--no-parameter-names",
         "--out-file", path, library)
    return path


def shape(path):
    """({struct: [(member, offset, type)]}, {enumeration: {enumerator: number}}) of what abidw wrote."""
    root = xml.etree.ElementTree.parse(path).getroot()
    names = {each.get("id"): each.get("name") or each.tag for each in root.iter() if each.get("id")}
    pointers = {each.get("id"): each.get("type-id") for each in root.iter()
                if each.tag in ("pointer-type-def", "qualified-type-def")}

    def name_of(kind):
        return f"{name_of(pointers[kind])}*" if kind in pointers else names[kind]

    structs, enums = {}, {}
    for each in root.iter("class-decl"):
        if each.get("is-declaration-only") != "yes":
            structs[each.get("name")] = [
                (member.find("var-decl").get("name"), member.get("layout-offset-in-bits"),
                 name_of(member.find("var-decl").get("type-id"))) for member in each.iter("data-member")]
    for each in root.iter("enum-decl"):
        enums[each.get("name")] = {one.get("name"): one.get("value") for one in each.iter("enumerator")}
    return structs, enums


def compare_shapes(before, after):
    """(what is wrong, the structs and enumerations that only grew)"""
    wrong, grown = [], []
    for name, members in before[0].items():
        now = after[0].get(name, [])
        if now[:len(members)] != members:
            wrong.append(f"struct {name} had {members}, and has {now}")
        elif len(now) > len(members):
            grown.append(name)
    for name, numbers in before[1].items():
        now = after[1].get(name, {})
        if numbers.items() - now.items():
            wrong.append(f"enum {name} had {numbers}, and has {now}")
        elif len(now) > len(numbers):
            grown.append(name)
    return wrong, grown


def differences(kept, current, library):
    """What a program that was linked before would stumble over; [] when nothing."""
    wrong, grown = compare_shapes(shape(kept), shape(current))
    allowed = os.path.join(SCRATCH, "allowed")
    with open(allowed, "w", encoding="utf-8") as file:
        for name in grown:
            file.write(f"[suppress_type]\n  name = {name}\n")
    result = run("abidiff", "--no-added-syms", "--suppressions", allowed, kept, library)
    if result.returncode & ~8 & ~4:  # abidiff itself has failed
        sys.exit(f"abidiff: {result.returncode}\n{result.stdout}{result.stderr}")
    return wrong + ([result.stdout] if result.returncode else [])


def changed(old, new):
    text = HEADER.replace(old, new)
    if text == HEADER:
        sys.exit(f"the header has no '{old}'")
    return text


def check_the_check(current):
    """Changes of the header: those that the comparison must find, and those that it must let pass."""
    last = re.search(r"\n[^\n]*\n\} cbgen_info;", HEADER)[0]
    cases = [("a function less", changed("CBGEN_API void cbgen_trim(void);", ""), True),
             ("a parameter more", changed("cbgen_trim(void)", "cbgen_trim(int how)"), True),
             ("another result", changed("CBGEN_API void cbgen_trim(void)", "CBGEN_API int cbgen_trim(void)"), True),
             ("a member in the middle", changed("  int launches; ", "  int more;\n  int launches; "), True),
             ("a member of another type", changed("  double measured_seconds;", "  int64_t measured_seconds;"), True),
             ("another number", changed("CBGEN_CACHE_HIT = 2", "CBGEN_CACHE_HIT = 3"), True),
             ("a function more",
              changed("CBGEN_API void cbgen_trim", "CBGEN_API int cbgen_more(int how);\nCBGEN_API void cbgen_trim"), False),
             ("a member at the end", changed(last, last.replace("\n}", "\n  int64_t more;\n}")), False),
             ("an enumerator more", changed("CBGEN_CACHE_HIT = 2", "CBGEN_CACHE_HIT = 2, CBGEN_CACHE_MORE = 3"), False)]
    problems = []
    for number, (what, header, is_wrong) in enumerate(cases):
        there = dump(header, f"case-{number}")
        found = differences(current, there, there.replace(".abi", ".so"))
        if bool(found) != is_wrong:
            problems.append(f"{what}: {found or 'passed'}")
    return problems


def main():
    if not shutil.which("abidiff") or not shutil.which("abidw"):
        harness.skip("there is no abidiff")
        harness.finish()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    os.makedirs(SCRATCH)
    current = dump(HEADER, "current")
    if os.environ.get("CBGEN_UPDATE_ABI"):
        shutil.copyfile(current, KEPT)
    if not os.path.exists(KEPT):
        sys.exit(f"there is no {KEPT}: CBGEN_UPDATE_ABI=1 writes it for this soname")
    problems = differences(KEPT, current, os.path.join(BUILD, "libcbgen.so"))
    if problems:
        problems.append("Programs that were linked before break: another soname is needed (CBGEN_VERSION_MINOR in "
                        f"include/cbgen.h), and then its {KEPT}; before the soname's first release, that file alone: "
                        "CBGEN_UPDATE_ABI=1 writes it")
    else:
        print(f"libcbgen.so.{SOVERSION} has what it had")
    harness.finish(problems + check_the_check(current))


main()
