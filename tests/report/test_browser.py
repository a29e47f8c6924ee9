"""The page in a real browser: Debian's Chromium, driven by its command line."""

from __future__ import annotations

import http.server
import os
import re
import shutil
import subprocess
import threading

import pytest

from genbounds import report
from tests.report.test_page import everything

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium here (Debian, Ubuntu: apt install chromium)"
    ),
]  # fmt: skip

# Asks the page itself, and writes the answers where --dump-dom shows them.
PROBE = """
<script>
addEventListener("load", () => {
  const seen = (selector) => [...document.querySelectorAll(selector)].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width > 50 && box.height > 5 && getComputedStyle(element).display !== "none";
  }).length;
  const table = document.querySelectorAll("main > section:last-of-type table")[0];
  const buttons = table.querySelectorAll("th button");
  const column = () => [...table.tBodies[0].rows].map((row) => row.cells[1].innerText).join(" ");
  const before = column();
  buttons[1].click();
  const up = column();
  buttons[1].click();
  const down = column();
  const answers = {
    wide: seen("figure .wide svg"), narrow: seen("figure .narrow svg"),
    overflow: document.documentElement.scrollWidth - innerWidth,
    title: document.title,
    before, up, down, sort: buttons[1].parentElement.getAttribute("aria-sort"),
    ink: getComputedStyle(document.querySelector("figure svg text")).fill,
    paper: getComputedStyle(document.body).backgroundColor,
  };
  document.body.dataset.answers = JSON.stringify(answers);
});
</script>
"""


def browse(address: str, *options: str, profile) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    return subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--disable-dev-shm-usage", "--enable-logging=stderr", "--v=0",
            f"--user-data-dir={profile}", *options, address,
        ],
        capture_output=True, text=True, timeout=120, check=True,
        env=os.environ | {"LANG": "C.UTF-8"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return the path of a page with everything hostile in it, and the probe."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    html = everything().render()
    path.write_text(html.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    return path


def ask(done) -> dict:
    import html
    import json

    found = re.search(r'data-answers="([^"]*)"', done.stdout)
    assert found, done.stderr
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize(("width", "size"), [(1400, "wide"), (500, "narrow")])
def test_page_in_a_browser(page, tmp_path, width, size):
    done = browse(f"file://{page}", "--dump-dom", f"--window-size={width},900", profile=tmp_path)
    answers = ask(done)
    assert {"wide": answers["wide"], "narrow": answers["narrow"]} == {
        "wide": 2 if size == "wide" else 0,
        "narrow": 2 if size == "narrow" else 0,
    }
    assert answers["overflow"] <= 0
    assert answers["title"].startswith("Title <script>")  # and not "owned"
    assert answers["before"] == answers["up"] == "0 1 2 3 4 5 6 7 8 9"
    assert answers["down"] == "9 8 7 6 5 4 3 2 1 0"
    assert answers["sort"] == "descending"
    assert "CONSOLE" not in done.stderr


@pytest.mark.parametrize(("dark", "light_ink"), [(False, False), (True, True)])
def test_ink_follows_the_theme(page, tmp_path, dark, light_ink):
    options = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
    answers = ask(browse(f"file://{page}", "--dump-dom", *options, profile=tmp_path))
    ink, paper = (
        sum(map(int, re.findall(r"\d+", answers[key])[:3])) / 3 for key in ("ink", "paper")
    )
    assert (ink > paper) == light_ink
    assert abs(ink - paper) > 120  # contrast


BAD = "<img src='/gone.png'><script>document.title = 'owned'; console.log('hello')</script>"


@pytest.mark.parametrize("bad", [False, True], ids=["page", "negative control"])
def test_server_sees_one_request(page, tmp_path, bad):
    html = page.read_text(encoding="utf-8")
    html, guards = re.subn(r"<meta http-equiv[^>]*>", "", html)  # asks for nothing even without
    assert guards == 1
    if bad:
        html = html.replace("</body>", BAD + "</body>")
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/report.html"
            browse(address, "--dump-dom", profile=tmp_path)
        finally:
            server.shutdown()
            thread.join()
    assert seen == (["/report.html", "/gone.png"] if bad else ["/report.html"])


def test_probe_sees_a_script_that_runs(page, tmp_path):
    """Negative control of the first test above."""
    bad = tmp_path / "bad.html"
    html = page.read_text(encoding="utf-8").replace("</body>", BAD + "</body>", 1)
    bad.write_text(html, encoding="utf-8")
    done = browse(f"file://{bad}", "--dump-dom", profile=tmp_path / "profile")
    assert ask(done)["title"] == "owned"
    assert "CONSOLE" in done.stderr


def test_screenshot_of_an_ordinary_page(tmp_path, ranking):
    path = tmp_path / "report.html"
    report.write_page(
        path, report.score_page(ranking.scores, metric="fd", level=0.95, ranking=ranking)
    )
    picture = tmp_path / "page.png"
    browse(
        f"file://{path}", f"--screenshot={picture}", "--window-size=1400,1000",
        profile=tmp_path / "profile",
    )  # fmt: skip
    assert picture.stat().st_size > 20_000  # a blank page takes a tenth of that
