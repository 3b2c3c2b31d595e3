#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of `cbgen report` in a real browser, in light and dark, on paper and in a narrow window: what they ask the network
for, contrast, the keyboard, what is opened, and pixels.

    tests/test_report_browser.py TOOL SCRATCH         in the source directory; screenshots stay in SCRATCH
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest
import zlib

import browser
import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
LOOKS = {"light": {}, "dark": {"scheme": "dark"}, "print": {"media": "print", "width": 794}, "narrow": {"width": 360, "height": 740}}

# Every text that is seen: [contrast with what stands behind it, the text]. Colours may be half transparent.
CONTRASTS = """(function () {
  function parse(color) { return color.match(/[\\d.]+/g).map(Number).concat([1]).slice(0, 4); }
  function over(top, below) {
    return [0, 1, 2].map(function (i) { return top[i] * top[3] + below[i] * (1 - top[3]); }).concat([1]);
  }
  function luminance(color) {
    var part = color.slice(0, 3).map(function (c) {
      c /= 255;
      return c <= 0.03928 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  }
  function behind(one) {
    var layers = [];
    for (; one; one = one.parentElement) layers.push(parse(getComputedStyle(one).backgroundColor));
    return layers.reverse().reduce(function (below, top) { return over(top, below); }, [255, 255, 255, 1]);
  }
  var walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [], node;
  while ((node = walker.nextNode())) {
    var one = node.parentElement, style = getComputedStyle(one);
    if (!node.data.trim() || /^(SCRIPT|STYLE)$/.test(one.tagName) || !one.getClientRects().length) continue;
    var back = behind(one), ink = over(parse(one instanceof SVGElement ? style.fill : style.color), back);
    var a = luminance(ink), b = luminance(back);
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.data.trim().slice(0, 40)]);
  }
  return found;
})()"""

# What has the focus, and how one sees that.
FOCUSED = """(function () {
  var one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  return {tag: one.tagName, href: one.getAttribute("href"), outline: style.outlineStyle, width: parseFloat(style.outlineWidth),
          place: Array.prototype.indexOf.call(document.querySelectorAll("*"), one), left: box.left, text: one.textContent.slice(0, 40),
          tip: getComputedStyle(one, "::after").content};
})()"""


