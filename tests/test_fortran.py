#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""include/cbgen.f90 says what include/cbgen.h says: members of structs in their order and of their types, numbers of all
enumerations, all functions. Then tests/fortran_api.f90 calls them, on the fake CUDA; that needs gfortran.

    tests/test_fortran.py BUILD SCRATCH [FLAGS]        FLAGS: of a sanitized build
"""
import os
import re
import shutil
import subprocess
import sys

import harness

BUILD, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FLAGS = "".join(sys.argv[3:]).split()
# Parts of the interface that the module does not have (yet): beginnings of names, as in the header.
LEFT_OUT = ("cbgen_solve", "cbgen_batch", "cbgen_outcome", "cbgen_residual", "cbgen_diagonal", "cbgen_block_diagonal")
problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)


with open("include/cbgen.h", encoding="utf-8") as file:
    HEADER = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
with open("include/cbgen.f90", encoding="utf-8") as file:
    MODULE = re.sub(r"&\s*\n\s*", "", re.sub(r"!.*", "", file.read()))

ENUMS = dict(re.findall(r"typedef enum (\w+) \{([^}]*)\}", HEADER))
KINDS = {"int": "integer(c_int)", "int64_t": "integer(c_int64_t)", "size_t": "integer(c_size_t)", "double": "real(c_double)",
         "cbgen_allocate": "type(c_funptr)", "cbgen_release": "type(c_funptr)"}


def fortran_of(text):
    """The Fortran type of a member: a function's address, too, is a pointer."""
    words = re.sub(r"\bconst\b", "", text).replace("*", " * ").split()
    if "*" in words:
        return "type(c_ptr)"
    return "integer(c_int)" if words[0] in ENUMS else KINDS[words[0]]


def members_of_struct(body):
    found = []
    for declaration in body.split(";"):
        words = declaration.strip()
        if not words:
            continue
        first, *more = [part.strip() for part in words.split(",")]
        base = re.sub(r"\**\w+$", "", first)
        for name in [first, *more]:
            stars = "*" * name.count("*")
            found.append((re.search(r"(\w+)$", name)[1], fortran_of(base + stars)))
    return found


def members_of_type(body):
    return [(name, kind) for kind, name in re.findall(r"^\s*(\w+\(\w+\)) :: (\w+)", body, re.M)]


def check_structs():
    structs = {name: body for name, body in re.findall(r"typedef struct (\w+) \{([^}]*)\} \w+;", HEADER)
               if not name.startswith(LEFT_OUT)}
    types = dict(re.findall(r"type, bind\(c\) :: (\w+)_t\n(.*?)\n\s*end type", MODULE, re.S))
    expect(len(structs) > 4 and structs.keys() == types.keys(),
           f"structs of the header and types of the module differ: {sorted(structs.keys() ^ types.keys())}")
    for name in structs.keys() & types.keys():
        mine, theirs = members_of_type(types[name]), members_of_struct(structs[name])
        expect(mine == theirs, f"{name}: the module has {mine}, the header {theirs}")


def check_enums():
    numbers = dict(re.findall(r"\b(CBGEN_[A-Z0-9_]+) = (\d+)", MODULE))
    for name, body in ENUMS.items():
        if name.startswith(LEFT_OUT):
            continue
        for constant, number in re.findall(r"(CBGEN_\w+) = (\d+)", body):
            expect(numbers.pop(constant, None) == number, f"{name}: {constant} is {number} in the header")
    expect(not numbers, f"constants that the header lacks: {sorted(numbers)}")


def check_functions():
    declared = {name: 0 if parameters.strip() == "void" else parameters.count(",") + 1
                for name, parameters in re.findall(r"CBGEN_API [^(;]*?(cbgen_\w+)\(([^)]*)\)", HEADER)
                if not name.startswith(LEFT_OUT)}
    bound = {name: len(arguments.split(",")) if arguments.strip() else 0 for arguments, name in
             re.findall(r"(?:function|subroutine) \w+\(([^)]*)\) bind\(c, name='(cbgen_\w+)'\)", MODULE)}
    expect(len(declared) > 20 and declared == bound,
           f"functions of the header and of the module differ: {sorted(set(declared.items()) ^ set(bound.items()))}")


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=harness.LIMIT,
                            env={**os.environ, "CBGEN_CACHE_DIR": "", "LD_LIBRARY_PATH": BUILD})
    expect(result.returncode == 0 and not result.stderr,
           f"{' '.join(command)}: exit status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.returncode == 0 and not result.stderr


def check_program():
    shutil.rmtree(SCRATCH, ignore_errors=True)
    os.makedirs(SCRATCH)
    runtime, program = os.path.join(SCRATCH, "runtime.o"), os.path.join(SCRATCH, "fortran_api")
    if run("cc", *FLAGS, "-D_GNU_SOURCE", "-I.", "-c", "tests/fake_runtime/runtime.c", "-o", runtime) and \
       run("gfortran", *FLAGS, "-std=f2018", "-Wall", "-Wextra", "-Werror", "-J", SCRATCH, "include/cbgen.f90",
           "tests/fortran_api.f90", runtime, "-L", BUILD, "-lcbgen", "-ldl", "-o", program) and run(program):
        print("cbgen.f90 says what cbgen.h says, and its functions work")


check_structs()
check_enums()
check_functions()
if shutil.which("gfortran"):
    check_program()
else:
    harness.skip("there is no gfortran")
harness.finish(problems)
