#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cbgen cache` from outside: what it prints, refuses and removes, and how it exits.

    tests/test_tool_cache.py TOOL CACHE_PUT SCRATCH         in the source directory
"""
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

import harness

TOOL, PUT, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
KEYS = ["0123456789abcdef0123456789abcdef", "0123456789abcdefffffffffffffffff", "f00d000000000000000000000000cafe"]
PLAN = "(spmv (sell (slices 1008) (lanes 16)))"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = harness.fresh_folder(self, SCRATCH)
        self.directory = os.path.join(self.folder, "cache")
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("CBGEN_CACHE", "XDG_"))}
        self.environment["CBGEN_CACHE_DIR"] = self.directory

    def put(self, key, *sections, matrix="bcsstk13", used=0):
        """An entry, last used so many seconds ago."""
        texts = sections or (f"plan={PLAN}", 'json={"nnz": 3}', f"source=// kernel {key}\n", "cubin=x" * 500)
        subprocess.run([PUT, self.directory, key, matrix, *texts], check=True)
        then = time.time() - used
        os.utime(self.file(key), (then, then))

    def put_all(self):
        for number, key in enumerate(KEYS):
            self.put(key, used=1000 * number)

    def file(self, key):
        return os.path.join(self.directory, f"{key}.entry")

    def damage(self, key):
        times = os.stat(self.file(key))
        with open(self.file(key), "r+b") as file:
            file.seek(-1, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([byte ^ 1]))
        os.utime(self.file(key), ns=(times.st_atime_ns, times.st_mtime_ns))

    def entries(self):
        return sorted(name for name in os.listdir(self.directory) if name.endswith(".entry"))

    def check(self, code, message, *arguments, **variables):
        """Runs `cbgen cache …`, expects the exit code, and the text in what it says on standard error."""
        environment = {**self.environment, **variables}
        result = subprocess.run([TOOL, "cache", *arguments], capture_output=True, text=True, timeout=harness.LIMIT, check=False,
                                env={name: value for name, value in environment.items() if value is not None})
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        self.assertIn(message, result.stderr)
        if not message:
            self.assertEqual(result.stderr, "")
        for line in result.stderr.splitlines():
            self.assertTrue(line.startswith("cbgen: "), line)
        return result


class Usage(Case):
    def test_refused(self):
        self.put_all()
        for message, *arguments in [
            ("needs one of stats, list",),
            ("did you mean 'list'", "lsit"),
            ("'cache' does not know 'everything'", "everything"),
            ("'cache show' needs a key", "show"),
            ("'cache stats' takes no 'f00d'", "stats", "f00d"),
            ("one key at a time", "show", "f00d", "0123"),
            ("'--limit' means nothing to 'cache list'", "list", "--limit=1G"),
            ("'--source' means nothing to 'cache list'", "list", "--source"),
            ("'--plan' means nothing to 'cache prune'", "prune", "--plan"),
            ("'--json' means nothing to 'cache clear'", "clear", "--json"),
            ("'--json' means nothing to 'cache verify'", "verify", "--json"),
            ("'--limit=much'", "prune", "--limit=much"),
            ("'--limit=-1'", "prune", "--limit=-1"),
            ("needs a value", "prune", "--limit"),
            ("one part of an entry at a time", "show", "f00d", "--plan", "--source"),
            ("one part of an entry at a time", "show", "f00d", "--plan", "--json"),
            ("'--type' means nothing to 'cache'", "stats", "--type=f32"),
            ("'--output' means nothing to 'cache'", "stats", "--output=x"),
            ("did you mean '--limit'", "prune", "--limt=3"),
            ("'xyz' is no key", "show", "xyz"),
        ]:
            with self.subTest(arguments=arguments):
                self.assertEqual(self.check(2, message, *arguments).stdout, "")
        self.assertEqual(len(self.entries()), 3)

    def test_help(self):
        result = self.check(0, "", "--help")
        for word in ("stats", "list", "show", "verify", "prune", "clear", "--limit", "CBGEN_CACHE_DIR"):
            self.assertIn(word, result.stdout)
        self.assertNotIn("help options", result.stdout)


class Look(Case):
    def test_stats(self):
        self.put_all()
        size = sum(os.path.getsize(self.file(key)) for key in KEYS)
        text = self.check(0, "", "stats").stdout
        self.assertIn(self.directory, text)
        self.assertRegex(text, r"(?m)^entries    3, ")
        self.assertRegex(text, r"(?m)^used       last \d+ s ago; the next to be evicted, 33 min ago$")
        self.assertNotIn("drafts", text)
        document = json.loads(self.check(0, "", "stats", "--json").stdout)
        self.assertEqual({name: document[name] for name in ("directory", "state", "remark", "entries", "bytes",
                                                            "limit_bytes", "foreign", "drafts", "draft_bytes")},
                         {"directory": self.directory, "state": "on", "remark": "", "entries": 3, "bytes": size,
                          "limit_bytes": 4 << 30, "foreign": 0, "drafts": 0, "draft_bytes": 0})
        self.assertAlmostEqual(document["used_first"], time.time() - 2000, delta=60)
        document = json.loads(self.check(0, "", "stats", "--json", CBGEN_CACHE_SIZE="10M").stdout)
        self.assertEqual(document["limit_bytes"], 10 << 20)

    def test_strangers_and_drafts(self):
        self.put_all()
        os.chmod(self.file(KEYS[0]), 0o666)
        with open(os.path.join(self.directory, KEYS[1] + ".00000000-12-0123456789abcdef.draft"), "w") as file:
            file.write("12345")
        text = self.check(0, "", "stats").stdout
        self.assertRegex(text, r"(?m)^foreign    1: ")
        self.assertRegex(text, r"(?m)^drafts     1 .* 5 B$")

    def test_list(self):
        self.put_all()
        self.put("a" * 32, "plan=", matrix="a name that is longer than its column")
        self.put("b" * 32, "cubin=only", used=500000)
        self.damage(KEYS[1])
        os.chmod(self.file(KEYS[2]), 0o602)
        lines = self.check(0, "", "list").stdout.splitlines()
        self.assertEqual(len(lines), 6)
        self.assertEqual([line.split()[0] for line in lines[3:]], [KEYS[1][:16], KEYS[2][:16], "b" * 16])
        first = next(line for line in lines if line.startswith(KEYS[0][:16]) and "16 min" not in line)
        self.assertRegex(first, r"^0123456789abcdef +[\d.]+ kB +\d+ s  bcsstk13 +" + PLAN.replace("(", r"\(")
                         .replace(")", r"\)") + "$")
        self.assertIn("(foreign)", lines[4])
        self.assertRegex(lines[5], r" 5 d ")
        rows = json.loads(self.check(0, "", "list", "--json").stdout)["entries"]
        self.assertEqual([row["key"] for row in rows[2:]], [KEYS[1], KEYS[2], "b" * 32])
        row = next(row for row in rows if row["key"] == KEYS[0])
        self.assertEqual((row["status"], row["matrix"], row["target"], row["plan"], row["bytes"]),
                         ("ok", "bcsstk13", "sm_90 NVIDIA H200", PLAN, os.path.getsize(self.file(KEYS[0]))))
        self.assertAlmostEqual(row["made"], time.time(), delta=60)
        self.assertEqual(rows[3]["status"], "foreign")
        self.assertNotIn("plan", rows[3])

    def test_list_tells_damage_to_what_it_reads(self):
        """The plan and the head; what else is damaged, verify finds."""
        self.put(KEYS[0])
        with open(self.file(KEYS[0]), "r+b") as file:
            file.seek(1030)
            file.write(b"?")
        self.assertIn("(damaged)", self.check(0, "", "list").stdout)
        self.check(1, "damaged", "show", "0123")
        self.assertEqual(len(self.entries()), 1)

    def test_looking_is_no_use(self):
        self.put_all()
        before = [os.stat(self.file(key)).st_mtime for key in KEYS]
        for arguments in (["stats"], ["list"], ["show", "f00d"], ["verify"], ["prune"]):
            self.check(0, "", *arguments)
        self.assertEqual([os.stat(self.file(key)).st_mtime for key in KEYS], before)

    def test_show(self):
        self.put_all()
        text = self.check(0, "", "show", "f00d").stdout
        for part in (KEYS[2], "bcsstk13", "sm_90 NVIDIA H200", "cubin 3.5 kB", PLAN,
                     '{"nnz": 3}', f"// kernel {KEYS[2]}"):
            self.assertIn(part, text)
        self.assertEqual(self.check(0, "", "show", "f00d", "--plan").stdout, PLAN + "\n")
        self.assertEqual(self.check(0, "", "show", "--json", "f00d").stdout, '{"nnz": 3}\n')
        self.assertEqual(self.check(0, "", "show", "f00d", "--source").stdout, f"// kernel {KEYS[2]}\n")

    def test_names(self):
        self.put_all()
        for name, key in [(KEYS[0], 0), (KEYS[0][:17], 0), (KEYS[1][:17].upper(), 1), ("f", 2),
                          ("cbgen_f00d000000000000", 2), ("cbgen_f00d000000000000_spmv_1(double const*)", 2)]:
            self.assertEqual(self.check(0, "", "show", name, "--source").stdout, f"// kernel {KEYS[key]}\n")
        self.check(4, "begins the keys of 2 entries", "show", "0123")
        self.check(4, "no entry 'abc'", "show", "abc")

    def test_entry_without_sections(self):
        self.put("a" * 32, "cubin=only")
        self.assertIn("cubin", self.check(0, "", "show", "a").stdout)
        self.check(4, "has no section 'source'", "show", "a", "--source")


class Change(Case):
    def test_verify(self):
        self.assertEqual(self.check(0, "", "verify").stdout, "0 of 0 entries are whole\n")
        self.put_all()
        self.assertEqual(self.check(0, "", "verify").stdout, "3 of 3 entries are whole\n")
        self.damage(KEYS[1])
        result = self.check(1, "1 of 3 entries are damaged or foreign", "verify")
        self.assertIn(f"cache entry '{KEYS[1]}' is damaged", result.stdout)
        self.assertIn("2 of 3 entries are whole", result.stdout)
        self.assertEqual(self.check(1, "damaged", "verify", "--quiet").stdout, "")
        self.assertEqual(len(self.entries()), 3)
        os.remove(self.file(KEYS[1]))
        os.symlink(KEYS[0] + ".entry", self.file(KEYS[1]))
        self.assertIn("symbolic link", self.check(1, "foreign", "verify").stdout)

    def test_prune(self):
        self.put_all()
        size = os.path.getsize(self.file(KEYS[0]))
        self.assertEqual(self.check(0, "", "prune").stdout, "removed 0 entries, 0 B\n")
        self.assertIn("removed 1 entry, ", self.check(0, "", "prune", f"--limit={3 * size - 1}").stdout)
        self.assertEqual(self.entries(), [f"{key}.entry" for key in KEYS[:2]])
        self.assertEqual(self.check(0, "", "prune", "--quiet", "--limit", str(size)).stdout, "")
        self.assertEqual(self.entries(), [f"{KEYS[0]}.entry"])
        self.check(0, "", "prune", CBGEN_CACHE_SIZE="1K")
        self.assertEqual(self.entries(), [])

    def test_clear(self):
        self.put_all()
        with open(os.path.join(self.directory, "notes.txt"), "w") as file:
            file.write("not the cache's")
        self.assertIn("removed 3 entries", self.check(0, "", "clear").stdout)
        self.assertEqual(os.listdir(self.directory), ["notes.txt"])
        self.check(0, "", "clear")

    def test_what_cannot_be_removed(self):
        self.put_all()
        os.mkdir(self.file("c" * 32))
        result = self.check(4, "cannot remove", "clear")
        self.assertIn("removed 3 entries", result.stdout)


class Directories(Case):
    def test_none_yet(self):
        self.assertIn("no such directory yet", self.check(0, "", "stats").stdout)
        self.assertEqual(json.loads(self.check(0, "", "stats", "--json").stdout)["state"], "nowhere")
        self.assertEqual(self.check(0, "", "list").stdout, "")
        self.assertEqual(json.loads(self.check(0, "", "list", "--json").stdout), {"entries": []})
        self.check(4, "there is no cache", "show", "f00d")
        self.check(0, "", "clear")
        self.assertFalse(os.path.exists(self.directory))

    def test_off(self):
        document = json.loads(self.check(0, "", "stats", "--json", CBGEN_CACHE_DIR="").stdout)
        self.assertEqual((document["state"], document["directory"]), ("off", ""))
        self.check(0, "", "verify", CBGEN_CACHE_DIR="")

    def test_unusable(self):
        self.put_all()
        os.chmod(self.directory, 0o777)
        self.check(4, "others may write", "stats")
        os.chmod(self.directory, 0o700)
        link = os.path.join(self.folder, "link")
        os.symlink(self.directory, link)
        self.check(4, "symbolic link", "list", CBGEN_CACHE_DIR=link)
        self.check(4, "HOME", "list", CBGEN_CACHE_DIR=None, HOME=None)

    def test_standard_places(self):
        home = os.path.join(self.folder, "home")
        text = self.check(0, "", "stats", CBGEN_CACHE_DIR=None, HOME=home).stdout
        self.assertIn(os.path.join(home, ".cache/cbgen"), text)
        text = self.check(0, "", "stats", CBGEN_CACHE_DIR=None, HOME=home, XDG_CACHE_HOME=self.folder).stdout
        self.assertIn(os.path.join(self.folder, "cbgen"), text)

    def test_senseless_size(self):
        self.put_all()
        self.assertIn("entries    3", self.check(0, "CBGEN_CACHE_SIZE is ignored", "stats", CBGEN_CACHE_SIZE="lots").stdout)


class Fill(Case):
    """Without a GPU: NVRTC is the fake one, and so is the driver that describes a GPU."""

    def fill(self, *arguments, **variables):
        return self.check(0, "", "fill", *arguments, **variables).stdout

    def test_entries_are_made_once(self):
        matrix = "generate:fe3,n=3"
        first = self.fill(matrix, "generate:road,n=9,keep=0.8", "--arch=sm_90,sm_80", CBGEN_LIBCUDA="/nowhere")
        lines = first.splitlines()
        self.assertEqual([line.split()[1:3] for line in lines if "(spmv " in line],
                         [["sm_90", "fe3"], ["sm_90", "road"], ["sm_80", "fe3"], ["sm_80", "road"]])
        self.assertRegex(first, r"\d+ of the library's own kernels for NVIDIA H200\n")
        count = len(self.entries())
        again = self.fill(matrix, "--arch=sm_90", CBGEN_NVRTC="/nowhere")
        self.assertRegex(again, r"^[0-9a-f]{16}  sm_90   fe3 +was there\n$")
        self.assertEqual(len(self.entries()), count)
        self.assertEqual(self.check(0, "", "verify").stdout, f"{count} of {count} entries are whole\n")
        for option in ("--type=f32", "--recipe=sell", "--values=fixed", "--transpose"):
            self.assertIn("(spmv ", self.fill(matrix, "--arch=sm_90", option), option)
        self.assertEqual(len(self.entries()), count + 4)
        self.assertEqual(self.fill(matrix, "--arch=sm_90", "-q"), "")

    def test_for_a_gpu_that_is_described(self):
        text = self.check(0, "", "gpu").stdout
        gpu = os.path.join(self.folder, "gpu.json")
        with open(gpu, "w", encoding="utf-8") as file:
            file.write(text)
        self.assertEqual(json.loads(text)["format"], "cbgen gpu 1")
        self.assertIn(json.loads(text)["model"], self.fill("generate:fe3,n=3", f"--gpu={gpu}", CBGEN_LIBCUDA="/nowhere"))
        with open(gpu, "w", encoding="utf-8") as file:
            file.write(text.replace("l2_bytes", "l2"))
        self.check(3, f"{gpu}: 'l2_bytes' is no whole number", "fill", "generate:fe3,n=3", f"--gpu={gpu}")

    def test_refused(self):
        for code, message, *arguments in [
            (2, "'cache fill' needs the file of a matrix", "fill", "--arch=sm_90"),
            (2, "'cache fill' needs '--arch=sm_NN' or '--gpu=FILE'", "fill", "generate:fe3,n=3"),
            (2, "'--arch' means nothing to 'cache list'", "list", "--arch=sm_90"),
            (2, "'--gpu' means nothing to 'cache prune'", "prune", "--gpu=x"),
            (2, "'--transpose' means nothing to 'cache verify'", "verify", "--transpose"),
            (2, "'cache gpu' takes no 'x'", "gpu", "x"),
            (2, "'cache export' needs the name of an archive", "export"),
            (2, "'cache import' needs an archive", "import"),
            (2, "unknown recipe 'none'", "fill", "x", "--arch=sm_90", "--recipe=none"),
            (4, "missing.mtx", "fill", "missing.mtx", "--arch=sm_90"),
        ]:
            with self.subTest(arguments=arguments):
                self.check(code, message, *arguments)
        self.check(5, "CBGEN_LIBCUDA", "gpu", CBGEN_LIBCUDA="/nowhere")
        shutil.rmtree(self.directory, ignore_errors=True)
        self.check(5, "CBGEN_NVRTC", "fill", "generate:fe3,n=3", "--arch=sm_90", CBGEN_NVRTC="/nowhere")
        self.check(4, "there is no cache to fill", "fill", "generate:fe3,n=3", "--arch=sm_90", CBGEN_CACHE_DIR="")


class Archives(Case):
    def move(self, name, *keys):
        """Exports, and imports into an empty cache: the words of the first, the other's environment."""
        archive = os.path.join(self.folder, name)
        words = self.check(0, "", "export", archive, *keys).stdout
        other = {"CBGEN_CACHE_DIR": os.path.join(self.folder, f"other-{name}")}
        self.assertEqual(self.check(0, "", "import", archive, **other).stdout, words.replace("wrote", "took"))
        return words, other

    def test_there_and_back(self):
        self.put_all()
        for name in ("all.tar", "all.tar.gz", "all.tgz", "all.tar.xz", "all.tar.zst"):
            words, other = self.move(name)
            self.assertEqual(words, "wrote 3 entries\n")
            for key in KEYS:
                self.assertEqual(self.check(0, "", "show", key, "--source", **other).stdout, f"// kernel {key}\n")
                heads = [self.check(0, "", "list", "--json", **more).stdout for more in ({}, other)]
                entries = [{each["key"]: (each["plan"], each["matrix"], each["kernel"], each["target"])
                            for each in json.loads(head)["entries"]} for head in heads]
                self.assertEqual(entries[0], entries[1])
            self.assertEqual(self.check(0, "", "verify", **other).stdout, "3 of 3 entries are whole\n")
        words, other = self.move("one.tar", KEYS[2][:4])
        self.assertEqual(words, "wrote 1 entry\n")
        self.assertEqual(os.listdir(other["CBGEN_CACHE_DIR"]), [KEYS[2] + ".entry"])

    def test_damaged_entries_are_left_out(self):
        self.put_all()
        self.damage(KEYS[0])
        archive = os.path.join(self.folder, "rest.tar")
        self.assertEqual(self.check(0, "left out: cache entry", "export", archive).stdout, "wrote 2 entries\n")

    def test_damaged_archives(self):
        self.put_all()
        archive = os.path.join(self.folder, "damaged.tar")
        self.check(0, "", "export", archive)
        with open(archive, "rb") as file:
            whole = file.read()
        at = whole.index(f"// kernel {KEYS[1]}".encode())
        with open(archive, "wb") as file:
            file.write(whole[:at] + b"?" + whole[at + 1:])
        other = {"CBGEN_CACHE_DIR": os.path.join(self.folder, "other")}
        result = self.check(1, "1 of 3 entries are damaged", "import", archive, **other)
        self.assertEqual(result.stdout, "took 2 entries\n")
        self.assertEqual(len(os.listdir(other["CBGEN_CACHE_DIR"])), 2)
        with open(archive, "wb") as file:
            file.write(whole[:len(whole) // 2])
        self.check(3, archive, "import", archive, **other)
        self.check(3, "missing.tar", "import", "missing.tar", **other)

    def test_nothing_else_is_taken(self):
        """Neither files of other names, nor links, nor what lies elsewhere."""
        self.put_all()
        subprocess.run(["ln", "-s", "/etc/passwd", os.path.join(self.folder, KEYS[0] + ".entry")], check=True)
        os.makedirs(os.path.join(self.folder, "up"))
        shutil.copy(self.file(KEYS[1]), os.path.join(self.folder, "up", KEYS[1] + ".entry"))
        with open(os.path.join(self.folder, "notes.txt"), "w", encoding="utf-8") as file:
            file.write("x")
        other = {"CBGEN_CACHE_DIR": os.path.join(self.folder, "other")}
        for number, name in enumerate(["notes.txt", KEYS[0] + ".entry", f"up/{KEYS[1]}.entry"]):
            archive = os.path.join(self.folder, f"{number}.tar")
            subprocess.run(["tar", "-C", self.folder, "-cf", archive, name], check=True)
            self.check(3, "which is no entry of a cache", "import", archive, **other)
        self.assertEqual(os.listdir(other["CBGEN_CACHE_DIR"]), [])
        self.check(2, "does not end in .tar", "export", os.path.join(self.folder, "x.zip"))
        self.check(4, "no entry 'abc'", "export", os.path.join(self.folder, "x.tar"), "abc")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "x.tar")))


