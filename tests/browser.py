"""A real browser, to look at pages: Debian's package chromium, where it is installed."""

import functools
import json
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

SCHEMES = {"dark": 0, "light": 1}  # as Blink numbers them
_WRAPPER = """<!DOCTYPE html><html><body style="margin: 0">
<iframe id="f" src="{page}" style="width: {width}px; height: 800px; border: 0"></iframe>
<pre id="seen"></pre>
<script>
document.getElementById("f").onload = (event) => {{
  const inner = event.target.contentWindow, root = inner.document.documentElement;
  const style = inner.getComputedStyle(inner.document.body);
  const wide = [...inner.document.querySelectorAll("body *")].filter((element) =>
    (element.matches("caption") || !element.closest(".scroll, svg")) &&
    !element.closest("details:not([open])") &&
    element.getBoundingClientRect().right > {width} + 1).map((element) => element.outerHTML);
  document.getElementById("seen").textContent = JSON.stringify({{
    width: root.scrollWidth, text: inner.document.body.innerText, wide: wide.slice(0, 3),
    paper: style.backgroundColor, ink: style.color,
    axes: [...inner.document.querySelectorAll("svg text")].map(
      (text) => inner.getComputedStyle(text).fill)
  }});
}};
</script></body></html>"""


@dataclass(frozen=True)
class Seen:
    """What a browser made of a page."""

    width: int
    text: str
    wide: list[str]
    paper: str
    ink: str
    axes: list[str]
    console: list[str]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def look_at(page: Path, *, width: int, scheme: str, folder: Path) -> Seen:
    """Open a page in a frame of this width; the test is skipped where there is no browser."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Debian's package chromium is not installed")
    wrapper = page.parent / f"wrapper-{width}-{scheme}.html"
    wrapper.write_text(_WRAPPER.format(page=page.name, width=width), encoding="utf-8")
    handler = functools.partial(_Quiet, directory=page.parent)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [
        program, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=10000",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", "--dump-dom",
        f"http://127.0.0.1:{server.server_address[1]}/{wrapper.name}",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    finally:
        server.shutdown()
        server.server_close()
    found = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[:500] + done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    plain = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return Seen(**json.loads(plain), console=console)


def assert_readable(page: Path, *, width: int, scheme: str, folder: Path) -> Seen:
    """Nothing in the console, nothing too wide, and the scheme's colours, in pictures too."""
    seen = look_at(page, width=width, scheme=scheme, folder=folder)
    assert seen.console == []
    assert seen.width <= width
    assert seen.wide == []
    papers = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 29)"}
    assert seen.paper == papers[scheme]
    assert contrast(seen.ink, seen.paper) > 7
    if "<svg" in page.read_text(encoding="utf-8"):
        assert seen.ink in seen.axes  # texts of pictures have the page's colour
    return seen


def contrast(*colours: str) -> float:
    """WCAG's ratio of two colours."""

    def luminance(colour: str) -> float:
        parts = np.array([int(n) / 255 for n in re.findall(r"\d+", colour)[:3]])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)
