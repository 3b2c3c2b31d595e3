#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cbgen report` from outside: the page's structure, that it holds what the matrix, the plan and the text hold, how large it
becomes, and what is refused. What a browser makes of it is in test_report_browser.py.

    tests/test_tool_report.py TOOL SCRATCH         in the source directory; the environment names the fake GPU
"""
import html.parser
import json
import os
import re
import stat
import subprocess
import sys
import unittest

import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), sys.argv[2]
VOID = {"meta", "input", "br", "img", "link", "hr"}
FEW, SEVERAL = "generate:tridiagonal,n=5", "generate:stencil7,n=14,extra=0.1"


class Element:
    def __init__(self, name, attributes, parent):
        self.name, self.attributes, self.parent, self.inside = name, attributes, parent, []

    def all(self, name=None, **wanted):
        """Elements in here by name and attributes; class_ is one of several."""
        for one in self.inside:
            if isinstance(one, str):
                continue
            kinds = (one.attributes.get("class") or "").split()
            fits = all(value in kinds if key == "class_" else one.attributes.get(key) == value for key, value in wanted.items())
            if name in (None, one.name) and fits:
                yield one
            yield from one.all(name, **wanted)

    def one(self, name=None, **wanted):
        found = list(self.all(name, **wanted))
        assert len(found) == 1, f"{len(found)} of {name} {wanted}"
        return found[0]

    def text(self):
        return "".join(one if isinstance(one, str) else one.text() for one in self.inside)

    def rows(self):
        """Of a table: the texts of its body's cells."""
        return [[re.sub("[ \n]+", " ", cell.text()).strip(" ") for cell in row.inside if not isinstance(cell, str)]
                for row in self.one("tbody").all("tr")]


