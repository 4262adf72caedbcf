"""A headless Chromium, driven by its DevTools protocol over a pipe."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SECONDS = 20


def find_browser():
    """Return the path of a Chromium, None if there is none or it cannot be driven here."""
    if os.name == "nt":
        return None  # file descriptors cannot be handed over as 3 and 4
    return next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """One page of a browser.

    Attributes:
        problems: what the browser logged: violations of the page's policy, failed requests.
        requested: URLs that the browser requested.
    """

    def __init__(self, reading, writing):
        self._reading = reading
        self._writing = writing
        self._buffer = b""
        self._number = 0
        self._session = None
        self.problems = []
        self.requested = []
        self._loaded = 0
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Log", "Network", "Runtime"):
            self._call(f"{domain}.enable")

    def open(self, url):
        self._await_load(lambda: self._call("Page.navigate", url=url))

    def evaluate(self, expression):
        """Return the value of an expression, from outside of the page's policy."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def fill(self, name, value):
        """Type into an input, or choose an option, of the form."""
        field = f"document.querySelector('[name={name}]')"
        if self.evaluate(f"{field}.tagName") == "SELECT":
            self.evaluate(f"{field}.value = {json.dumps(value)}")
            assert self.evaluate(f"{field}.value") == value
        else:
            self.evaluate(f"{field}.select()")
            self._call("Input.insertText", text=value)

    def submit(self):
        """Click on the button."""
        box = self.evaluate(
            "(r => [r.x + r.width / 2, r.y + r.height / 2])("
            "document.querySelector('button').getBoundingClientRect())"
        )
        mouse = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}

        def click():
            for kind in ("mousePressed", "mouseReleased"):
                self._call("Input.dispatchMouseEvent", type=kind, **mouse)

        self._await_load(click)

    def screenshot(self, path, width=1000):
        height = self.evaluate("document.documentElement.scrollHeight")
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=min(height, 4000), deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _await_load(self, action):
        before = self._loaded
        action()
        end = time.monotonic() + SECONDS
        while self._loaded == before:
            assert time.monotonic() < end, "the page does not load"
            self._receive()

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self):
        while b"\0" not in self._buffer:
            chunk = os.read(self._reading, 1 << 16)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(line)
        method, parameters = message.get("method"), message.get("params")
        if method == "Page.loadEventFired":
            self._loaded += 1
        elif method == "Log.entryAdded":
            self.problems.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        return message


@contextmanager
def browsing(program, folder):
    """Run a browser; yield a tab."""
    commands, to_browser = os.pipe()
    from_browser, answers = os.pipe()
    arguments = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={folder}",
        "--window-size=1000,1200",
    ]  # fmt: skip
    # The browser reads from 3 and writes to 4.
    script = (
        "import fcntl, os, sys; r, w = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in "
        "sys.argv[1:3]); os.dup2(r, 3); os.dup2(w, 4); os.execv(sys.argv[3], sys.argv[3:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(commands), str(answers), program, *arguments],
        pass_fds=(commands, answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands)
    os.close(answers)
    try:
        yield Tab(from_browser, to_browser)
    finally:
        process.terminate()
        process.wait(10)
        os.close(to_browser)
        os.close(from_browser)