class Path(Case):
    def test_stats_name_what_is_read(self):
        self.put_all()
        document = json.loads(self.check(0, "", "stats", "--json",
                                         CBGEN_CACHE_PATH=f"{self.folder}:/nowhere").stdout)
        self.assertEqual(document["path"], [self.folder])
        self.assertIn("'/nowhere' is not read", document["remark"])
        text = self.check(0, "", "stats", CBGEN_CACHE_PATH=self.folder).stdout
        self.assertIn(f"reads      {self.folder}\n", text)


class Bash(Case):
    """What the completion offers behind `cbgen cache`."""

    def offered(self, *words):
        script = f'source tool/completion/cbgen.bash; COMP_WORDS=("{TOOL}" "$@"); COMP_CWORD=$#; _cbgen 2>/dev/null; ' \
                 'printf "%s\\n" "${COMPREPLY[@]}"'
        result = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True,
                                env=self.environment)
        return result.stdout.split()

    def test_words(self):
        self.put_all()
        self.assertIn("cache", self.offered("ca"))
        self.assertEqual(self.offered("cache", ""),
                         ["stats", "list", "show", "verify", "fill", "gpu", "export", "import", "prune", "clear"])
        self.assertEqual(self.offered("cache", "show", "f0"), [KEYS[2][:16]])
        self.assertEqual(self.offered("cache", "stats", ""), [])
        self.assertIn("--limit=", self.offered("cache", "prune", "--"))
        self.assertNotIn("--type=", self.offered("cache", "prune", "--"))


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[4:]])
