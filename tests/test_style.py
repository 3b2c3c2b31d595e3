#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of this source tree that a program can check: the order of the folders, first lines, lengths of files and
functions, no printing in the library, documents that say what the tool says and cite only what is there.

    tests/test_style.py TOOL        in the source directory; prints every violation, exits 1 if there is one
"""
import os
import re
import subprocess
import sys

import function_lengths

TOOL = sys.argv[1]
FOLDERS = ["base", "frontend", "analysis", "codegen", "runtime", "tool"]
# A file includes files of its own folder and of those before it. A folder that is not named here goes with the one
# around it.
ORDER = ["base", "frontend", "analysis", "analysis/profile", "analysis/choose", "analysis/plan", "analysis/layouts", "codegen",
         "runtime/cuda", "runtime/cache", "runtime/operator", "runtime/solver", "runtime/verify/emulation", "runtime/verify",
         "runtime/measure", "runtime/api", "tool"]
CODE = (".c", ".h", ".cpp")
MOST_LINES, MOST_COLUMNS = 1000, 120
MOST_NAMED = 3  # recipes in a list of a test that is no layout's own: fewer are examples
SCREEN_LINES, SCREEN_COLUMNS = 24, 100
problems = []


def problem(where, what):
    problems.append(f"{where}: {what}")


def files(*roots):
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in sorted(names):
                yield os.path.join(folder, name)


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def run(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)


def place_of(path):
    """The entry of ORDER that a file belongs to; None: it lies in no such folder."""
    folder = os.path.dirname(path)
    while folder and folder not in ORDER:
        folder = os.path.dirname(folder)
    return folder or None


def includes_of(path):
    """(line number, file) of each include in quotes. A name without a folder is a file beside this one, or it is no
    file of the pipeline: the public header, or one that is made."""
    for number, line in enumerate(lines_of(path), 1):
        match = re.match(r'#include "([^"]+)"', line)
        if match and "/" in match[1]:
            yield number, match[1]
        elif match and os.path.exists(os.path.join(os.path.dirname(path), match[1])):
            yield number, os.path.join(os.path.dirname(path), match[1])


def check_includes():
    for path in files(*FOLDERS):
        if not path.endswith(CODE):
            continue
        own = place_of(path)
        if not own:
            problem(path, "its folder has no place in the order of folders (ORDER in tests/test_style.py)")
            continue
        for number, name in includes_of(path):
            other = place_of(name)
            if not other:
                problem(f"{path}:{number}", f"'{name}' lies in no folder of the pipeline")
            elif ORDER.index(other) > ORDER.index(own):
                problem(f"{path}:{number}", f"{own}/ includes '{name}', and {other}/ stands after it")


def check_adapters():
    """Plug-ins for other libraries use cbgen's public interface alone."""
    for path in files("adapters"):
        for number, line in enumerate(lines_of(path) if path.endswith(CODE) else [], 1):
            match = re.match(r'#include "([^"]+)"', line)
            if match and match[1] != "cbgen.h" and not os.path.exists(os.path.join(os.path.dirname(path), match[1])):
                problem(f"{path}:{number}", f"includes '{match[1]}': adapters include cbgen.h and their own files")


def check_header_cycles():
    """Headers that include each other cannot be read one after the other."""
    includes = {path: [name for _, name in includes_of(path)] for path in files(*FOLDERS) if path.endswith(".h")}
    done, way = set(), []

    def visit(path):
        if path in way:
            problem(path, "includes itself: " + " → ".join(way[way.index(path):] + [path]))
        if path in done or path not in includes:
            return
        done.add(path)
        way.append(path)
        for name in includes[path]:
            visit(name)
        way.pop()

    for path in sorted(includes):
        visit(path)


def check_layouts():
    """A layout is a folder and a template; it includes no other layout's files."""
    for path in files("analysis/layouts"):
        own = path.split("/")[2]
        if not os.path.exists(f"templates/{own}.cu.in"):
            problem(path, f"the layout has no templates/{own}.cu.in")
        for number, line in enumerate(lines_of(path), 1):
            match = re.match(r'#include "analysis/layouts/(\w+)/', line)
            if match and match[1] != own:
                problem(f"{path}:{number}", f"layout {own} includes a file of layout {match[1]}")


def check_prelude(path):
    """A section defines its name, and so does the emulation's prelude, but for what only compilers of CUDA ask for."""
    text = "\n".join(lines_of(path))
    emulated = "\n".join(lines_of("runtime/verify/emulation/prelude.h"))
    for name, body in re.findall(r"^@section (\w+)\n(.*?)^@end", text, re.S | re.M):
        if not re.search(rf"(?:using|define|struct(?: alignas\(\d+\))?|constexpr \w+|CBGEN_DEVICE [\w<>, *]+?|int) \*?{name}\b", body):
            problem(path, f"section '{name}' does not define its name")
        elsewhere = name in ("CBGEN_NUMBER", "blocks_that_fit") or re.fullmatch(r"u?int\d+_t", name)  # <stdint.h>
        if not elsewhere and not re.search(rf"\b{name}\b", emulated):
            problem(path, f"the emulation has no '{name}'")


