#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants small bugs, one at a time, and asks whether a test catches them.

    tests/mutations/mutate.py [--build DIR] [--sample N [--seed N]] [--only TEXT] [--jobs N] [--check]; --help

The bugs stand in tests/mutations/*.txt, as README.md there describes. One build holds all of them: a copy of the source
tree in which an expression is `(cb_mutant == N ? new : old)`; the environment variable CBGEN_MUTANT chooses one.
Templates and the emulation are replaced at run time, and for a bug within a literal, such as the text of a method, the
build is brought up to date. For each bug the tests of its file run, the fastest first, until
one fails; a test that takes ten times as long as without a bug, or memory without end, has failed, too.

Prints what caught each bug and the score; exits 1 when a bug survives that no line of the list explains, or when one
is caught that was said to survive.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from operand import what_splits

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EMBEDDED = ("templates/", "runtime/verify/emulation/")
LEFT_OUT = {".git", "build"}
MOST_BYTES = 4 << 30  # of memory, in one test
SKIPPED_EXIT = 77  # of a test that left a part out: see tests/harness.py
# Kernels run without sanitizers, which takes a third of the time, unless a test asks for them.
FASTER = ("runtime/verify/host.c", ".sanitize = 1, .optimize = 1, .debug = 1",
          '.sanitize = getenv("CBGEN_MUTANT_SANITIZE") != 0, .debug = getenv("CBGEN_MUTANT_SANITIZE") != 0')


class Mutation:
    def __init__(self, path, tests, title):
        self.path, self.tests, self.title = path, tests, title
        self.scope, self.survives = None, None
        self.in_literal = False
        self.old, self.new = [], []
        self.number = 0

    def __str__(self):
        return f"{self.path}: {self.title}"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# ---- the list


def read_list(path):
    """The mutations of one file of the list; ends the program at what cannot be read."""
    mutations, where, tests, current = [], None, [], None
    for number, line in enumerate(read(path).splitlines(), 1):
        section = re.fullmatch(r"\[(\S+)\]\s+(\S.*)", line)
        if section:
            where, tests, current = section[1], section[2].split(), None
        elif not line.strip() or line.startswith("#"):
            current = None if not line.strip() else current
        elif line[:2] in ("- ", "+ ", "@ ", "= ") or line in "-+":
            if current is None:
                sys.exit(f"{path}:{number}: a line of no mutation: its title is missing")
            add_line(current, line[0], line[2:])
        elif where is None:
            sys.exit(f"{path}:{number}: a mutation before the first [FILE] TEST…")
        else:
            current = Mutation(where, tests, line)
            mutations.append(current)
    return mutations


def add_line(mutation, mark, text):
    if mark == "-":
        mutation.old.append(text)
    elif mark == "+":
        mutation.new.append(text)
    elif mark == "@":
        mutation.scope = text
    else:
        mutation.survives = (mutation.survives + " " if mutation.survives else "") + text


def read_lists():
    mutations = []
    for name in sorted(os.listdir(HERE)):
        if name.endswith(".txt"):
            mutations += read_list(os.path.join(HERE, name))
    for number, mutation in enumerate(mutations, 1):
        mutation.number = number
    return mutations


def spans_of_section(text, name):
    """Where `@section NAME` stands in a template, from each of these lines to its own @else or @end."""
    spans, open_ones = [], []
    for line in re.finditer(r"^ *@(section|define|else|end)\b *([^@\n]*)$", text, re.M):
        if line[1] in ("section", "define"):
            open_ones.append((line[2], line.end()))
            continue
        opened, start = open_ones.pop() if open_ones else (None, 0)
        if opened == name:
            spans.append((start, line.start()))
        if line[1] == "else":
            open_ones.append((None, line.end()))
    return spans


def span_of_function(text, function):
    """Where the definition of a function stands: from its line at the margin to the next closing brace there."""
    found = [m.start() for m in re.finditer(rf"^(?!#|//| |\t|\}}).*\b{re.escape(function)}\(", text, re.M)]
    found = [start for start in found if text[start:].split("{", 1)[0].count(";") == 0]
    if len(found) != 1:
        return []
    end = text.find("\n}", found[0])
    return [(found[0], end if end > 0 else len(text))]


def spans_of(text, scope):
    """The parts of a file that an `@` line names: a function, or the sections of a name."""
    if not scope:
        return [(0, len(text))]
    kind, _, name = scope.partition(" ")
    return spans_of_section(text, name) if kind == "section" else span_of_function(text, scope)


def place_of(text, mutation):
    """The offset of the original text, or a message."""
    old = "\n".join(mutation.old)
    spans = spans_of(text, mutation.scope)
    if not spans:
        return f"no definition of '{mutation.scope}', or several"
    places = {text.index(old, *span) for span in spans if old and old in text[slice(*span)]}
    count = max([len(places)] + [text.count(old, *span) for span in spans if old])
    if count != 1:
        return f"'{old}' occurs {count} times" + (f" in '{mutation.scope}'" if mutation.scope else "")
    return places.pop()


def is_in_literal(mutation):
    """Whether the text stands in a string literal of C, where no expression can."""
    if not mutation.path.endswith((".c", ".h")) or mutation.path.startswith(EMBEDDED):
        return False
    text = read(os.path.join(ROOT, mutation.path))
    place = place_of(text, mutation)
    before = re.sub(r"\\.|'\"'", "", text[text.rfind("\n", 0, place) + 1 : place])
    return before.count('"') % 2 == 1


def is_statement(text):
    return text.rstrip().endswith((";", "}"))


def is_expression(mutation):
    """Whether the text is put into parentheses as C."""
    return (mutation.path.endswith((".c", ".h")) and not mutation.path.startswith(EMBEDDED)
            and not is_statement("\n".join(mutation.old)) and not is_in_literal(mutation))


def check_places(mutations):
    """Ends the program when a mutation does not name exactly one place, or one that is no operand."""
    problems = []
    for mutation in mutations:
        text, old = read(os.path.join(ROOT, mutation.path)), "\n".join(mutation.old)
        place = place_of(text, mutation)
        if isinstance(place, str):
            problems.append(f"{mutation}: {place}")
        elif mutation.old == mutation.new:
            problems.append(f"{mutation}: changes nothing")
        elif is_expression(mutation) and (beside := what_splits(text, place, old)):
            problems.append(f"{mutation}: '{beside}' beside '{old}' takes a part of it")
    if problems:
        sys.exit("\n".join(problems))


# ---- the tree


# what is not linked with the library asks the environment itself
ALONE = ("#include <stdlib.h>\nstatic int cb_mutant; __attribute__((constructor)) static void cb_choose_mutant(void) "
         "{ const char *chosen = getenv(\"CBGEN_MUTANT\"); cb_mutant = chosen ? atoi(chosen) : 0; }\n")
IN_PYTHON = '__import__("os").environ.get("CBGEN_MUTANT") =='


def switched_in_python(mutations):
    old, cases = "\n".join(mutations[0].old), [(m.number, "\n".join(m.new)) for m in mutations]
    return "(" + "".join(f'({new}) if {IN_PYTHON} "{n}" else ' for n, new in cases) + f"({old}\n))"  # it may end in a comment


def switched(mutations):
    """C in which the variable decides between the old text of a place and the new ones."""
    if mutations[0].path.endswith(".py"):
        return switched_in_python(mutations)
    old = "\n".join(mutations[0].old)
    cases = [(mutation.number, "\n".join(mutation.new)) for mutation in mutations]
    if is_statement(old):
        chosen = " else ".join(f"if (cb_mutant == {n}) {{ {new} }}" for n, new in cases)
        return f"{{ {chosen} else {{ {old} }} }}"
    return "(" + "".join(f"cb_mutant == {n} ? ({new}) : " for n, new in cases) + f"({old}))"


def mutated_source(path, mutations):
    """The file with all its mutations; those that overlap without being of the same text are an error."""
    text = read(os.path.join(ROOT, path))
    places = {}
    for mutation in mutations:
        places.setdefault((place_of(text, mutation), "\n".join(mutation.old)), []).append(mutation)
    after = len(text)
    for (place, old), own in sorted(places.items(), reverse=True):
        if place + len(old) > after:
            sys.exit(f"{own[0]}: overlaps with another one")
        text, after = text[:place] + switched(own) + text[place + len(old):], place
    if path.startswith(("python/", "adapters/")):
        return text if path.endswith(".py") else ALONE + text
    # common: whatever is linked without embedded.c, such as a stand-in of a library, has one of its own, which is 0
    return "__attribute__((common)) int cb_mutant; " + text


def write_if_changed(path, text):
    if os.path.islink(path):
        os.remove(path)
    elif os.path.exists(path) and read(path) == text:
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def link_tree(tree, changed):
    """Every file of the source tree as a link, but for those that change. What is gone there goes here, too. A file that
    was changed in an earlier run is written anew, so that it is compiled again: a link would look older than that."""
    for folder, _, files in os.walk(tree):
        for path in (os.path.join(folder, name) for name in files):
            if not os.path.exists(os.path.join(ROOT, os.path.relpath(path, tree))):
                os.remove(path)
    for folder, names, files in os.walk(ROOT):
        relative = os.path.relpath(folder, ROOT)
        names[:] = [n for n in names if n not in LEFT_OUT and os.path.join(folder, n) != os.path.dirname(tree)]
        os.makedirs(os.path.join(tree, relative), exist_ok=True)
        for name in files:
            path = os.path.normpath(os.path.join(relative, name))
            link = os.path.join(tree, path)
            if path in changed or os.path.islink(link):
                continue
            if os.path.exists(link):
                write_if_changed(link, read(os.path.join(folder, name)))
            else:
                os.symlink(os.path.join(folder, name), link)


def switched_by_file(mutations):
    """Those that one build has all of: {path: mutations}."""
    by_file = {}
    for mutation in mutations:
        if not mutation.path.startswith(EMBEDDED) and not mutation.in_literal:
            by_file.setdefault(mutation.path, []).append(mutation)
    return by_file


def write_tree(build, mutations):
    by_file = switched_by_file(mutations)
    tree = os.path.join(build, "tree")
    link_tree(tree, set(by_file) | {"base/embedded.c", FASTER[0]})
    for path, own in by_file.items():
        write_if_changed(os.path.join(tree, path), mutated_source(path, own))
    write_if_changed(os.path.join(tree, "base/embedded.c"), read(os.path.join(HERE, "embedded.c")))
    path, slow, fast = FASTER
    text = read(os.path.join(tree if path in by_file else ROOT, path))
    if text.count(slow) != 1:
        sys.exit(f"{path}: '{slow}' occurs {text.count(slow)} times")
    write_if_changed(os.path.join(tree, path), text.replace(slow, fast))
    return tree


def write_templates(build, mutations):
    shutil.rmtree(os.path.join(build, "embedded"), ignore_errors=True)
    for mutation in mutations:
        if not mutation.path.startswith(EMBEDDED):
            continue
        text = read(os.path.join(ROOT, mutation.path))
        place, old = place_of(text, mutation), "\n".join(mutation.old)
        path = os.path.join(build, "embedded", str(mutation.number), mutation.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text[:place] + "\n".join(mutation.new) + text[place + len(old):])


def planted_alone(mutation, tree):
    """The file's path in the tree, and its text there with this mutation, which all runs of it have."""
    path = os.path.join(tree, mutation.path)
    text = read(path)
    place, old = place_of(text, mutation), "\n".join(mutation.old)
    if isinstance(place, str):
        sys.exit(f"{mutation}: beside the other mutations of its file: {place}")
    return path, text[:place] + "\n".join(mutation.new) + text[place + len(old):]


def run_or_exit(command, what):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{what} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def petsc_is_there():
    """What cmake asks, too: without PETSc there is neither its plug-in nor a test of it."""
    command = shutil.which("pkg-config")
    return command and not subprocess.run([command, "--exists", "PETSc >= 3.18"], check=False).returncode


def targets_of(tests):
    """What is built for tests: the program of the name, or what scripts drive."""
    names = {split_test(test)[0] for test in tests}
    in_petsc = {name for name in names if name.startswith("petsc_")}
    names -= in_petsc
    programs = {name for name in names if os.path.exists(os.path.join(ROOT, "tests", f"{name}.c"))}
    in_python = {name for name in names if name.startswith("test_python")}
    targets = programs | ({"cbgen_tool", "cache_put", "fake_cusparse", "choice"} if names - programs - in_python else set())
    targets |= {"cbgen", "cbgen_python_calls", "fake_cuda"} if in_python else set()
    return sorted(targets | ({"cbgen_petsc", "petsc_check", "fake_cuda"} if in_petsc and petsc_is_there() else set()))


def build_tree(build, tree, targets, options):
    """Returns how each test is run, as CTest has it."""
    place, flags = os.path.join(build, "cmake"), f"-O{options.optimize} -w"
    definitions = {"CBGEN_SANITIZE": "OFF", "CBGEN_WERROR": "OFF", "CMAKE_BUILD_TYPE": "None", "CMAKE_C_FLAGS": flags,
                   "CMAKE_CXX_FLAGS": flags, "CMAKE_C_COMPILER": options.cc, "CMAKE_CXX_COMPILER": options.cxx,
                   "CBGEN_TEST_PYTHON": options.python}
    defined = [f"-D{name}={value}" for name, value in definitions.items() if value]
    run_or_exit(["cmake", *defined, "-S", tree, "-B", place], "configuring")
    run_or_exit(["cmake", "--build", place, "-j", str(os.cpu_count()), "--target", *targets], "building")
    shown = run_or_exit(["ctest", "--test-dir", place, "--show-only=json-v1"], "listing tests")
    return {test["name"]: test for test in json.loads(shown)["tests"]}


# ---- running


def split_test(name):
    """`NAME?VARIABLE=VALUE&…` runs a test with variables set."""
    name, _, settings = name.partition("?")
    return name, dict(setting.split("=", 1) for setting in settings.split("&") if setting)


def properties_of(test):
    return {p["name"]: p["value"] for p in test.get("properties", [])}


def stop_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def resident_bytes(process):
    try:
        return int(read(f"/proc/{process.pid}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


class Watch(threading.Thread):
    """Ends a test that takes too long, or memory that others need."""

    def __init__(self, process, limit):
        super().__init__(daemon=True)
        self.process, self.deadline = process, time.monotonic() + limit
        self.ended, self.reason = threading.Event(), None
        self.start()

    def run(self):
        while not self.ended.wait(0.2) and not self.reason:
            if time.monotonic() > self.deadline:
                self.reason = "takes too long"
            elif resident_bytes(self.process) > MOST_BYTES:
                self.reason = "takes too much memory"
        if self.reason:
            stop_group(self.process)


def compiler_of_kernels(build):
    """clang takes half the time of gcc; ccache knows the emulator, and what a bug leaves as it was."""
    words = [word for word in ("ccache", "clang++") if shutil.which(word)]
    if "clang++" not in words:
        return {}
    return {"CXX": " ".join(words), "CCACHE_DIR": os.path.join(build, "ccache"), "CCACHE_NOHASHDIR": "1"}


class Runner:
    def __init__(self, build, tests, is_trusting):
        """is_trusting: every test passes without any mutation, as others see to."""
        self.build, self.tests, self.is_trusting = build, tests, is_trusting
        self.seconds = {}
        self.passes, self.one_at_a_time = {}, threading.Lock()
        self.compiler = compiler_of_kernels(build)

    def environment(self, name, mutation):
        own, settings = split_test(name)
        place = os.path.join(self.build, "tmp", f"{threading.get_ident()}")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        environment = dict(os.environ)
        for pair in properties_of(self.tests[own]).get("ENVIRONMENT", []):
            key, _, value = pair.partition("=")
            environment[key] = value
        environment.update(self.compiler)
        environment.update(CBGEN_TEST_TMP=place, TMPDIR=place, HOME=place, XDG_CACHE_HOME=place,
                           CBGEN_MUTANTS=os.path.join(self.build, "embedded"), **settings)
        environment.pop("CBGEN_MUTANT", None)
        if mutation:
            embedded = mutation.path.startswith(EMBEDDED)
            environment["CBGEN_MUTANT"] = f"{mutation.number}:{mutation.path}" if embedded else str(mutation.number)
        return environment

    def run(self, name, mutation=None, limit=600):
        """Why the test failed, or None."""
        test = self.tests[split_test(name)[0]]
        process = subprocess.Popen(test["command"], cwd=properties_of(test).get("WORKING_DIRECTORY"),
                                   env=self.environment(name, mutation), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True, text=True, errors="replace")
        watch = Watch(process, limit)
        failed = None
        for line in process.stdout:
            if failed is None and re.search(r"\[ +(FAILED|ERROR) +\]", line):
                failed = "fails"
                stop_group(process)
        process.wait()
        if not failed and process.returncode not in (0, SKIPPED_EXIT):
            failed = watch.reason or f"exits with {process.returncode}"
        watch.ended.set()
        stop_group(process)
        return failed

    def measure(self, name):
        start = time.monotonic()
        failed = self.run(name)
        if failed:
            sys.exit(f"{name} {failed} without any mutation")
        self.seconds[name] = time.monotonic() - start

    def passes_alone(self, name):
        """Whether the test passes without any mutation: a test that fails in any case catches nothing."""
        with self.one_at_a_time:
            if name not in self.passes:
                self.passes[name] = self.is_trusting or name in self.seconds or not self.run(name)
                if not self.passes[name]:
                    print(f"     {name} fails without any mutation: it is not asked", flush=True)
            return self.passes[name]

    def judge(self, mutation):
        """What caught the mutation, or None."""
        for name in sorted(mutation.tests, key=lambda test: self.seconds.get(test, 0)):
            failed = self.run(name, mutation, limit=max(30, 10 * self.seconds.get(name, 10)))
            if failed and self.passes_alone(name):
                return f"{name} {failed}"
        return None


def all_tests(mutations):
    return sorted({test for mutation in mutations for test in mutation.tests})


def judge_alone(runner, mutation, tree):
    """As Runner.judge, in a build that has the mutation, and then no longer has it."""
    path, text = planted_alone(mutation, tree)
    before = read(path)
    build = ["cmake", "--build", os.path.join(runner.build, "cmake"), "-j", str(os.cpu_count()), "--target"]
    build += targets_of(mutation.tests)
    try:
        write_if_changed(path, text)
        run_or_exit(build, f"building with '{mutation}'")
        return runner.judge(mutation)
    finally:
        write_if_changed(path, before)
        run_or_exit(build, f"building without '{mutation}'")


def run_all(runner, mutations, jobs, tree):
    """Returns the numbers of those that were caught, survived as explained, and are wrong."""
    caught = explained = 0
    wrong = []
    switched_on = [m for m in mutations if not m.in_literal]
    alone = [m for m in mutations if m.in_literal]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        outcomes = itertools.chain(zip(switched_on, pool.map(runner.judge, switched_on)),
                                   ((m, judge_alone(runner, m, tree)) for m in alone))
        for mutation, by in outcomes:
            if bool(by) == bool(mutation.survives):
                wrong.append(mutation)
            caught, explained = caught + bool(by), explained + (not by and bool(mutation.survives))
            outcome = f"caught   {mutation}: {by}" if by else f"SURVIVES {mutation}: {mutation.survives or '?'}"
            print(f"{mutation.number:4} {outcome}", flush=True)
    return caught, explained, wrong


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build/mutants"), help="folder of the build")
    parser.add_argument("--sample", type=int, help="so many, drawn at random")
    parser.add_argument("--seed", type=int, help="of the sample; by default the commit's")
    parser.add_argument("--only", action="append", help="those whose file or title holds this text; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--optimize", type=int, default=1)
    parser.add_argument("--cc", help="C compiler of the build")
    parser.add_argument("--cxx", help="C++ compiler of the build")
    parser.add_argument("--python", help="Python with numpy and scipy, without which bugs of the Python package are left out")
    parser.add_argument("--unmeasured", action="store_true", help="a test runs as it is only when it caught something")
    parser.add_argument("--check", action="store_true", help="only whether each names exactly one place")
    return parser.parse_args()


def seed_of_commit():
    shown = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return int(shown.stdout[:8], 16) if not shown.returncode else 0


def chosen(mutations, options):
    if options.only:
        mutations = [m for m in mutations if any(text in str(m) for text in options.only)]
    if options.sample:
        seed = seed_of_commit() if options.seed is None else options.seed
        known = [m for m in mutations if not m.survives]
        mutations = random.Random(seed).sample(known, min(options.sample, len(known)))
        print(f"sample of seed {seed}", flush=True)
    return mutations


def main():
    options = arguments()
    listed = read_lists()
    check_places(listed)
    for mutation in listed:
        mutation.in_literal = is_in_literal(mutation)
    if options.check:
        for path, own in switched_by_file(listed).items():
            mutated_source(path, own)
        print(f"{len(listed)} mutations, each names one place")
        return 0
    mutations = chosen(listed, options)
    build = os.path.abspath(options.build)
    start = time.monotonic()
    tree = write_tree(build, listed)
    write_templates(build, mutations)
    tests = all_tests(mutations)
    # A sample is drawn by the test suite, which runs all tests as they are.
    runner = Runner(build, build_tree(build, tree, targets_of(tests), options), is_trusting=bool(options.sample))
    missing = [m for m in mutations if not {split_test(test)[0] for test in m.tests} <= runner.tests.keys()
               or m.path.startswith("adapters/petsc/") and not petsc_is_there()]
    if missing:
        print(f"left out, since this machine lacks what their tests take: {len(missing)}")
        mutations = [m for m in mutations if m not in missing]
        tests = all_tests(mutations)
    print(f"built in {time.monotonic() - start:.0f} s", flush=True)
    if not options.sample and not options.unmeasured:
        for test in tests:
            runner.measure(test)
            print(f"     {test}: {runner.seconds[test]:.1f} s", flush=True)
    caught, explained, wrong = run_all(runner, mutations, options.jobs, tree)
    share, seconds = 100 * caught / max(1, len(mutations)), time.monotonic() - start
    print(f"{caught} of {len(mutations)} caught ({share:.1f} %), {explained} survive as explained, in {seconds:.0f} s")
    for mutation in wrong:
        print(f"{'said to survive, but caught' if mutation.survives else 'survives'}: {mutation}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