def pixels(png):
    """Width, height and rows of (red, green, blue); of a PNG of 8 bits without interlacing."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", png[at + 8:at + 18])
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += length + 12
    each = {2: 3, 6: 4}[color]
    assert depth == 8
    data, rows, before = zlib.decompress(data), [], bytearray(width * each)
    for y in range(height):
        start = y * (width * each + 1)
        row, form = bytearray(data[start + 1:start + 1 + width * each]), data[start]
        for i in range(len(row)) if form else ():
            left, above = row[i - each] if i >= each else 0, before[i]
            corner = before[i - each] if i >= each else 0
            if form == 4:
                guess = left + above - corner
                near = min((left, above, corner), key=lambda one: abs(guess - one))
            row[i] = (row[i] + {1: left, 2: above, 3: (left + above) // 2}.get(form, near if form == 4 else 0)) & 255
        rows.append([tuple(row[i:i + 3]) for i in range(0, len(row), each)])
        before = row
    return width, height, rows


def brightness(rows):
    return sum(sum(pixel) for row in rows for pixel in row) / (3 * sum(map(len, rows)))


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not browser.find():
            raise unittest.SkipTest("there is no Chromium")
        os.makedirs(SCRATCH, exist_ok=True)
        cls.several, cls.few = (cls.page(name, *arguments) for name, arguments in {
            "several": ("generate:stencil7,n=14,extra=0.1", "--recipe=dia", *cls.solutions()),
            "few": ("generate:tridiagonal,n=16", "--recipe=sell"),
        }.items())
        shutil.rmtree(os.path.join(SCRATCH, "browser"), ignore_errors=True)
        cls.browser = browser.Browser(os.path.join(SCRATCH, "browser"))

    @classmethod
    def tearDownClass(cls):
        if hasattr(cls, "browser"):
            cls.browser.__exit__()

    @classmethod
    def solutions(cls):
        """Eight files like those of `cbgen solve --json`: a curve of each colour."""
        for i in range(8):
            told = {"matrix": "stencil", "method": "cg", "reason": "converged", "iterations": 9, "seconds": 1e-3, "residual": 0.1**i,
                    "true_residual": 0.1**i, "history": [0.1 ** (i * k / 9) for k in range(10)]}
            with open(os.path.join(SCRATCH, f"{i}.json"), "w", encoding="utf-8") as file:
                json.dump(told, file)
            yield "--solution=" + os.path.join(SCRATCH, f"{i}.json")

    @classmethod
    def page(cls, name, *arguments):
        path = os.path.join(SCRATCH, name + ".html")
        subprocess.run([TOOL, "report", "-q", *arguments, "--predicted", "-o", path], check=True, timeout=harness.LIMIT)
        return path

    def show(self, path, look):
        self.browser.look(**LOOKS[look])
        self.browser.open(path)

    def shot(self, name, **more):
        return self.browser.screenshot(os.path.join(SCRATCH, name + ".png"), **more)

    def test_nothing_is_asked_for_or_complained_about(self):
        for path in (self.several, self.few):
            self.show(path, "light")
            self.assertEqual([url.removeprefix("file://") for url in self.browser.requests()], [path])
            self.assertEqual(self.browser.complaints(), [])

    def test_contrast(self):
        for look in LOOKS:
            self.show(self.several, look)
            self.browser.evaluate("document.querySelectorAll('details').forEach(function (one) { one.open = true; })")
            found = self.browser.evaluate(CONTRASTS)
            self.assertGreater(len(found), 300)
            self.assertEqual([one for one in found if one[0] < 4.5], [], look)
            self.shot(f"whole-{look}", whole=True)

    def test_contrast_of_a_planted_fault_is_found(self):
        self.show(self.few, "light")
        self.browser.evaluate("document.querySelector('h1').style.color = '#8f8f8f'")
        self.assertEqual(len([one for one in self.browser.evaluate(CONTRASTS) if one[0] < 4.5]), 1)

    def test_drawings_stand_out(self):
        """Colours of regions and marks against the paper: 3 : 1, as for all drawings."""
        for look in ("light", "dark", "print"):
            self.show(self.several, look)
            colors = self.browser.evaluate("""(function () {
              var style = getComputedStyle(document.documentElement);
              return ["--paper"].concat([0,1,2,3,4,5,6,7].map(function (i) { return "--r" + i; })).map(function (name) {
                return style.getPropertyValue(name).trim(); }); })()""")
            values = [[int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)] for color in colors]
            light = [sum(weight * (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4)
                         for weight, c in zip((0.2126, 0.7152, 0.0722), one)) for one in values]
            self.assertEqual(len(set(colors)), 9)
            for one in light[1:]:
                self.assertGreaterEqual((max(one, light[0]) + 0.05) / (min(one, light[0]) + 0.05), 3, (look, colors))

    def test_curves_are_seen(self):
        """Each has its own colour, is drawn as a line, and its label stands beside it without touching another."""
        self.show(self.several, "light")
        strokes = self.browser.evaluate("""[...document.querySelectorAll('#solutions svg path.curve')].map(function (one) {
          var style = getComputedStyle(one); return [style.stroke, style.fill, parseFloat(style.strokeWidth)]; })""")
        self.assertEqual(len(strokes), 16)  # each again beside its label
        self.assertEqual(len({one[0] for one in strokes}), 8)
        self.assertEqual({(fill, width) for _, fill, width in strokes}, {("none", 1.5)})
        boxes = self.browser.evaluate("""[...document.querySelectorAll('#solutions svg text:not([class])')].map(function (one) {
          var box = one.getBoundingClientRect(); return [box.top, box.bottom]; })""")
        self.assertEqual(len(boxes), 8)
        for above, below in zip(boxes, boxes[1:]):
            self.assertLessEqual(above[1], below[0] + 2)

    def test_keyboard(self):
        """Tab goes through the page in its order, each stop is seen, and Enter follows links and opens lines."""
        self.show(self.several, "light")
        self.browser.press("Tab")
        first = self.browser.evaluate(FOCUSED)
        self.assertEqual((first["tag"], first["href"]), ("A", "#matrix"))
        self.assertGreaterEqual(first["left"], 0, "the link that skips the contents is not seen when it has the focus")
        stops = [first]
        for _ in range(40):
            self.browser.press("Tab")
            stops.append(self.browser.evaluate(FOCUSED))
        self.assertEqual([one["place"] for one in stops], sorted({one["place"] for one in stops}))
        for one in stops:
            self.assertTrue(one["outline"] != "none" and one["width"] >= 2, one)
        kinds = {one["tag"] for one in stops}
        self.assertTrue({"A", "INPUT", "SUMMARY", "DIV"} <= kinds, kinds)
        self.browser.evaluate("document.querySelector('summary').focus()")
        self.assertFalse(self.browser.evaluate("document.activeElement.parentElement.open"))
        self.browser.press("Enter", text="\r")
        self.assertTrue(self.browser.evaluate("document.activeElement.parentElement.open"))

    def test_origin_of_a_constant_on_focus_and_hover(self):
        self.show(self.several, "light")
        self.browser.evaluate("document.querySelector('#text a.k').focus()")
        told = self.browser.evaluate("document.activeElement.dataset.origin")
        self.assertIn(" = ", told)
        self.assertEqual(self.browser.evaluate(FOCUSED)["tip"], '"%s"' % told.replace('"', '\\"'))
        self.browser.evaluate("document.activeElement.blur()")
        box = self.browser.evaluate("""(function () {
          var one = document.querySelectorAll('#text a.k')[1];
          one.scrollIntoView({block: 'center'});
          var box = one.getBoundingClientRect(); return [box.left + 3, box.top + 3]; })()""")
        tip = "getComputedStyle(document.querySelectorAll('#text a.k')[1], '::after').content"
        self.assertEqual(self.browser.evaluate(tip), "none")
        self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
        self.assertIn(" = ", self.browser.evaluate(tip))
        self.shot("origin")
        self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=0, y=0)

    def test_one_region_alone(self):
        self.show(self.several, "light")
        shown = "[...document.querySelectorAll('.picture g')].map(function (one) { return getComputedStyle(one).opacity; })"
        self.assertEqual(self.browser.evaluate(shown), ["1", "1"])
        self.browser.evaluate("document.getElementById('show1').click()")
        self.assertEqual(self.browser.evaluate(shown), ["0.06", "1"])
        self.browser.evaluate("document.getElementById('showall').click()")
        self.assertEqual(self.browser.evaluate(shown), ["1", "1"])

    def test_lines_open_together_and_for_printing(self):
        self.show(self.several, "light")
        state = "[...document.querySelectorAll('details')].map(function (one) { return one.open; })"
        count = self.browser.evaluate("document.querySelectorAll('td.i details').length")
        if count:  # where NVRTC is
            self.browser.evaluate("document.getElementById('openall').click()")
            self.assertEqual(self.browser.evaluate(state).count(True), count)
            self.browser.evaluate("document.getElementById('closeall').click()")
        before = self.browser.evaluate(state)
        self.assertNotIn(True, before)
        self.browser.evaluate("dispatchEvent(new Event('beforeprint'))")
        self.assertNotIn(False, self.browser.evaluate(state))
        self.browser.evaluate("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.browser.evaluate(state), before)
        document = self.browser.print()
        self.assertTrue(document.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", document)) >= 2)

    def test_a_narrow_window_scrolls_no_further_than_its_tables(self):
        for look in ("narrow", "light", "print"):
            self.show(self.several, look)
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth - innerWidth"), 0, look)

    def test_light_and_dark(self):
        bright = {}
        for look in ("light", "dark"):
            self.show(self.several, look)
            bright[look] = brightness(pixels(self.shot(look, clip=(0, 0, 640, 240)))[2])
        self.assertGreater(bright["light"], 200)
        self.assertLess(bright["dark"], 70)

    def test_pixels_of_the_drawing(self):
        """A tridiagonal matrix of 16 rows: what is coloured on the screen are its nonzeros."""
        for look in ("light", "dark"):
            self.show(self.few, look)
            box = self.browser.evaluate("""(function () { var box = document.querySelector('.picture .spy').getBoundingClientRect();
              return [box.left + scrollX, box.top + scrollY, box.width, box.height]; })()""")
            width, height, rows = pixels(self.shot(f"drawing-{look}", clip=box))
            paper = rows[int(height * 0.5 / 16)][int(width * 15.5 / 16)]
            for i in range(16):
                for j in range(16):
                    pixel = rows[int(height * (i + 0.5) / 16)][int(width * (j + 0.5) / 16)]
                    self.assertEqual(pixel != paper, abs(i - j) <= 1, (look, i, j, pixel))

    def test_legible_without_its_script(self):
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.show(self.several, "light")
            self.shot("without-script")
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled", value=False)
        hidden = self.browser.evaluate("[...document.querySelectorAll('.tools, .choices')].map(function (one) { return one.hidden; })")
        self.assertEqual(hidden, [True, True])
        self.assertTrue(self.browser.evaluate("document.getElementById('text').getBoundingClientRect().height > 500"))


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[3:]])
