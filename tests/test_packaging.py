#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What goes to others as packages says the same everywhere: versions, sonames and requirements of the header, pyproject.toml,
the Python package, the conda recipe and the scripts; and the scripts are sound shell.

    tests/test_packaging.py         in the source directory
"""
import os
import re
import shutil
import stat
import subprocess

import harness

problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def check_versions():
    header = read("include/cbgen.h")
    major, minor, patch = re.findall(r"^#define CBGEN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M)
    version = f"{major}.{minor}.{patch}"
    soname = f"libcbgen.so.{'0.' + minor if major == '0' else major}"
    for path, pattern in (("pyproject.toml", r'^version = "(.*)"$'),
                          ("packaging/conda/recipe.yaml", r'^  version: "(.*)"$'),
                          ("python/src/cbgen_spmv/_library.py", r'^VERSION = "(.*)"  # '),
                          ("CHANGELOG.md", r"^## ([0-9.]+)(?:, |$)")):
        found = re.search(pattern, read(path), re.M)
        expect(found and found[1] == version, f"{path} has the version {found and found[1]}, the header {version}")
    for path in ("packaging/conda/recipe.yaml", "python/src/cbgen_spmv/_library.py"):
        named = set(re.findall(r"libcbgen\.so\.[0-9][0-9.]*[0-9]", read(path)))
        expect(named == {soname}, f"{path} names {sorted(named)}, and the soname is {soname}")


def check_requirements():
    """What the recipe lists for Python is what pyproject.toml asks for; what it lists for the library, CMake does."""
    project, recipe, cmake = read("pyproject.toml"), read("packaging/conda/recipe.yaml"), read("CMakeLists.txt")
    python = re.search(r'^requires-python = "(.*)"$', project, re.M)[1]
    expect(f"- python {python}\n" in recipe, f"the recipe does not ask for python {python}")
    for wanted in re.findall(r'"((?:numpy|scikit-build-core)[^"]*)"', project):
        name, bounds = re.match(r"([a-z-]+)(.*)", wanted).groups()
        expect(f"- {name} {bounds}\n" in recipe, f"the recipe does not ask for {name} {bounds}")
    found = re.findall(r"^ *pkg_check_modules\(CBGEN_\w+ (?:REQUIRED )?IMPORTED_TARGET ([^)]*)\)", cmake, re.M)
    for library in " ".join(found).split():
        name = {"zlib": "zlib", "libzstd": "zstd", "libxxhash": "xxhash", "jansson": "jansson", "libarchive": "libarchive"}.get(library)
        expect(name, f"CMake asks for '{library}', which neither the recipe nor scripts/wheel knows")
        expect(name and f"- {name}\n" in recipe, f"the recipe does not ask for {name}")
        expect(f"describe {library} " in read("scripts/wheel"), f"scripts/wheel does not tell pkg-config of {library}")
    listed = re.search(r"^set\(CBGEN_FAMILIES ([^ ]+(?: sm_\d+)*) CACHE", cmake, re.M)[1]
    expect(f"ARCHES=({listed})" in read("scripts/wheel"), f"scripts/wheel takes other families along than {listed}")


def check_glibc():
    """One version for the wheel's linker, its tag, conda's and what users are told."""
    wheel = read("scripts/wheel")
    linked = re.search(r"-target x86_64-linux-gnu\.(\d+\.\d+) ", wheel)[1]
    expect(f"--plat manylinux_{linked.replace('.', '_')}_x86_64 " in wheel, f"the wheel's tag is not of glibc {linked}")
    expect(f'- "{linked}"\n' in read("packaging/conda/variants.yaml"), f"the conda recipe is not for glibc {linked}")
    for path, words in (("docs/supported.md", f"| Linux on x86-64, glibc | {linked} or later |"),
                        ("python/README.md", f"glibc {linked} or later")):
        expect(words in read(path), f"{path} does not say that wheels need glibc {linked}")


def check_files():
    """That scripts and commands can be run, and that those which the recipe names are there."""
    recipe = read("packaging/conda/recipe.yaml")
    scripts = re.findall(r"script: (packaging/\S+)", recipe)
    expect(len(scripts) == 2, "the recipe has two builds")
    for path in scripts + ["scripts/wheel", "scripts/conda", "python/tool/cbgen"]:
        if not os.path.exists(path):
            problems.append(f"there is no {path}")
            continue
        expect(os.stat(path).st_mode & stat.S_IXUSR, f"{path} is no program")
        if path != "python/tool/cbgen" and shutil.which("bash"):
            said = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False, timeout=harness.LIMIT)
            expect(not said.returncode, f"{path}: {said.stderr}")
    defined = set(re.findall(r"\bCBGEN_WHEEL_\w+", read("python/CMakeLists.txt")))
    for path in scripts + ["scripts/wheel"]:
        for name in re.findall(r"cmake\.define\.(CBGEN_WHEEL_\w+)", read(path)):
            expect(name in defined, f"{path} sets {name}, which python/CMakeLists.txt does not know")


check_versions()
check_requirements()
check_glibc()
check_files()
harness.finish(problems)