class Page(html.parser.HTMLParser):
    """A page as a tree. What is not closed, or closed twice, is an error."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.source, self.root = text, Element("", {}, None)
        self.at, self.declarations = self.root, []
        self.feed(text)
        self.close()
        assert self.at is self.root, f"<{self.at.name}> is not closed"

    def handle_decl(self, decl):
        self.declarations.append(decl)

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        element = Element(tag, dict(attrs), self.at)
        self.at.inside.append(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag, attrs):
        self.at.inside.append(Element(tag, dict(attrs), self.at))

    def handle_endtag(self, tag):
        assert self.at.name == tag, f"</{tag}> closes <{self.at.name}>, line {self.getpos()[0]}"
        self.at = self.at.parent

    def handle_data(self, data):
        self.at.inside.append(data)

    def section(self, name):
        return self.root.one("section", id=name)


def cells_of(path):
    """The cells that a path of the drawing covers, as (row, column): runs of "h" that start where "M" or "m" moved."""
    cells, row, col = [], 0, 0
    for command, first, second, length in re.findall(r"([Mm])(-?\d+) (-?\d+)h(\d+)", path):
        row, col = (int(second), int(first)) if command == "M" else (row + int(second), col + int(first))
        cells += [(row, col + i) for i in range(int(length))]
        col += int(length)
    assert not re.sub(r"[Mm]-?\d+ -?\d+h\d+", "", path), path
    return cells


def number(text):
    """1 234 with narrow spaces, and a minus that is no hyphen."""
    return int(text.replace("\u202f", "").replace("−", "-"))


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = harness.fresh_folder(self, SCRATCH)
        # no GPU, and no compiler unless a test wants one
        self.environment = {**os.environ, "CBGEN_LIBCUDA": "/nonexistent", "CBGEN_NVRTC": "/nonexistent", "CBGEN_CALIBRATION": "",
                            "OMP_NUM_THREADS": "2"}

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, code, message, *arguments, stdin="", **more):
        result = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=harness.LIMIT, check=False,
                                input=stdin, env={**self.environment, **more})
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        self.assertIn(message, result.stderr)
        if not message:
            self.assertEqual(result.stderr, "")
        return result.stdout

    def page(self, *arguments, **more):
        return Page(self.check(0, "", "report", "-q", "-o", "-", *arguments, **more))


class Structure(Case):
    def check_page(self, page):
        root = page.root
        self.assertEqual(page.declarations, ["DOCTYPE html"])
        self.assertEqual(root.one("html").attributes["lang"], "en")
        self.assertTrue(root.one("title").text().strip())
        for name in ("header", "nav", "main", "footer", "h1"):
            root.one(name)
        ids = [one.attributes["id"] for one in root.all() if "id" in one.attributes]
        self.assertEqual(len(ids), len(set(ids)), "an id occurs twice")
        for link in root.all("a"):
            target = link.attributes["href"]
            self.assertTrue(target.startswith("#") and target[1:] in ids, target)
        levels = [int(one.name[1]) for one in root.all() if re.fullmatch("h[1-6]", one.name)]
        self.assertTrue(all(after <= before + 1 for before, after in zip(levels, levels[1:])), levels)
        self.assertEqual([one.attributes["href"] for one in root.one("nav").all("a")],
                         ["#" + one.attributes["id"] for one in root.all("section")])

    def check_self_contained(self, page):
        self.assertNotRegex(page.source, r"https?://|@import|url\(|<link|<iframe|javascript:")
        for one in page.root.all():
            self.assertNotIn("src", one.attributes)
            self.assertFalse([name for name in one.attributes if name.startswith("on")], one.name)

    def check_accessible(self, page):
        for drawing in page.root.all("svg"):
            named = drawing.attributes.get("role") == "img" and drawing.attributes.get("aria-label")
            hidden = drawing.attributes.get("aria-hidden") == "true" or drawing.parent.attributes.get("aria-hidden") == "true"
            self.assertTrue(named or hidden)
        for table in page.root.all("table"):
            for head in table.all("th"):
                self.assertIn(head.attributes.get("scope"), ("row", "col"))
            widths = {sum(not isinstance(cell, str) for cell in row.inside) for row in table.all("tr")}
            self.assertEqual(len(widths), 1, "rows of a table have different numbers of cells")
        for field in page.root.all("input"):
            self.assertEqual(field.parent.name, "label")

    def test_pages(self):
        for arguments in [(FEW,), (SEVERAL,), (SEVERAL, "--recipe=fill", "--fill-rate=40"), ("generate:empty,rows=0",),
                          ("generate:empty,rows=3",), ("generate:one_row",), ("generate:one_column",), ("generate:fe3,n=5", "--recipe=cb"),
                          ("generate:arrow,n=60", "--type=f16", "--form=ax", "--arch=sm_80", "--values=fixed")]:
            with self.subTest(arguments=arguments):
                page = self.page(*arguments)
                self.check_page(page)
                self.check_self_contained(page)
                self.check_accessible(page)

    def test_other_semirings(self):
        page = self.page("generate:road,n=9,keep=0.6", "--semiring=min-plus")
        self.assertIn("y = A·x or min(y, A·x) over (min, +)", page.root.one("header").text())

    def test_names_are_escaped(self):
        name = "</title><script>alert(1)</script>'&<b>"
        page = self.page(FEW, f"--name={name}")
        self.check_page(page)
        self.assertEqual(page.root.one("h1").text(), name)
        self.assertEqual(len(list(page.root.all("script"))), 1)
        self.assertEqual(list(page.root.all("b", id=None))[0].text(), "Why this one:")
        self.assertIn(f'for "{name}"', page.section("text").text())

    def test_bytes_that_are_no_text(self):
        result = subprocess.run([os.fsencode(TOOL), b"report", b"-q", b"-o", b"-", b"--name=a\xffb\xc3(\xe2\x82\xac", FEW.encode()],
                                capture_output=True, check=True, env=self.environment, timeout=harness.LIMIT)
        self.assertEqual(Page(result.stdout.decode("utf-8")).root.one("h1").text(), "a\ufffdb\ufffd(€")


class Contents(Case):
    def drawn(self, page, kind="picture"):
        """Cells by region, of the large drawing."""
        groups = page.section("matrix").one("div", class_=kind).all("g")
        return {int(group.attributes["data-region"]): [cell for path in group.all("path") for cell in cells_of(path.attributes["d"])]
                for group in groups}

    def test_drawing_of_a_small_matrix(self):
        page = self.page(FEW)
        self.assertEqual(sorted(sum(self.drawn(page).values(), [])),
                         [(i, j) for i in range(5) for j in range(5) if abs(i - j) <= 1])
        self.assertIn("Each cell of the drawing is one entry", page.section("matrix").text())
        drawing = page.section("matrix").one("svg", class_="spy")
        self.assertEqual(drawing.attributes["viewbox"], "0 -0.5 5 5")
        self.assertEqual([path.attributes["d"] for path in drawing.all("path")], ["M0 0h2M0 1h3M1 2h3M2 3h3M3 4h2"])

    def test_drawing_by_region(self):
        """What the split took is drawn in the one region, the rest in the other; each cell once."""
        page = self.page("generate:stencil5,n=16,extra=0.1", "--recipe=dia")
        drawn = self.drawn(page)
        self.assertEqual(sorted(drawn), [0, 1])
        cells = sum(drawn.values(), [])
        self.assertEqual(len(cells), len(set(cells)))
        counts = [number(row[2]) for row in page.section("matrix").one("table").rows()]
        self.assertEqual([len(drawn[0]), len(drawn[1])], counts)
        self.assertEqual({col - row for row, col in drawn[0]}, {-16, -1, 0, 1, 16})
        small = page.section("matrix").one("div", class_="small")
        self.assertEqual([sum(1 for _ in one.all("path")) > 0 for one in small.all("figure")], [True, True])

    def test_large_matrix_says_so(self):
        page = self.page("generate:stencil5,n=60")
        self.assertIn("Drawn in 320 × 320 cells: the matrix is larger, so each cell stands for about 11.2 × 11.2 entries",
                      page.section("matrix").text())
        cells = sum(self.drawn(page).values(), [])
        expected = {(row * 320 // 3600, col * 320 // 3600) for row in range(3600) for col in
                    [row] + [row + step for step, edge in ((1, row % 60 == 59), (-1, row % 60 == 0), (60, 0), (-60, 0))
                             if not edge and 0 <= row + step < 3600]}
        self.assertEqual(set(cells), expected)

    def test_histograms_count_everything(self):
        for matrix, rows, nonzeros in [("generate:staircase,n=200", 200, 19900), (FEW, 5, 13), ("generate:empty,rows=7", 7, 0)]:
            page = self.page(matrix)
            lengths, diagonals, offsets = [table.rows() for table in page.section("shape").all("table")]
            self.assertEqual(sum(number(row[2]) for row in lengths), rows)
            self.assertEqual(sum(number(row[2]) for row in offsets), nonzeros)
            self.assertLessEqual(len(diagonals), 10)
        page = self.page(FEW)
        lengths, diagonals, offsets = [table.rows() for table in page.section("shape").all("table")]
        self.assertEqual([row[0::2] for row in lengths], [["2", "2"], ["3", "3"]])
        self.assertEqual([row[0::2] for row in offsets], [["−1", "4"], ["0", "5"], ["1", "4"]])
        self.assertEqual([row[0] for row in diagonals], ["0", "−1", "1"])
        self.assertEqual([row[3] for row in diagonals], ["100.0 %"] * 3)

    def test_plan_as_a_tree(self):
        page = self.page(SEVERAL, "--recipe=dia")
        plan = page.section("plan")
        line = plan.one("pre").text()
        self.assertEqual(line, json.loads(self.check(0, "", "analyze", SEVERAL, "--recipe=dia", "--json"))["plan"]["plan"])
        words = re.findall(r"[^\s()]+", line)
        tree = " ".join(plan.one("ul", class_="tree").text().split())
        for word in words:
            self.assertIn(word, tree)
        self.assertEqual([node.text().strip() for node in plan.all("span", class_="node")],
                         [name for name in re.findall(r"\((\w+)", line) if name in ("spmv", "split", "dia", "sell")])
        self.assertEqual(re.findall(r"region (\d) (\w+)", tree), [("0", "dia0"), ("1", "sell1")])

    def test_candidates_are_those_of_analyze(self):
        page = self.page(SEVERAL)
        tables = list(page.section("candidates").all("table"))
        found = json.loads(self.check(0, "", "analyze", SEVERAL, "--json"))["candidates"]
        planned = sorted((one["predicted_ns"], one["recipe"]) for one in found if "refusal" not in one)
        self.assertEqual([(row[0].removesuffix(" chosen"), row[1]) for row in tables[0].rows()],
                         [(recipe, f"{1e-3 * ns:.2f}") for ns, recipe in planned])
        self.assertEqual(sum(row[0].endswith(" chosen") for row in tables[0].rows()), 1)
        self.assertEqual(dict(tables[1].rows()), {one["recipe"]: one["refusal"] for one in found if "refusal" in one})
        for row, one in zip(tables[0].rows(), sorted((one for one in found if "refusal" not in one), key=lambda one: one["predicted_ns"])):
            decides = ["launch", "stream", "gather", "work", "chain", "tail"].index(one["decides"])
            self.assertEqual([cell.endswith("*") for cell in row[2:8]], [i == decides for i in range(6)])

    def test_without_a_gpu_nothing_is_measured_and_that_is_said(self):
        page = self.page(SEVERAL)
        for name in ("candidates", "roofline"):
            self.assertIn("install NVIDIA's GPU driver", page.section(name).text())
        self.assertNotIn("measured", "".join(one.text() for one in page.section("roofline").all("text")))
        self.assertNotIn("Measured", page.section("candidates").text())
        marks = [one.text() for one in page.section("roofline").all("text") if "predicted: " in one.text()]
        self.assertEqual(len(marks), len(next(page.section("candidates").all("table")).rows()))
        self.assertIn("'--predicted' was given", self.page(SEVERAL, "--predicted").section("candidates").text())


class Text(Case):
    def kernel(self, *arguments):
        """The lines of the device part."""
        text = self.check(0, "", "generate", *arguments, "-q", "-o", "-", "--embed=never", "--emit=cu")
        return text.split("#ifndef __CUDACC_RTC__\n")[0].splitlines()

    def shown(self, page):
        return [row.one("td", class_="t").text() for row in page.section("text").one("table").one("tbody").all("tr")]

    def test_text_and_constants(self):
        for arguments in [(SEVERAL,), ("generate:fe3,n=6", "--recipe=cb"), ("generate:fe3,n=6", "--recipe=patterns"),
                          ("generate:rmat,scale=9", "--recipe=merge"), (SEVERAL, "--recipe=dia", "--values=fixed")]:
            with self.subTest(arguments=arguments):
                page, lines = self.page(*arguments), self.kernel(*arguments)
                use = [i for i, line in enumerate(lines) if line.startswith("//   use ")]
                shown = self.shown(page)
                self.assertEqual([line for i, line in enumerate(shown) if i not in use],
                                 [line for i, line in enumerate(lines) if i not in use])
                self.check_constants(page, lines)
                self.check_plan(page, *arguments)

    def check_constants(self, page, lines):
        """Each definition of the text is in the table with an origin, and each use leads to it."""
        defined = [match[1] for line in lines for match in [re.match(r" *(?:static )?constexpr \w+ (\w+)(?:\[\])? = ", line)
                                                            or re.match(r"__device__ const \w+ (\w+)\[.*\] = ", line)] if match]
        rows = page.section("constants").one("table").rows()
        self.assertEqual([row[0] for row in rows], defined)
        for name, _, value, origin, _ in rows:
            self.assertTrue(origin and value, name)
        entries = {row.attributes["id"]: cells for row, cells in zip(page.section("constants").one("tbody").all("tr"), rows)}
        uses = list(page.section("text").all("a", class_="k"))
        for use in uses:
            name, _, value, origin, _ = entries[use.attributes["href"][1:]]
            self.assertEqual(use.text(), name)
            told = use.attributes["data-origin"]
            self.assertTrue(told.startswith(name + " = ") and told.endswith(", " + origin), told)
        region = ""
        for row in page.section("text").one("table").one("tbody").all("tr"):
            text = row.one("td", class_="t").text()
            if re.match(r"namespace |\}  // namespace", text):
                region = text.split()[1] if text.startswith("namespace") else ""
            for use in row.all("a", class_="k"):
                self.assertIn(entries[use.attributes["href"][1:]][1], ("all", region), text)
        code = [re.sub(r'"[^"]*"', "", line.split("//")[0]) for line in lines if not line.startswith("#")]
        counted = {name: sum(len(re.findall(rf"(?<![\w.]){name}\b", line)) for line in code) for name in set(defined)}
        self.assertEqual({name: sum(use.text() == name for use in uses) for name in counted}, counted)

    def check_plan(self, page, *arguments):
        plan = json.loads(self.check(0, "", "analyze", *arguments, "--json"))["plan"]
        rows = page.section("constants").one("table").rows()
        known = {(row[1], row[0]): row for row in rows}
        count = 0
        for region in plan["regions"]:
            for constant in region["constants"]:
                row = known.get((region["name"], constant["name"]))
                self.assertIsNotNone(row, constant)
                self.assertEqual((row[2], row[3]), (str(constant["value"]), constant["origin"]))
                count += 1
        self.assertGreater(count, 0)

    def test_without_nvrtc_there_are_no_instructions_and_that_is_said(self):
        page = self.page(FEW)
        self.assertEqual(list(page.section("text").all("details")), [])
        self.assertIn("There are no instructions beside it", page.section("text").text())
        self.assertIn("Registers are not known", page.section("plan").text())

    def nvrtc(self):
        """The environment with the compiler that is here, if there is one."""
        environment = {name: os.environ[name] for name in ("CBGEN_NVRTC",) if name in os.environ}
        self.environment.pop("CBGEN_NVRTC")
        self.environment.update(environment)
        page = self.page(FEW, CBGEN_NVDISASM="/nonexistent")
        if "There are no instructions" in page.section("text").text():
            self.skipTest("there is no NVRTC")
        return page

    def test_ptx(self):
        page = self.nvrtc()
        text = page.section("text")
        self.assertIn("PTX", text.one("h2").text())
        self.assertRegex(text.text(), r"not machine code: there is no nvdisasm")
        whole = text.one("details", class_="line").one("pre").text().splitlines()
        listed = [re.fullmatch(r" *(\d+)  line +(\d+)  (.*)", line) for line in whole if "  line " in line]
        self.assertIn(f"All {len(listed)} instructions", text.one("details", class_="line").text())
        self.assertGreater(len(listed), 10)
        beside = {}
        for row in text.one("table").one("tbody").all("tr"):
            for folded in row.all("pre"):
                for line in folded.text().splitlines():
                    place, code = line.split(maxsplit=1)
                    beside[int(place)] = (int(row.attributes["id"][1:]), code)
            for summary in row.all("summary"):
                self.assertEqual(int(summary.text().split(":")[0]), len(row.one("pre").text().splitlines()))
        self.assertEqual(beside, {int(one[1]): (int(one[2]), one[3]) for one in listed if int(one[2])})
        lines = self.shown(page)
        stores = [line for line, code in beside.values() if code.startswith("st.global")]
        self.assertTrue(stores and all("vectors.y[row] =" in lines[line - 1] for line in stores), stores)

    def test_sass(self):
        """A stand-in of nvdisasm gives known instructions."""
        self.nvrtc()
        program, seen = self.path("nvdisasm"), self.path("seen")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"""#!/bin/sh