def check_arithmetic():
    """Sums are added to, and multiplied, by the named functions of vectors.cu.in alone (add, product, add_product)."""
    sums = r"(?:sum|sums|open|partial|products?|shared|kept|xs?|values|coefficient)(?:\.at)?(?:\[[^;=]*\])*"
    bare = re.compile(rf"\b{sums} [-+*]= |\bload_x\([^()]*\) [-+*] |[-+*] (?:load_x|load_l2|value)\(")
    for path in files("templates"):
        layout = os.path.basename(path).split(".")[0]
        if not os.path.isdir(f"analysis/layouts/{layout}") and layout not in ("vectors", "region", "kernel", "shared"):
            continue
        for number, line in enumerate(lines_of(path), 1):
            if not line.startswith("@#") and bare.search(line.split("//")[0]):
                problem(f"{path}:{number}", "sums are added and multiplied by add, product and add_product")


def check_sections():
    """A section that no C file names could never be in a text; those of the prelude are named by the texts that use them."""
    named = {name for path in files("analysis", "codegen", "runtime/operator", "tool") if path.endswith((".c", ".h"))
             for name in re.findall(r'"(\w+)"', "".join(lines_of(path)))}
    for path in files("templates"):
        if path == "templates/prelude.cu.in":
            check_prelude(path)
            continue
        for number, line in enumerate(lines_of(path), 1):
            if line.startswith("@#"):
                continue
            for name in re.findall(r"@(?:section|if) !?(\w+)", line):
                if name not in named:
                    problem(f"{path}:{number}", f"no C file names the section '{name}'")


def initialisers(text):
    """Each "= {…}" or "= […]" of a source, with the number of its line."""
    for match in re.finditer(r"=\s*([{\[])", text):
        depth = 0
        for end in range(match.start(1), len(text)):
            depth += (text[end] in "{[") - (text[end] in "}]")
            if not depth:
                yield text.count("\n", 0, match.start()) + 1, text[match.start(1):end + 1]
                break


def check_lists_of_layouts():
    """What tests all layouts walks their tables (tests/recipes.h): a list of names would be without the next layout. The
    tests of one layout may name the recipes that it shares a plan with."""
    layouts = "|".join(sorted(os.listdir("analysis/layouts")))
    recipes = re.findall(r"^  ([a-z-]+) ", run("help", "recipes").stdout, re.M)
    for path in files("tests"):
        if not path.endswith(CODE + (".py",)) or re.match(rf"tests/(data/|test_({layouts})(_\w+)?\.c)", path):
            continue
        for line, text in initialisers("\n".join(lines_of(path))):
            named = {name for name in recipes if name != "auto" and re.search(rf'"{name}"|recipe={name}\b(?!-)', text)}
            if len(named) > MOST_NAMED:
                problem(f"{path}:{line}", f"a list names the recipes {', '.join(sorted(named))}: walk the layouts' tables")


def check_first_lines():
    for path in files(*FOLDERS, "adapters", "include", "tests", "cmake", "scripts", ".ci", "examples", "python"):
        script = os.access(path, os.X_OK)
        if not (path.endswith(CODE + (".py", ".sh", ".cmake", "CMakeLists.txt")) or script):
            continue
        if path.startswith("tests/data/"):
            continue
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines_of(path)[:2]):
            problem(f"{path}:1", "the SPDX line is missing")


def check_lengths():
    for path in files(*FOLDERS, "adapters", "include", "tests", "scripts", "examples", "python"):
        if not path.endswith(CODE + (".py", ".sh")):
            continue
        lines = lines_of(path)
        if len(lines) > MOST_LINES and not any("Generated by" in line for line in lines[:8]):
            problem(path, f"{len(lines)} lines: split it")
        for number, line in enumerate(lines, 1):
            # a long string is not broken for its length alone
            if len(line) > MOST_COLUMNS + (20 if '"' in line else 0):
                problem(f"{path}:{number}", f"{len(line)} columns")


FUNCTIONS = """
// int no(void) {
enum { ONE };
struct pair { int a; };
static const char *const words[] = {"f(int) {", "}"};
int first(int a) { return a; }
__attribute__((noinline)) static struct pair *
second(int a, int (*f)(int)) {
  if (f(a)) { /* } */
    a++;
  }
  return "}{" + a;
}
extern "C" {
void third(void) __attribute__((noreturn));
void third(void) {

}
}
"""


