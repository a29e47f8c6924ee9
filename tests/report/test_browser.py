"""The page in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from genbounds import report
from genbounds.report import Section
from tests.report.conftest import HOSTILE
from tests.report.kinds import pages

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium here (Debian, Ubuntu: apt install chromium)"
    ),
]
playwright_api = pytest.importorskip(
    "playwright.sync_api", reason="no Playwright here (pip install playwright)"
)

WIDTHS = (400, 1400)


@dataclass
class Seen:
    """What a page said and asked for while it was open."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser) -> Iterator[Any]:
    """Open an address at a width; returns the page and what was seen."""
    contexts = []

    def call(address: str, *, width: int = 1400, **options: Any) -> tuple[Any, Seen]:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        context.set_default_timeout(180_000)  # thirty seconds are few on a busy machine
        contexts.append(context)
        page, seen = context.new_page(), Seen()
        page.on("console", lambda message: seen.console.append(message.text))
        page.on("pageerror", lambda error: seen.console.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        return page, seen

    yield call
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, page in pages().items():
        report.write_page(folder / f"{name}.html", page)
    return folder


FIGURES = {
    "score": 4, "audit": 2, "statement": 1, "select": 3, "hostile": 2, "gate": 2, "plan": 2,
    "selection-plan": 1, "track": 1, "mixture": 1, "contexts": 2, "mixture-selection": 1,
    "modes": 0, "memorisation": 1,
}  # fmt: skip
KINDS = tuple(FIGURES)

OVERLAPS = """() => {
  const found = [];
  for (const svg of document.querySelectorAll("figure svg")) {
    const texts = [...svg.querySelectorAll("text")].map((t) => [t, t.getBoundingClientRect()]);
    const shown = texts.filter(([t, box]) => box.width && t.textContent.trim());
    shown.forEach(([a, one], k) => {
      for (const [b, two] of shown.slice(k + 1)) {
        const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
        const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
        if (across > -2 && down > 3) found.push(`${a.textContent} | ${b.textContent}`);
      }
    });
  }
  return found;
}"""
"""Texts of a figure that touch; lines may be as close as their letters."""


def opened(folder, visit, kind, width):
    """Open a page: no message, no request but for itself, nothing wider than the screen."""
    address = f"file://{folder}/{kind}.html"
    page, seen = visit(address, width=width)
    assert seen == Seen(requests=[address])
    shown, hidden = ("wide", "narrow") if width > 640 else ("narrow", "wide")
    figures = page.locator(f"figure .{shown} svg").all()
    assert len(figures) == FIGURES[kind]
    for figure in figures:
        box = figure.bounding_box()
        assert figure.is_visible()
        assert box["width"] > 200
        assert box["height"] > 50
        assert page.locator(f"figure .{hidden} svg").first.is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate(OVERLAPS) == []
    # Names of models and of pictures are hostile on most of these pages.
    assert page.title() != "owned"
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("[...document.images].every((i) => i.src.startsWith('data:image/png'))")
    return page


def test_hostile_names_are_text(folder, visit):
    page, seen = visit(f"file://{folder}/hostile.html")
    assert page.title().startswith("Title <script>")
    assert page.evaluate("document.scripts.length") == 1
    assert page.locator("img").count() == 1  # our own picture
    text = page.locator("body").inner_text()
    for name in ("script", "image", "quotes", "rtl", "emoji"):
        assert HOSTILE[name] in text
    assert (
        page.locator("figure svg script, figure svg image, figure svg foreignObject").count() == 0
    )
    assert seen.dialogs == []


PAIRS = """() => [...document.querySelectorAll('.paired span')].map((pair) => {
  const [left, right] = [...pair.children].map((picture) => picture.getBoundingClientRect());
  return {level: left.top === right.top, gap: right.left - left.right, size: left.width,
          end: right.right};
})"""


@pytest.mark.parametrize("width", WIDTHS)
def test_pairs_stand_side_by_side(folder, visit, width):
    """Each generated picture left of what it reproduces, nearer to it than to the next pair."""
    page, _ = visit(f"file://{folder}/memorisation.html", width=width)
    pairs = page.evaluate(PAIRS)
    assert len(pairs) == 24
    for pair in pairs:
        assert pair["level"]
        assert 0 <= pair["gap"] < 4
        assert pair["size"] > 40
        assert pair["end"] <= width


def column(table: Any, number: int) -> list[str]:
    return table.locator(f"tbody tr td:nth-child({number})").all_inner_texts()


@pytest.mark.parametrize("how", ["mouse", "keyboard"])
def test_tables_sort(folder, visit, how):
    page, _ = visit(f"file://{folder}/hostile.html")
    table = page.locator("main > section").last.locator("table").first
    button = table.locator("th [role=button]").nth(1)

    def press() -> None:
        if how == "mouse":
            button.click()
        else:
            button.focus()
            page.keyboard.press("Enter")

    start = column(table, 2)
    assert start == [str(i) for i in range(10)]
    press()
    assert (column(table, 2), table.locator("th").nth(1).get_attribute("aria-sort")) == (
        start, "ascending",
    )  # fmt: skip
    arrow = "el => getComputedStyle(el, '::after').content"
    assert "\u2191" in button.evaluate(arrow)
    press()
    assert (column(table, 2), table.locator("th").nth(1).get_attribute("aria-sort")) == (
        start[::-1], "descending",
    )  # fmt: skip
    assert "\u2193" in button.evaluate(arrow)


SORTED_BY = """() => [...document.querySelectorAll("table")].flatMap((table) =>
  [...table.tHead.rows[0].cells].map((head, column) => {
    head.firstElementChild.click();
    return [...table.tBodies[0].rows].map((row) => row.cells[column].textContent.trim());
  }))"""
"""The texts of every column, once it was sorted by itself."""


def leading(text: str) -> float | None:
    """Return the number that a cell begins with: of a share, a score, an interval."""
    plain = text.replace("\u202f", "").replace("\u2212", "-").lstrip("[")
    plain = re.sub("^10(?=[⁻⁰¹²³⁴⁵⁶⁷⁸⁹])", "1·10", plain)
    found = re.match(r"(-?[\d.]+)(?:·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?(?![\w.])", plain)
    if found is None:
        return None
    exponent = (found[2] or "0").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return float(f"{found[1]}e{exponent}")


def check_sorting(page):
    """Shares, steps and intervals too: "9 %" comes before "10 %"."""
    columns = page.evaluate(SORTED_BY)
    assert all(any(texts) for texts in columns)
    for texts in columns:
        values = list(map(leading, filter(lambda text: text not in ("", "–"), texts)))
        if None not in values:
            assert values == sorted(values)


HEADS = """() => [...document.querySelectorAll("main > section table")].flatMap((table) =>
  [...table.tHead.rows[0].cells].flatMap((head, column) => {
    const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
    const cell = cells.find((cell) => cell.textContent);
    if (!head.classList.contains("number") || !cell.getBoundingClientRect().width) return [];
    const range = document.createRange();
    range.selectNodeContents(cell);
    const text = head.firstElementChild.getBoundingClientRect();
    return [text.right - range.getBoundingClientRect().right];
  }))"""
"""How far the head of each column of numbers ends right of its first number."""


def check_heads(page, kind):
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
    page.add_style_tag(content="th [role=button]::after { opacity: 1 !important; }")
    gaps = page.evaluate(HEADS)
    assert gaps or kind in ("audit", "statement", "hostile")
    assert all(abs(gap) <= 1.5 for gap in gaps), gaps
    arrows = page.evaluate(
        "[...document.querySelectorAll('th.number [role=button]')]"
        ".map((b) => getComputedStyle(b, '::after').position)"
    )
    assert set(arrows) <= {"absolute"}  # else the arrow takes the space above the numbers


LINES = """(pattern) => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (/script|style|title/i.test(node.parentElement.tagName)) continue;
    for (const match of node.data.matchAll(new RegExp(pattern, "g"))) {
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (tops.size > 1) found.push(match[0]);
    }
  }
  return found;
}"""
"""Texts of a pattern that are broken over lines."""

WHOLE = r"\[[^\s\[\]]+,\s[^\s\[\]]+\]|\b\w\s=\s\S+"
"""An interval; a letter and its value."""


def check_lines(page):
    """No interval and no p-value is broken over lines, on a screen or in print."""
    for medium in ("screen", "print"):
        page.emulate_media(media=medium)
        assert page.evaluate(LINES, WHOLE) == []


def test_probe_sees_a_broken_interval(folder, visit):
    """Negative control."""
    page, _ = visit(f"file://{folder}/gate.html", width=400)
    page.add_style_tag(content="dd.remark { width: 3rem; overflow-wrap: anywhere; }")
    assert page.evaluate(LINES, WHOLE)


def check_columns(page):
    """Of the tables that are not behind a fold."""
    hidden = page.evaluate(
        "[...document.querySelectorAll('main section > .scroll')]"
        ".map((s) => s.scrollWidth - s.clientWidth)"
    )
    assert all(pixels <= 4 for pixels in hidden), hidden


def check_figures(page):
    """Alt text; a table behind it that the keyboard opens; marks that tell their numbers."""
    for figure in page.locator("figure:has(svg)").all():
        assert len(figure.locator(".wide").get_attribute("aria-label")) > 20
        assert figure.locator(".wide").get_attribute("role") == "img"
        summary, table = figure.locator("summary"), figure.locator("details table")
        assert table.is_hidden()
        summary.focus()
        page.keyboard.press("Enter")
        assert table.is_visible()
        assert table.locator("tbody tr").count() > 0
        tips = figure.locator(".wide svg title").all_text_contents()
        assert tips
        assert all(re.search(r"\d", tip) for tip in tips), tips


CONTRAST = """() => {
  const parse = (text) => {
    const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number);
    return {r, g, b, a: a === undefined ? 1 : a};
  };
  const over = (top, under) => ({
    r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a),
    b: top.b * top.a + under.b * (1 - top.a), a: 1,
  });
  const luminance = ({r, g, b}) => {
    const [x, y, z] = [r, g, b].map((c) => {
      c /= 255;
      return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      layers.push(parse(getComputedStyle(e).backgroundColor));
    }
    const white = {r: 255, g: 255, b: 255, a: 1};
    return layers.reverse().reduce((under, top) => over(top, under), white);
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width || /^(script|style|title)$/i.test(element.tagName)) continue;
    const style = getComputedStyle(element);
    const ink = parse(element instanceof SVGElement ? style.fill : style.color);
    const paper = ground(element);
    const pair = [luminance(over(ink, paper)), luminance(paper)].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < 4.5) low.push(`${element.tagName} ${element.textContent.slice(0, 30)} ${ratio}`);
  }
  return low;
}"""


def check_contrast(page):
    """All text reaches the ratio of 4.5 that WCAG AA asks for, in both themes."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground)[:3])) > 384) == (scheme == "light")
        assert page.evaluate(CONTRAST) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_on_a_phone(folder, visit, kind):
    check_lines(opened(folder, visit, kind, 400))


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_on_a_wide_screen(folder, visit, kind):
    """One visit for all that is asked of every page: what changes it comes last."""
    page = opened(folder, visit, kind, 1400)
    check_columns(page)
    check_contrast(page)
    check_figures(page)
    check_heads(page, kind)
    check_sorting(page)


def test_contrast_probe_sees_pale_text(folder, visit):
    """Negative control."""
    page, _ = visit(f"file://{folder}/score.html")
    page.add_style_tag(content="figcaption { color: #bbb !important; }")
    assert page.evaluate(CONTRAST)


def test_print_shows_every_number(folder, visit):
    page, _ = visit(f"file://{folder}/score.html", color_scheme="dark")
    data = page.pdf(format="A4")
    assert data.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("figure .wide svg").first.is_visible()
    assert page.evaluate("[...document.querySelectorAll('details')].every((d) => d.open)")


def test_print_tears_nothing_apart(folder, visit):
    """No caption goes on overleaf, no short table is torn, no heading stands alone."""
    page, _ = visit(f"file://{folder}/contexts.html")
    page.emulate_media(media="print")

    def rule(selector: str, name: str) -> set[str]:
        style = f"(elements) => elements.map((e) => getComputedStyle(e).{name})"
        return set(page.locator(selector).evaluate_all(style))

    assert rule("figcaption, table", "breakInside") == {"avoid"}
    assert page.locator("h2 + p").count() > 0
    assert rule("h2, h2 + p", "breakAfter") == {"avoid"}


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext (poppler-utils) here")
def test_continued_tables_repeat_their_head(visit, tmp_path):
    rows = [(f"model {i}", i) for i in range(150)]
    page = report.Page("Long", "Lead").add(
        Section("Table", [report.Table(("Who comes here", "Number"), rows)])
    )
    report.write_page(tmp_path / "long.html", page)
    opened, _ = visit(f"file://{tmp_path}/long.html")
    opened.pdf(path=tmp_path / "long.pdf", format="A4")
    text = subprocess.run(
        ["pdftotext", "-layout", tmp_path / "long.pdf", "-"], capture_output=True, text=True
    ).stdout
    pages = text.count("\f")
    assert pages >= 3
    assert text.count("Who comes here") == pages


def test_a_phone_shows_the_score_and_says_that_there_is_more(folder, visit):
    """The second column, score or verdict, is on the screen; a hint where columns are not."""
    page, _ = visit(f"file://{folder}/audit.html", width=400)
    table = page.locator("main .scroll").first
    verdict = table.locator("td:nth-child(2)").first.bounding_box()
    assert verdict["x"] + verdict["width"] <= 400
    hint = "el => getComputedStyle(el, '::before').content"
    # Not `wait_for_function`: it evaluates a text, which the page's own rules refuse.
    page.locator("main .scroll.wider").first.wait_for()
    assert "columns" in table.evaluate(hint)
    wide, _ = visit(f"file://{folder}/audit.html", width=1400)
    assert wide.locator("main .scroll").first.evaluate(hint) == "none"


# --- nothing is asked for, and the probes can tell ------------------------------------------------

BAD = "<img src='/gone.png'><script>document.title = 'owned'; console.log('hello')</script>"


@pytest.mark.parametrize("bad", [False, True], ids=["page", "negative control"])
def test_server_sees_one_request(folder, visit, bad):
    html = (folder / "hostile.html").read_text(encoding="utf-8")
    html, guards = re.subn(r"<meta http-equiv[^>]*>", "", html)  # asks for nothing even without
    assert guards == 1
    if bad:
        html = html.replace("</body>", BAD + "</body>")
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
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
            visit(f"http://127.0.0.1:{server.server_port}/report.html")
        finally:
            server.shutdown()
            thread.join()
    assert asked == (["/report.html", "/gone.png"] if bad else ["/report.html"])


@pytest.mark.parametrize("policy", [True, False], ids=["page", "negative control"])
def test_no_script_but_the_pages_own_runs(folder, visit, tmp_path, policy):
    """The control is that of the first two tests as well: their probes see a script that runs."""
    bad = tmp_path / "bad.html"
    html = (folder / "hostile.html").read_text(encoding="utf-8")
    if not policy:
        html = re.sub(r"<meta http-equiv[^>]*>", "", html)
    bad.write_text(html.replace("</body>", BAD + "</body>", 1), encoding="utf-8")
    page, seen = visit(f"file://{bad}")
    assert (page.title() == "owned") != policy
    assert ("hello" in seen.console) != policy
