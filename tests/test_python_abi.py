#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python/src/cbgen_spmv/_abi.py says what include/cbgen.h says: sizes, offsets and types of all members, numbers of all
enumerations, prototypes of all functions. Needs a C compiler, no library, no GPU.

    tests/test_python_abi.py SCRATCH        in the source directory
"""
import ctypes
import importlib.util
import os
import re
import subprocess
import sys

SCRATCH = sys.argv[1]
HEADER = "include/cbgen.h"
STRUCTS = ["Allocator", "Csr", "Matrix", "Request", "Argument", "Product", "Products", "Update", "Outcome", "SolverOptions",
           "BatchOptions", "LpResult", "LpOptions", "LpProblem", "Info"]  # cbgen_csr and so on
ENUMS = {"Status": "cbgen_status", "Type": "cbgen_type", "Format": "cbgen_format", "Memory": "cbgen_memory", "Values": "cbgen_values",
         "CacheResult": "cbgen_cache_result", "Specialise": "cbgen_specialise",
         "Tier": "cbgen_tier", "Reason": "cbgen_reason", "Order": "cbgen_order", "Reorder": "cbgen_reorder",
         "Symmetry": "cbgen_symmetry"}
OPAQUE = {"cbgen_context", "cbgen_operator", "cbgen_kernel", "cbgen_solver", "cbgen_batch", "cbgen_lp"}

specification = importlib.util.spec_from_file_location("abi", "python/src/cbgen_spmv/_abi.py")
abi = importlib.util.module_from_spec(specification)
sys.modules["abi"] = abi
specification.loader.exec_module(abi)

with open(HEADER, encoding="utf-8") as opened:
    TEXT = re.sub(r"/\*.*?\*/", " ", opened.read(), flags=re.S)
problems = []


def c_name(name):
    """SolverOptions → cbgen_solver_options"""
    return "cbgen" + re.sub(r"([A-Z])", r"_\1", name).lower()


def expect(condition, what):
    if not condition:
        problems.append(what)


def body_of(kind, name):
    found = re.search(r"typedef %s %s \{([^}]*)\} %s;" % (kind, name, name), TEXT)
    if not found:
        sys.exit(f"{HEADER} has no '{kind} {name}'")
    return found[1]


def ctype_of(text):
    """The ctypes type that a C type is mirrored with."""
    text = re.sub(r"\bconst\b", "", text)
    base, stars = text.replace("*", " ").split()[0], text.count("*")
    scalars = {"int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t,
               "double": ctypes.c_double, "cbgen_log": abi.LOG, "cbgen_allocate": abi.ALLOCATE, "cbgen_release": abi.RELEASE,
               "cbgen_precondition": abi.PRECONDITION, "cbgen_progress": abi.PROGRESS}
    if base == "void":
        return (None, ctypes.c_void_p)[stars]
    if base == "char" and stars == 1:
        return ctypes.c_char_p
    if base in OPAQUE:
        return (None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))[stars]
    if base in ENUMS.values():
        return ctypes.c_int
    struct = {c_name(name): getattr(abi, name) for name in STRUCTS}.get(base)
    plain = struct or scalars[base]
    return ctypes.POINTER(plain) if stars else plain


def members_of(struct):
    """[(name, C type)] in the order of the header; `int a, b;` declares two."""
    found = []
    for declaration in body_of("struct", struct).split(";"):
        words = declaration.strip()
        if words:
            first, *more = [part.strip() for part in words.split(",")]
            kind, stars, name = re.match(r"(.*?)([\s*]*)\b(\w+)$", first).groups()
            found += [(name, kind + stars)] + [(other, kind) for other in more]
    return found


def measure():
    """{"cbgen_csr": size, "cbgen_csr.rows": offset, "CBGEN_OK": number, …} by a compiled program."""
    questions = []
    for name in STRUCTS:
        struct = c_name(name)
        questions.append((struct, f"sizeof({struct})"))
        questions += [(f"{struct}.{member}", f"offsetof({struct}, {member})") for member, _ in members_of(struct)]
    for enum in ENUMS.values():
        questions.append((f"sizeof {enum}", f"sizeof({enum})"))
        questions += [(constant, constant) for constant in re.findall(r"(CBGEN_\w+) =", body_of("enum", enum))]
    os.makedirs(SCRATCH, exist_ok=True)
    program, source = os.path.join(SCRATCH, "abi"), os.path.join(SCRATCH, "abi.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include "cbgen.h"\n#include <stdio.h>\nint main(void) {\n')
        file.writelines(f'  printf("{name}=%lld\\n", (long long)({value}));\n' for name, value in questions)
        file.write("  return 0;\n}\n")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-std=c99", "-Wall", "-Werror", "-Iinclude", source, "-o", program], check=True)
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in (line.split("=") for line in output.splitlines())}


def check_structs(measured):
    for name in STRUCTS:
        struct, mirror = c_name(name), getattr(abi, name)
        expect(ctypes.sizeof(mirror) == measured[struct],
               f"{struct}: {measured[struct]} bytes in C, {ctypes.sizeof(mirror)} in Python")
        declared = members_of(struct)
        mirrored = [member for member, _ in mirror._fields_]
        expect(mirrored == [member for member, _ in declared], f"{struct}: members {declared} in C, {mirrored} in Python")
        for member, kind in declared:
            if member in mirrored:
                offset = getattr(mirror, member).offset
                expect(offset == measured[f"{struct}.{member}"],
                       f"{struct}.{member}: offset {measured[f'{struct}.{member}']} in C, {offset} in Python")
                expect(dict(mirror._fields_)[member] is ctype_of(kind),
                       f"{struct}.{member}: '{kind}' in C, {dict(mirror._fields_)[member]} in Python")


def check_enums(measured):
    for name, enum in ENUMS.items():
        expect(measured[f"sizeof {enum}"] == ctypes.sizeof(ctypes.c_int), f"{enum} is no int")
        in_c = {constant: measured[constant] for constant in re.findall(r"(CBGEN_\w+) =", body_of("enum", enum))}
        short = [re.sub(r"^CBGEN_(ERROR_|VALUES_|CACHE_|SPECIALISE_|TIER_|REASON_|REORDER_)?", "", constant) for constant in in_c]
        in_python = {each.name: each.value for each in getattr(abi, name)}
        expect(in_python == dict(zip(short, in_c.values())), f"{enum}: {in_c} in C, {in_python} in Python")


def check_prototypes():
    declared = {}
    for result, name, arguments in re.findall(r"CBGEN_API ([\w\s*]*?)\b(\w+)\(([^)]*)\);", TEXT):
        kinds = [] if arguments.strip() == "void" else arguments.split(",")
        # an argument's last word is its name
        declared[name] = (ctype_of(result), tuple(ctype_of(re.sub(r"\w+\s*$", "", kind)) for kind in kinds))
    expect(len(declared) > 25, f"only {len(declared)} functions were found in {HEADER}")
    expect(declared.keys() == abi.PROTOTYPES.keys(),
           f"functions of one side only: {sorted(declared.keys() ^ abi.PROTOTYPES.keys())}")
    for name in declared.keys() & abi.PROTOTYPES.keys():
        expect(declared[name] == abi.PROTOTYPES[name],
               f"{name}: {declared[name]} by the header, {abi.PROTOTYPES[name]} in Python")
    callback = re.search(r"typedef (\w+) \(\*cbgen_log\)\((.*?)\);", TEXT)
    expect(callback and callback[1] == "void" and callback[2] == "void *user, const char *line"
           and abi.LOG._restype_ is None and abi.LOG._argtypes_ == (ctypes.c_void_p, ctypes.c_char_p),
           "cbgen_log: the callback differs")


MEASURED = measure()
check_structs(MEASURED)
check_enums(MEASURED)
check_prototypes()
print("\n".join(problems) or f"{len(MEASURED)} sizes, offsets and numbers and {len(abi.PROTOTYPES)} prototypes agree")
sys.exit(1 if problems else 0)