def check_functions():
    """Short functions, everywhere; the program that counts them is asked about known ones first."""
    counted = function_lengths.functions_of(FUNCTIONS)
    if counted != [("first", 6, 1), ("second", 8, 4), ("third", 16, 1)]:
        problem("tests/function_lengths.py", f"counts wrongly: {counted}")
    for folder in FOLDERS:
        for what in function_lengths.broken_rules(function_lengths.functions_in(folder)):
            problem(folder, what)
    for folder in ("adapters", "tests", "bench", "examples"):
        for what in function_lengths.too_long(function_lengths.functions_in(folder)):
            problem(folder, what)


def check_citations():
    """Text names no file and no document that is not in the repository; NAME stands for a name. A document may name
    the files that it tells to write."""
    roots = FOLDERS + ["adapters", "templates", "tests", "docs", "include", "bench", "examples", "scripts", "python", "cmake"]
    path_of = re.compile(r"(?<![\w./$}*%%<>-])((?:%s)/[\w./-]*\.(?:md|c|h|cpp|cu\.in|py|txt|sh|cmake))(?![\w.]*\w)"
                         % "|".join(roots))
    documents = {os.path.basename(path) for path in files("docs", "bench") if path.endswith(".md")} | set(os.listdir())
    for path in [*files(*FOLDERS, "adapters", "templates", "docs", "include", "cmake", "tests/mutations"), "CMakeLists.txt",
                 *(name for name in os.listdir() if name.endswith(".md"))]:
        if not path.endswith(CODE + (".md", ".1", ".in", ".cmake", ".txt", ".bash")):
            continue
        made = set(re.findall(r"^```\w+ file=(\S+)$", "\n".join(lines_of(path)), re.M))  # by who follows the document
        for number, line in enumerate(lines_of(path), 1):
            named = [name for name in path_of.findall(line) if not re.search("[A-Z]{4}", name.rsplit("/", 1)[1])]
            missing = [name for name in named if name not in made and not os.path.exists(name)]
            missing += [name for name in re.findall(r"\b[A-Z-]{3,}\.md\b", line) if name not in documents]
            for name in missing:
                problem(f"{path}:{number}", f"'{name}' is not in the repository")
    for path in [*files("docs", "adapters", "bench", "examples", "python", "tests/mutations"), *os.listdir()]:
        if path.endswith(".md"):
            for target in re.findall(r"\]\(([\w./-]+)\)", "\n".join(lines_of(path))):
                if not os.path.exists(os.path.join(os.path.dirname(path), target)):
                    problem(path, f"links to '{target}', which does not exist")


def check_no_printing():
    banned = re.compile(r"(?<![\w.>])(printf|puts|putchar|perror|exit|abort|_exit)\s*\(")
    for path in files(*FOLDERS[:-1]):
        # the emulation is a program of its own: it runs in a child process; what libclang reads is never executed
        if not path.endswith((".c", ".h")) or path.startswith(("runtime/verify/emulation/", "runtime/verify/clang/cuda.h")):
            continue
        inside = False
        for number, line in enumerate(lines_of(path), 1):
            code = re.sub(r'"(\\.|[^"\\])*"|//.*|/\*.*?\*/', "", line)
            if inside:
                if "*/" not in code:
                    continue
                code, inside = code.split("*/", 1)[1], False
            if "/*" in code:
                code, inside = code.split("/*", 1)[0], True
            match = banned.search(code)
            # a forked child leaves with _exit: nothing of the parent's may be flushed twice
            if match and not (match[1] == "_exit" and path == "runtime/verify/process.c"):
                problem(f"{path}:{number}", f"'{match[1]}' in the library")


def check_environment():
    """A set-user-ID program must not believe its environment, so all of it is read in one place."""
    for path in files(*FOLDERS):
        if not path.endswith((".c", ".h")) or path.startswith("runtime/verify/emulation/") or path == "base/environment.c":
            continue
        for number, line in enumerate(lines_of(path), 1):
            if re.search(r"\b(secure_)?getenv\s*\(", line):
                problem(f"{path}:{number}", "variables are read by cb_environment (base/environment.h)")


def verbs_of(overview):
    return re.findall(r"^  ([a-z]+) ", overview.split("\n\n  help", 1)[0], re.M)


def options_of(text):
    return set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", text, re.M))