head -c 4 "$3" > {seen}; echo "$1 $2" >> {seen}
cat <<'END'
\t.section\t.text.k,"ax",@progbits
k:
.text.k:
\t//## File "/x/kernel.cu", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.64 R2, desc[UR6][R32.64+-0x8] ;
\t//## File "kernel.cu", line 5 inlined at "kernel.cu", line 9
.L_x_0:
        /*0020*/                   DFMA R2, R2, R4, <&> ;
END
""")
        os.chmod(program, stat.S_IRWXU)
        text = self.page(FEW, CBGEN_NVDISASM=program).section("text")
        with open(seen, "rb") as file:
            self.assertEqual(file.read(), b"\x7fELF-c -g\n")
        self.assertIn("SASS", text.one("h2").text())
        rows = {row.attributes["id"]: (row.one("summary").text(), row.one("pre").text())
                for row in text.one("table").one("tbody").all("tr") if list(row.all("details"))}
        self.assertEqual(rows["L3"][0], "2: LDC, LDG.E")
        self.assertEqual([line.split(maxsplit=1)[1] for line in rows["L3"][1].splitlines()],
                         ["LDC R1, c[0x0][0x28]", "@!P0 LDG.E.64 R2, desc[UR6][R32.64+-0x8]"])
        self.assertEqual((rows["L5"][0], rows["L5"][1].split(maxsplit=1)[1], len(rows)), ("1: DFMA", "DFMA R2, R2, R4, <&>", 2))

    def test_a_disassembler_that_fails(self):
        self.nvrtc()
        page = self.page(FEW, CBGEN_NVDISASM="/bin/false")
        self.assertIn("'/bin/false' could not disassemble the kernel", page.section("text").text())
        self.assertIn("PTX", page.section("text").one("h2").text())


class Measured(Case):
    """On the fake GPU, against the fake cuSPARSE."""

    def page_of(self, *arguments, **more):
        if "CBGEN_FAKE_CUSPARSE" not in os.environ:
            self.skipTest("there is no fake GPU")
        environment = {"CBGEN_LIBCUDA": os.environ["CBGEN_LIBCUDA"], "CBGEN_NVRTC": os.environ["CBGEN_FAKE_CUDA"],
                       "CBGEN_CUSPARSE": os.environ["CBGEN_FAKE_CUSPARSE"], "CBGEN_FAKE_SET": "memory=67108864,unrun=1", **more}
        return self.page("generate:uniform,n=12,per_row=2", "--repeat=1", *arguments, **environment)

    def test_candidates_and_opponents(self):
        page = self.page_of("--recipe=sell")
        Structure.check_page(self, page)
        self.assertEqual(next(page.root.one("dl").all("dt")).text(), "Measured time of a product")
        row = next(page.section("candidates").all("table")).rows()[0]
        self.assertRegex(row[2], r"^\d+\.\d\d$")
        opponents = {row[0]: row for row in page.section("roofline").one("table").rows()}
        self.assertRegex(page.section("roofline").one("caption").text(), r"^Opponents of cuSPARSE 12\.9\.4; the best right one is ")
        for name in ("csr-alg1", "csr-alg2", "coo-alg1"):
            self.assertRegex(opponents[name][1], r"^\d+\.\d\d$")
        marks = [one.text() for one in page.section("roofline").all("text") if "measured: " in one.text()]
        drawn = [mark.split(",")[0] for mark in marks]
        self.assertIn("sell", drawn)
        self.assertEqual(len([name for name in drawn if name in opponents and name != "sell"]), 6)
        self.assertEqual([row[0] for row in page.section("setup").one("table").rows()][-2:], ["loading the kernel", "uploading the data"])

    def test_without_cusparse_it_says_so(self):
        page = self.page_of("--recipe=sell", CBGEN_CUSPARSE="/nonexistent.so")
        self.assertIn("There are no opponents: ", page.section("roofline").text())
        self.assertEqual(list(page.section("roofline").all("table")), [])

    def test_another_gpu_is_asked_for(self):
        page = self.page_of("--recipe=sell", "--arch=sm_120")
        self.assertIn("and '--arch=sm_120' was given", page.section("roofline").text())


class Solutions(Case):
    def solution(self, name, history, **more):
        """A file like those of `cbgen solve --json`."""
        iterations = 1 if isinstance(history, str) else len(history) - 1
        told = {"matrix": "bridge", "method": "cg", "reason": "converged", "iterations": iterations, "seconds": 0.002,
                "residual": 1, "true_residual": 1, "plan": "(spmv)", "history": history, **more}
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({key: value for key, value in told.items() if value != "left out"}, file)
        return f"--solution={path}"

    def curves(self, page):
        """Of each curve its strokes, as lists of points of the drawing."""
        paths = [path.attributes["d"] for path in page.section("solutions").all("path", class_="curve")]
        return [[[tuple(map(float, point.split())) for point in stroke.split("L")] for stroke in path.split("M")[1:]]
                for path in paths if "h16" not in path]

    def test_curves_and_table(self):
        page = self.page(FEW, self.solution("a.json", [1, 1e-2, 1e-4]),
                         self.solution("b.json", [1, None, 1e-1, 0.5, 1e-3], method="<b>", reason="not a number", true_residual=None))
        Structure.check_page(self, page)
        Structure.check_accessible(self, page)
        Structure.check_self_contained(self, page)
        self.assertEqual(self.curves(page), [[[(80, 20), (210, 190), (340, 360)]],
                                             [[(80, 20)], [(340, 105), (470, 45.6), (600, 275)]]])
        self.assertEqual([row[:8] for row in page.section("solutions").one("table").rows()],
                         [["1 cg", "bridge", "converged", "2", "2.000", "1000.00", "1.00e+00", "1.00e+00"],
                          ["2 <b>", "bridge", "not a number", "4", "2.000", "500.00", "1.00e+00", "not a number"]])
        ticks = [one.text() for one in page.section("solutions").all("text", class_="tick")]
        self.assertEqual(ticks, ["0", "1", "2", "3", "4", "1e0", "1e-1", "1e-2", "1e-3", "1e-4"])

    def test_long_curves_keep_their_extremes(self):
        history = [1.0] * 100001
        history[77777], history[33333] = 1e-7, 100.0
        page = self.page(FEW, self.solution("a.json", history))
        (stroke,), = self.curves(page)
        self.assertLessEqual(len(stroke), 1000)
        self.assertEqual((min(y for _, y in stroke), max(y for _, y in stroke)), (20, 360))
        self.assertIn("extremes of its stretches", page.section("solutions").text())

    def test_odd_histories(self):
        for history in ([0], [None], [1], [0, 0, 0], [None, 1, None]):
            with self.subTest(history=history):
                page = self.page(FEW, self.solution("a.json", history))
                Structure.check_page(self, page)
                self.assertNotRegex(page.section("solutions").text(), "nan|inf")

    def test_without_one_there_is_no_section(self):
        self.assertNotIn("solutions", self.page(FEW).source)

    def test_refused(self):
        for message, more in (("it has no text 'method'", {"method": 7}), ("it has no text 'matrix'", {"matrix": "left out"}),
                              ("it has no number 'residual'", {"residual": "small"}), ("it has no number 'seconds'", {"seconds": None}),
                              ("count of 'iterations'", {"iterations": -1}), ("one number more", {"iterations": 3}),
                              ("one number more", {"history": "none"}), ("no residual", {"history": [1, -1]}),
                              ("no residual", {"history": [1, "x"]})):
            with self.subTest(more=more):
                solution = self.solution("a.json", more.pop("history", [1, 0.5]), **more)
                self.check(3, message, "report", FEW, "-o", self.path("a.html"), solution)
        with open(self.path("b.json"), "w", encoding="utf-8") as file:
            file.write("[1, 2")
        self.check(3, "is not what 'cbgen solve --json' writes", "report", FEW, "-o", "-", "--solution=" + self.path("b.json"))
        self.check(3, "it has no text 'matrix'", "report", FEW, "-o", "-", "--solution=/dev/stdin", stdin="[]")
        self.check(4, "cannot open", "report", FEW, "-o", "-", "--solution=" + self.path("none.json"))
        self.check(2, "8 times at most", "report", FEW, "-o", "-", *[self.solution("a.json", [1])] * 9)
        self.check(2, "needs a file", "report", FEW, "-o", "-", "--solution=")
        self.assertFalse(os.path.exists(self.path("a.html")))


class Size(Case):
    def test_two_million_nonzeros(self):
        """The drawings are bounded by their cells, whatever the matrix; so is everything else but the text."""
        sizes = {}
        for n in (20000, 125000):
            page = self.page(f"generate:uniform,n={n},per_row=16", "--recipe=sell")
            self.assertIn(f"{16 * n:,}".replace(",", "\u202f") + " nonzeros", page.root.one("header").text())
            sizes[n] = len(page.source)
        self.assertLess(sizes[125000], 3 << 20)
        self.assertLess(abs(sizes[125000] - sizes[20000]), 700 << 10)

    def test_the_worst_drawing(self):
        """Runs of one cell each: half of all cells, alternating, by strength too."""
        page = self.page("generate:checker,rows=640", "--recipe=sell")
        drawing = page.section("matrix").one("div", class_="picture")
        self.assertLess(sum(len(path.attributes["d"]) for path in drawing.all("path")), 320 * 320 * 8)


class Refused(Case):
    def test_usage(self):
        for message, *arguments in [
            ("'report' needs '-o report.html'", FEW),
            ("'report' needs a file", "-o", self.path("a.html")),
            ("'--output' needs a file name", FEW, "--output="),
            ("'--json' means nothing to 'report'", FEW, "-o", self.path("a.html"), "--json"),
            ("'--tune=measure' means nothing to 'report'", FEW, "-o", self.path("a.html"), "--tune=measure"),
            ("'--repeat' has no effect with '--predicted'", FEW, "-o", self.path("a.html"), "--predicted", "--repeat=3"),
            ("'--device' has no effect with '--predicted'", FEW, "-o", self.path("a.html"), "--predicted", "--device=0"),
        ]:
            with self.subTest(arguments=arguments):
                self.assertEqual(self.check(2, message, "report", *arguments), "")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_gpu_that_was_named_must_be_there(self):
        self.check(5, "install NVIDIA's GPU driver", "report", FEW, "-o", self.path("a.html"), "--device=0")
        self.assertEqual(os.listdir(self.folder), [])

    def test_files(self):
        matrix = self.path("matrix.mtx")
        with open(matrix, "w", encoding="utf-8") as file:
            file.write("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1.0\n")
        self.check(3, "matrix.mtx:3", "report", matrix, "-o", self.path("a.html"))
        self.check(4, "cannot open", "report", self.path("none.mtx"), "-o", self.path("a.html"))
        self.check(4, "cannot create", "report", FEW, "-o", self.path("none/a.html"))
        self.check(4, "it is a directory", "report", FEW, "-o", self.folder)
        self.check(2, "is the input", "report", matrix, "-o", matrix)
        self.assertEqual(os.listdir(self.folder), ["matrix.mtx"])

    def test_the_page_is_whole_or_not_there(self):
        page = self.path("a.html")
        with open(page, "w", encoding="utf-8") as file:
            file.write("before")
        self.check(2, "there is no shape", "report", "-q", "generate:none", "-o", page)
        with open(page, encoding="utf-8") as file:
            self.assertEqual(file.read(), "before")
        self.check(0, "", "report", "-q", FEW, "-o", page)
        with open(page, encoding="utf-8") as file:
            self.assertTrue(file.read().endswith("</html>\n"))
        if os.path.exists("/dev/full"):
            self.check(4, "cannot write '/dev/full'", "report", FEW, "-o", "/dev/full")


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[3:]])
