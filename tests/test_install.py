#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the build into a scratch prefix and builds the installed example against it: in C99 with find_package, in
C++ with pkg-config. Then looks at what was installed.

    tests/test_install.py BUILD SCRATCH [FLAGS]       FLAGS: the compiler flags of a sanitized build
"""
import os
import re
import shutil
import subprocess
import sys

BUILD, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FLAGS = "".join(sys.argv[3:])
PREFIX, WORK = os.path.join(SCRATCH, "moved prefix"), os.path.join(SCRATCH, "work")
with open("include/cbgen.h", encoding="utf-8") as opened:
    HEADER = opened.read()
VERSION = [int(number) for number in re.findall(r"^#define CBGEN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", HEADER, re.M)]
SOVERSION = f"0.{VERSION[1]}" if VERSION[0] == 0 else str(VERSION[0])  # what tells incompatible versions apart


def run(*command, **more):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout


def expect(condition, what):
    if not condition:
        sys.exit(what)


def find(*parts):
    path = os.path.join(PREFIX, *parts)
    expect(os.path.exists(path), f"'{path}' was not installed")
    return path


def install():
    """Into one place, then moved to another: an installed tree is not tied to where it was made."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    os.makedirs(WORK)
    run("cmake", "--install", BUILD, "--prefix", os.path.join(SCRATCH, "first"))
    os.rename(os.path.join(SCRATCH, "first"), PREFIX)


def check_contents(libraries):
    find("include", "cbgen.h")
    find("share", "man", "man1", "cbgen.1")
    find("share", "bash-completion", "completions", "cbgen")
    find("share", "zsh", "site-functions", "_cbgen")
    find("share", "fish", "vendor_completions.d", "cbgen.fish")
    find("share", "doc", "cbgen", "LICENSE")
    headers = sorted(os.listdir(os.path.join(PREFIX, "include")))
    expect(headers == ["cbgen.f90", "cbgen.h", "cbgen.hpp"], f"installed headers: {headers}")
    expect(not [name for name in os.listdir(libraries) if name.endswith(".a")], "a static library was installed")
    expect(run(find("bin", "cbgen"), "--version").startswith("cbgen " + ".".join(map(str, VERSION))),
           "the tool's version is not the header's")


def check_symbols(libraries):
    library = os.path.join(libraries, "libcbgen.so")
    needed = run("readelf", "-d", library)
    expect("libarchive" not in needed, f"the library needs libarchive, which only the tool uses:\n{needed}")
    expect(f"libcbgen.so.{SOVERSION}]" in run("readelf", "-d", library), f"the soname is not libcbgen.so.{SOVERSION}")
    symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()]
    names = [symbol.split("@")[0] for symbol in symbols]
    strangers = [name for name in names if not name.startswith("cbgen_")
                 and not re.match(r"_?_?(asan|ubsan|odr_asan|sanitizer)|_init$|_fini$|CBGEN_", name)]
    bare = [symbol for symbol in symbols if symbol.startswith("cbgen_") and not symbol.endswith(f"@@CBGEN_{SOVERSION}")]
    expect(not bare, f"symbols without the version of the soname: {bare[:10]}")
    expect(not strangers, f"exported without being public: {strangers[:10]}")
    declared = set(re.findall(r"^CBGEN_API .*?(cbgen_\w+)\(", HEADER, re.M))
    expect(declared == {name for name in names if name.startswith("cbgen_")},
           f"declared and exported differ: {declared ^ {n for n in names if n.startswith('cbgen_')}}")


def check_header():
    header = os.path.join(PREFIX, "include", "cbgen.h")
    run("cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-x", "c", header)
    run("c++", "-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-x", "c++", header)
    run("c++", "-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-x", "c++", f"{header}pp")


def check_program(program, libraries):
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
    stem = os.path.join(WORK, os.path.basename(program) + "-kernel")
    output = run(program, stem, env=environment)
    expect(re.match(r"cbgen \d+\.\d+\.\d+: \(spmv ", output), f"the example printed: {output}")
    with open(stem + ".cu", encoding="utf-8") as file:
        expect(' for "rod": 1000 × 1000' in file.readline(), "the text does not begin as it should")
    with open(stem + ".cbd", "rb") as file:
        expect(file.read(8) == b"CBGENDAT", "the data do not begin as they should")


def build_with_cmake(example):
    folder = os.path.join(WORK, "cmake")
    run("cmake", "-S", example, "-B", folder, f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DCMAKE_C_FLAGS={FLAGS}")
    run("cmake", "--build", folder)
    return os.path.join(folder, "generate")


def build_with_pkg_config(example, libraries):
    environment = {**os.environ, "PKG_CONFIG_PATH": os.path.join(libraries, "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "cbgen", env=environment)
    program = os.path.join(WORK, "generate-c++")
    command = f"c++ {FLAGS} -Wall -Wextra -pedantic -x c++ '{example}/generate.c' -x none {flags} -o '{program}'"
    run("sh", "-c", command.replace("\n", " "))
    return program


install()
LIBRARIES = os.path.dirname([os.path.join(folder, "libcbgen.so") for folder, _, names in os.walk(PREFIX)
                             if "libcbgen.so" in names][0])
EXAMPLE = find("share", "doc", "cbgen", "examples", "generate")
check_contents(LIBRARIES)
check_symbols(LIBRARIES)
check_header()
check_program(build_with_cmake(EXAMPLE), LIBRARIES)
check_program(build_with_pkg_config(EXAMPLE, LIBRARIES), LIBRARIES)
print("installed, found and used")