def check_help(verbs):
    for topic in [[]] + [[verb] for verb in verbs]:
        name = " ".join(["cbgen help"] + topic)
        text = run("help", *topic).stdout
        if len(text.splitlines()) > SCREEN_LINES:
            problem(name, f"{len(text.splitlines())} lines do not fit a screen")
        for line in text.splitlines():
            if len(line) > SCREEN_COLUMNS:
                problem(name, f"{len(line)} columns: {line}")
        if "Example: cbgen" not in text:
            problem(name, "no example")
    for verb in verbs:
        if run(verb, "--help").stdout != run("help", verb).stdout:
            problem(f"cbgen {verb} --help", "differs from 'cbgen help'")


def check_manual(verbs):
    path = "docs/cbgen.1"
    text = "\n".join(lines_of(path))
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True, check=False)
    if lint.stdout or lint.returncode:
        problem(path, "mandoc: " + lint.stdout.strip())
    options = options_of(run("help", "options").stdout)
    for verb in verbs:
        options |= options_of(run("help", verb).stdout)
        if f".It Nm {verb}" not in text and f".It Cm {verb}" not in text:
            problem(path, f"verb '{verb}' is missing")
    described = {name.replace("\\-", "-") for name in re.findall(r"Fl \\?-\\?-?([a-z0-9\\-]+)", text)}
    described = {name.lstrip("-") for name in described}
    for name in sorted(options - described):
        problem(path, f"option '--{name}' is missing")
    analysis = text.split(".Ss Options of the analysis", 1)[-1].split("\n.Sh", 1)[0]
    order = re.findall(r"^(?:\.Ss Layout |\.It Fl -)([a-z0-9-]+)", analysis, re.M)
    helped = re.findall(r"^(?:  --)?([a-z0-9-]+)[:=]", run("help", "options").stdout, re.M)
    if order != helped:
        problem(path, "options of the analysis stand in another order, or under other layouts, than in 'cbgen help options'")
    for name in sorted(described - options - {"version", "o", "v", "q", "h"}):
        problem(path, f"option '--{name}' does not exist")
    for line in run("help", "exit-codes").stdout.splitlines():
        code = line.split()[0]
        if f".It {code}" not in text:
            problem(path, f"exit code {code} is missing")
    check_variables(path, text.split("\n.Sh ENVIRONMENT\n", 1)[-1].split("\n.Sh", 1)[0])


def check_variables(path, environment):
    """The manual has the variables that the library, the tool and the Python package read, and no others of ours."""
    read = set()
    for source in files("base", "runtime", "tool", "frontend", "codegen", "analysis", "python/src"):
        if source.endswith((".c", ".h", ".py")):
            read |= set(re.findall(r'"(CBGEN_[A-Z_]+)"', "\n".join(lines_of(source))))
    described = set(re.findall(r"CBGEN_[A-Z_]+", " ".join(re.findall(r"^\.It Ev (.*)", environment, re.M))))
    for name in sorted(read - described):
        problem(path, f"the variable {name} is missing")
    for name in sorted(described - read):
        problem(path, f"nothing reads the variable {name}")


def check_readme(verbs):
    text = "\n".join(lines_of("README.md"))
    for command in sorted(set(re.findall(r"(?<![\w/])\./(scripts/[\w.-]+|\.ci/run)", text))):
        if not os.access(command, os.X_OK):
            problem("README.md", f"'{command}' cannot be executed")
    for verb in verbs:
        if f"cbgen {verb}" not in text:
            problem("README.md", f"'cbgen {verb}' is not mentioned")
    for path in re.findall(r"`((?:%s)/[\w./-]*)`" % "|".join(FOLDERS), text):
        if not os.path.exists(path):
            problem("README.md", f"'{path}' does not exist")


def check_architectures():
    """The table stands in the manual as the tool prints it; other text that lists architectures names those of it."""
    table = run("help", "architectures").stdout.rstrip("\n")
    if table not in "\n".join(lines_of("docs/cbgen.1")):
        problem("docs/cbgen.1", "the table is not that of 'cbgen help architectures'")
    for path in ("README.md", "docs/cbgen.1", "docs/library.md", "include/cbgen.h", "tool/completion/cbgen.bash"):
        for name in sorted(set(re.findall(r"\bsm_\d+", "\n".join(lines_of(path)))) - set(re.findall(r"sm_\d+", table))):
            problem(path, f"architecture '{name}' is not in the table")


VERBS = verbs_of(run("help").stdout)
if len(VERBS) < 5:
    problem("cbgen help", f"lists only these verbs: {VERBS}")
check_includes()
check_adapters()
check_header_cycles()
check_sections()
check_arithmetic()
check_layouts()
check_lists_of_layouts()
check_first_lines()
check_lengths()
check_functions()
check_citations()
check_no_printing()
check_environment()
check_help(VERBS)
check_manual(VERBS)
check_architectures()
check_readme(VERBS)
print("\n".join(problems) or "no violations")
sys.exit(1 if problems else 0)
