# SPDX-License-Identifier: Apache-2.0
"""What is known of each matrix, on disk: one file a result, so that an interrupted call goes on where it was.

    store.analysis(file, options)             `cbgen analyze --json`
    store.planned(files, recipes, options)    `cbgen analyze --sweep=recipe=…`, by file and recipe: no GPU
    store.measured(files, recipes, options)   `cbgen bench --sweep=recipe=…` likewise, on the GPU
    store.compared(files, options)            `cbgen bench`: the baselines beside recipe auto
    store.hit_rates(file, options, kernels)   Nsight Compute over `cbgen run` or `cbgen bench`, if `store.ncu`
    store.example(program, matrix)            a program of examples/

A result is a dictionary; one that could not be had is {"reason": …}. What a machine lacks (a GPU, Nsight Compute), and what
a time limit cut off, is not written down, so that a later call may find it.
"""
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

USAGE, MISSING = 2, 5  # exit statuses; missing: something that the machine lacks
LASTING = {0, 1, 2, 3}  # after these the same call would say the same
HIT_RATES = {"l1": "l1tex__t_sector_hit_rate.pct", "l2": "lts__t_request_hit_rate.pct"}


class Store:
    def __init__(self, folder, tool, repeat=None, seconds=None, plugins=()):
        self.folder, self.tool, self.seconds = folder, tool, seconds
        self.bench = ["bench", "-q", "--json"] + ([f"--repeat={repeat}"] if repeat else [])
        self.plugins = [f"--baseline={plugin}" for plugin in plugins]
        self.no_gpu = None  # why there is none, once that is known
        self.programs = None  # folder of the built examples
        self.ncu = False  # whether Nsight Compute may be run
        self.remarks = {}  # about plug-ins; an ordered set
        self.calls = 0
        self.version = self.run("--version").stdout.strip()
        self.recipes = set(re.findall(r"^  ([a-z][a-z0-9-]*) ", self.run("help", "recipes").stdout, re.M))
        self.types = self.run("help", "options").stdout

    def run(self, *arguments, **more):
        return subprocess.run([self.tool, *arguments], capture_output=True, text=True, check=False, **more)

    # ---- files

    def path(self, kind, file, options):
        digest = hashlib.sha256("\0".join([file, *options]).encode()).hexdigest()[:16]
        name = re.sub(r"[^\w.=-]+", "_", os.path.basename(file))[:60]
        return os.path.join(self.folder, "results", kind, f"{name}-{digest}.json")

    def read(self, kind, file, options):
        try:
            with open(self.path(kind, file, options), encoding="utf-8") as stored:
                return json.load(stored)["result"]
        except (OSError, ValueError, KeyError):
            return None

    def write(self, kind, file, options, result):
        path = self.path(kind, file, options)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), delete=False, encoding="utf-8") as stored:
            json.dump({"file": file, "options": options, "version": self.version, "result": result}, stored)
        os.replace(stored.name, path)
        return result

    # ---- without a GPU

    def analysis(self, file, *options):
        options = list(options)
        known = self.read("analysis", file, options)
        if known:
            return known
        self.calls += 1
        said = self.run("analyze", "-q", "--json", *options, file)
        if said.returncode not in LASTING:
            return {"reason": last_line(said.stderr)}
        return self.write("analysis", file, options, json.loads(said.stdout) if said.returncode == 0
                          else {"reason": last_line(said.stderr)})

    def planned(self, files, recipes, *options):
        """{file: {recipe: row}}; a recipe that this tool does not have is a row that says so."""
        there = [recipe for recipe in recipes if recipe in self.recipes]
        options = [f"--sweep=recipe={','.join(there)}", *options]
        return {file: self.complete(self.planned_one(file, options) if there else {}, recipes) for file in files}

    def planned_one(self, file, options):
        known = self.read("planned", file, options)
        if known:
            return known
        self.calls += 1
        result = parsed(self.run("analyze", "-q", "--json", *options, file).stdout)
        return self.write("planned", file, options, result) if result else {"reason": "could not be analysed"}

    def complete(self, result, recipes):
        rows = {row["value"]: row for row in result.get("values", [])}
        for recipe in recipes:
            if recipe not in self.recipes:
                rows[recipe] = {"reason": f"this tool has no recipe '{recipe}'"}
            rows.setdefault(recipe, {"reason": result.get("reason", "not measured")})
        return rows

    # ---- on the GPU

    def measured(self, files, recipes, *options):
        there = [recipe for recipe in recipes if recipe in self.recipes]
        options = [f"--sweep=recipe={','.join(there)}", *options]
        results = self.batch("measured", files, options, [*self.bench, *options]) if there else {}
        return {file: self.complete(results.get(file, {}), recipes) for file in files}

    def compared(self, files, *options):
        options = [*self.plugins, *options]
        return self.batch("compared", files, options, [*self.bench, *options])

    def batch(self, kind, files, options, arguments):
        """All matrices of which nothing is known in one process, whose lines are stored as they come."""
        results = {file: self.read(kind, file, options) for file in files}
        wanted = [file for file, result in results.items() if not result]
        if wanted and not self.no_gpu:
            results.update(self.measure(kind, wanted, options, arguments))
        for result in results.values():
            self.note_plugins(result)
        return {file: result or {"reason": "no GPU" if self.no_gpu else "not measured"} for file, result in results.items()}

    def note_plugins(self, result):
        """Why plug-ins, which stand behind all other baselines, had no part in it."""
        rows = (result or {}).get("baselines", [])
        for row in rows[len(rows) - len(self.plugins):]:
            if self.plugins and not row["applies"]:
                self.remarks.setdefault(f"{row['name']}: {row['reason']}")

    def measure(self, kind, files, options, arguments):
        results = {}
        self.calls += 1
        with tempfile.TemporaryDirectory() as work:
            names = os.path.join(work, "list")
            with open(names, "w", encoding="utf-8") as written:
                written.writelines(f"{file}\n" for file in files)
            limit = ["timeout", "-k", "5", str(self.seconds)] if self.seconds else []
            with open(os.path.join(work, "said"), "w+", encoding="utf-8") as said:
                with subprocess.Popen([*limit, self.tool, *arguments, "@" + names], stdout=subprocess.PIPE, stderr=said,
                                      text=True) as process:
                    for line in process.stdout:
                        result = parsed(line)
                        if result:
                            results[result["file"]] = self.write(kind, result["file"], options, result)
                said.seek(0)
                text = said.read()
        if process.returncode == MISSING and not results:
            self.no_gpu = last_line(text)
        for file in files:
            failure = re.search(rf"^cbgen: '{re.escape(file)}': (.*)$", text, re.M)
            if file not in results and failure:
                results[file] = {"reason": failure[1]}
        if process.returncode == USAGE and not results:  # an option that this tool does not have
            results = {file: {"reason": last_line(text)} for file in files}
        left = [file for file in files if file not in results]
        if left and not self.no_gpu:
            print(f"{kind}: {len(left)} of {len(files)} matrices are left (exit status {process.returncode}): "
                  f"{last_line(text)}", file=sys.stderr)
        return results

    def example(self, program, matrix):
        """{contender: {"setup_ms": …, "product_us": …, "iteration_us": …}}, of a program of examples/."""
        known = self.read("examples", matrix, [program])
        path = os.path.join(self.programs or "", program)
        if known or self.no_gpu:
            return known or {"reason": "no GPU"}
        if not os.access(path, os.X_OK):
            return {"reason": f"'{path}' is not built (bench/gpu.sh examples builds it)"}
        self.calls += 1
        try:
            said = subprocess.run([path, matrix], capture_output=True, text=True, check=False, timeout=self.seconds or 120)
        except subprocess.TimeoutExpired:
            return {"reason": "the time limit cut it off"}
        rows = re.findall(r"^\| (cuSPARSE[^|]*|cbgen) \| ([\d.]+) \| ([\d.]+) \| \d+ \| ([\d.]+) \|", said.stdout, re.M)
        if not rows:
            return {"reason": last_line(said.stderr) or f"exit status {said.returncode}"}
        return self.write("examples", matrix, [program],
                          {name: {"setup_ms": float(setup), "product_us": float(product), "iteration_us": float(iteration)}
                           for name, setup, product, iteration in rows})

    def hit_rates(self, file, options, kernels):
        """Hit rates in percent of the kernels whose names match, weighted by nothing: the mean of what is launched."""
        key = [*options, kernels]
        known = self.read("hit_rates", file, key)
        if known or self.no_gpu or not self.ncu:
            return known or {"reason": "no GPU" if self.no_gpu else "left out without --ncu"}
        command = ["ncu", "--csv", "--clock-control", "none", "--kernel-name", f"regex:{kernels}", "--launch-count", "4",
                   "--metrics", ",".join(HIT_RATES.values()), self.tool, *options, file]
        try:
            said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120,
                                  env={**os.environ, "CBGEN_DEBUG": "1"})
        except FileNotFoundError:
            return {"reason": "Nsight Compute (ncu) is not installed"}
        except subprocess.TimeoutExpired:
            return {"reason": "Nsight Compute took over 120 s"}
        self.calls += 1
        rates = rates_of(said.stdout)
        if not rates:
            return {"reason": last_line(said.stderr) or last_line(said.stdout) or "Nsight Compute saw no such kernel"}
        return self.write("hit_rates", file, key, rates)


def rates_of(text):
    lines = [line for line in text.splitlines() if line.startswith('"')]
    found = {}
    for row in csv.DictReader(lines):
        for name, metric in HIT_RATES.items():
            if row.get("Metric Name") == metric:
                found.setdefault(name, []).append(float(row["Metric Value"].replace(",", "")))
    return {name: sum(values) / len(values) for name, values in found.items()}


def parsed(line):
    """A line of results; None: one that was cut off, or none."""
    try:
        result = json.loads(line)
    except ValueError:
        return None
    return result if isinstance(result, dict) and "file" in result else None


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1].removeprefix("cbgen: ") if lines else ""
