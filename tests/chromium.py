"""Debian's chromium without a window, driven through its pipe: pages, widths, scripts, errors."""

import base64
import fcntl
import functools
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PATIENCE = 60  # seconds for an answer
# The browser reads and writes these; a shell could not name the ends of a pipe above 9.
_AT_3_AND_4 = """import os, sys
for end, place in zip(sys.argv[1:3], (3, 4)):
    os.dup2(int(end), place)
os.execv(sys.argv[3], sys.argv[3:])"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextmanager
def served(folder: Path):
    """The address of a local server of a folder."""
    handler = functools.partial(_Quiet, directory=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Browser:
    """One tab of a browser; the test is skipped where there is none.

    ``errors`` has what scripts and requests of the pages have reported since it was last cleared.
    """

    def __init__(self, profile: Path):
        names = ("chromium", "chromium-browser", "google-chrome")
        program = next(filter(None, map(shutil.which, names)), None)
        if program is None:
            pytest.skip(f"there is none of {', '.join(names)}")
        reads, self._out = os.pipe()
        self._in, writes = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (reads, writes)]
        command = [
            sys.executable, "-c", _AT_3_AND_4, *map(str, ends), program,
            "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for end in (reads, writes, *ends):
            os.close(end)
        self._number, self._rest, self._session, self.errors = 0, b"", None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def ask(self, method: str, **parameters) -> dict:
        """Send a command of the DevTools protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer}"
                return answer["result"]

    def open(self, address: str, *, width: int = 1280, scheme: str = "light") -> None:
        """Open a page and wait until it is loaded and laid out."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900,
                 deviceScaleFactor=1, mobile=False)  # fmt: skip
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])
        self.ask("Page.navigate", url=address)
        self.until("document.readyState == 'complete' && location.href != 'about:blank'")
        self.script("new Promise(done => requestAnimationFrame(() => setTimeout(done, 20)))")

    def script(self, expression: str):
        """The value of an expression in the page; a promise is waited for."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True,
                         awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until a condition holds in the page."""
        end = time.monotonic() + PATIENCE
        while not self.script(f"Boolean({condition})"):
            assert time.monotonic() < end, f"not so within {PATIENCE} s: {condition}"
            time.sleep(0.02)

    def picture(self, path: Path) -> None:
        """Write what the window shows to a PNG file."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def _next(self) -> dict:
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], PATIENCE)[0], "the browser does not answer"
            read = os.read(self._in, 1 << 20)
            assert read, "the browser has ended"
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(line)
        self._remember(message.get("method"), message.get("params", {}))
        return message

    def _remember(self, event: str | None, told: dict) -> None:
        if event == "Runtime.exceptionThrown":
            self.errors.append(str(told["exceptionDetails"])[:500])
        elif event == "Log.entryAdded" and told["entry"]["level"] == "error":
            address = told["entry"].get("url", "")
            if not address.endswith("/favicon.ico"):  # asked for where a page names none
                self.errors.append(f"{told['entry']['text']} {address}")
        elif event == "Runtime.consoleAPICalled" and told["type"] == "error":
            self.errors.append(str(told["args"])[:500])
