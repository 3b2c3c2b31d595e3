# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, for tests of pages: driven by the DevTools protocol over a pair of pipes, so that neither a
driver nor a port is needed.

    with Browser(folder) as browser:
        browser.open("report.html")
        browser.evaluate("document.title")
        browser.screenshot("report.png")
"""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE = 300  # seconds for an answer, on a loaded machine


def find():
    """The program; None: there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    def __init__(self, folder, width=1280, height=900):
        """`folder` receives the browser's own files."""
        self.size = (width, height)
        self.number, self.rest, self.events = 0, b"", []
        to_read, self.to_write = os.pipe()  # the browser reads from 3 and writes to 4
        self.to_read, to_write = os.pipe()
        command = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                   f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank"]
        environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "ASAN_OPTIONS")}

        def place():
            """In the child: the pipes' ends become 3 and 4."""
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]
            for number, end in enumerate(ends, 3):
                os.dup2(end, number)

        self.process = subprocess.Popen(command, preexec_fn=place, pass_fds=(3, 4), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=environment, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        page = next(one for one in self.call("Target.getTargets", session=None)["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", session=None, targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close", session=None)
        except (OSError, AssertionError):
            self.process.kill()
        self.process.wait(timeout=PATIENCE)
        os.close(self.to_read)
        os.close(self.to_write)

    def receive(self, end):
        """The next message."""
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.to_read], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self.to_read, 1 << 20)
            assert piece, "the browser has ended"
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session="", **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session or self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            answer = self.receive(end)
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def await_event(self, method):
        end = time.monotonic() + PATIENCE
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive(end))

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.await_event("Page.loadEventFired")

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer.get("exceptionDetails")
        return answer["result"].get("value")

    def requests(self):
        """The addresses that the page asked for."""
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """What the browser's console says: errors, and what the page's policy forbids."""
        return [json.dumps(event["params"]) for event in self.events
                if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")]

    def look(self, scheme="light", media="screen", width=None, height=None):
        """As somebody with this preference, on paper, or in a window of this size sees it."""
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width or self.size[0], height=height or self.size[1],
                  deviceScaleFactor=1, mobile=False)

    def press(self, key, code=None, text=None):
        parameters = {"key": key, "code": code or key, "windowsVirtualKeyCode": {"Tab": 9, "Enter": 13, " ": 32}.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", **parameters, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def screenshot(self, path, whole=False, clip=None):
        """Of the window, of the whole page, or of (x, y, width, height) of it. The bytes of the PNG."""
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = (0, 0, size["width"], min(size["height"], 16000))
        more = {"captureBeyondViewport": True, "clip": {**dict(zip(("x", "y", "width", "height"), clip)), "scale": 1}} if clip else {}
        picture = base64.b64decode(self.call("Page.captureScreenshot", format="png", **more)["data"])
        with open(path, "wb") as file:
            file.write(picture)
        return picture

    def print(self):
        """The bytes of a PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"])
