"""The offline page in a browser: no error, no request, lines linked both ways, a bar for every interval, no text cut."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from explained import ROOT, THREE, WRONG, example, explained
from tilewright.report import page

EXAMPLES = {"fused": "02_fused", "matmul": "10_matmul", "ring": "07_ring", "attention": "tilelang/07_flash_attention"}
SCRIPTS = {"wrong": WRONG, "three": THREE}
NAMES = [*EXAMPLES, *SCRIPTS]
WIDTHS = (1200, 600)
MOST_BYTES = 1_500_000
MOST_MILLISECONDS = 1_000


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("pages")
    made = {name: example(file)[0] for name, file in EXAMPLES.items()}
    for name, text in SCRIPTS.items():
        script = folder / f"{name}.py"
        script.write_text(text)
        made[name] = explained(script)[0]
    for name, document in made.items():
        page.write(folder / f"{name}.html", document)
    return {name: (folder / f"{name}.html", document) for name, document in made.items()}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_it_draws_without_complaint_or_request(name: str, dark: bool, pages, browser):
    browser.open(pages[name][0], dark=dark)
    for stage in browser.all("details.stage")[:3]:
        browser.ask("arguments[0].open = true", stage)
    assert browser.complaints() == []
    assert browser.requests() == []


# Text that reaches out of what shows it and cannot be scrolled to. Elements that scroll are allowed to be wider inside.
CUT = """
const scrolls = node => { for (let n = node; n; n = n.parentElement) { const s = getComputedStyle(n).overflowX; if (s === 'auto' || s === 'scroll') return n; } return null; };
const found = [];
const walker = document.createTreeWalker(document.getElementById('page'), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode;
  if (!text.data.trim()) continue;
  const range = document.createRange();
  range.selectNodeContents(text);
  const holder = text.parentElement.closest('svg') || scrolls(text.parentElement);
  for (const box of range.getClientRects()) {
    if (!box.width) continue;
    if (text.parentElement.closest('svg')) {
      const around = holder.getBoundingClientRect();
      if (box.left < around.left - 2 || box.right > around.right + 2) found.push(text.data);
    } else if (!holder && (box.right > innerWidth + 1 || box.left < -1)) found.push(text.data);
    else if (holder && holder.classList.contains('code') && box.right > holder.getBoundingClientRect().right + 1) found.push(text.data);
  }
}
return found;
"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_no_text_is_cut(name: str, width: int, pages, browser):
    browser.open(pages[name][0], width=width)
    assert browser.ask(CUT) == []
    assert browser.ask("return document.documentElement.scrollWidth") <= width, "the page itself does not scroll sideways"


@pytest.mark.parametrize("name", [*EXAMPLES, "three"])
def test_the_chart_has_as_many_intervals_as_the_trace(name: str, pages, browser):
    file, document = pages[name]
    browser.open(file)
    for number, kernel in enumerate(document["kernels"]):
        if len(document["kernels"]) > 1:
            browser.ask("arguments[0].click()", browser.all(".choose")[number])
        lives = [part["requirements"]["values"] for region in kernel["dst"] for part in region["parts"]]
        assert [len(chart.find_elements("css selector", ".life.first")) for chart in browser.all(".dst-chart")] == [len(each) for each in lives]
        bars = sum(
            len(set(part["slots"][life["slot"]]))
            for region in kernel["dst"] for part in region["parts"] for life in part["requirements"]["values"]
        )  # fmt: skip
        assert len(browser.all(".dst-chart .interval")) == bars


def test_a_line_of_python_lights_its_cpp(pages, browser):
    file, document = pages["fused"]
    browser.open(file)
    (kernel,) = document["kernels"]
    line = next(i for i, text in enumerate(document["files"][kernel["source"]]["lines"], 1) if "ttl.math.exp" in text)
    row = browser.all(f'.python .line[data-place="{kernel["source"]}:{line}"]')[0]
    browser.ask("arguments[0].click()", row)
    lit = [each.text for each in browser.all(".cpp .line.pinned .text")]
    compute = next(file for file in kernel["cpp"] if file["role"] == "compute")
    wanted = [text.strip() for text, place in zip(compute["lines"], compute["from"], strict=True) if place == [kernel["source"], line]]
    assert [text.strip() for text in lit] == wanted and any("exp_tile" in text for text in lit)
    assert "exp" in browser.all("#selected")[0].text and "math" in browser.all("#selected")[0].text


def test_a_line_of_another_thread_opens_its_tab(pages, browser):
    file, document = pages["fused"]
    browser.open(file)
    source = document["kernels"][0]["source"]
    line = next(i for i, text in enumerate(document["files"][source]["lines"], 1) if "ttl.copy(y_blk" in text)
    browser.ask("arguments[0].click()", browser.all(f'.python .line[data-place="{source}:{line}"]')[0])
    (tab,) = browser.all('[role="tab"][data-role][aria-selected="true"]')
    assert tab.get_attribute("data-role") == "writer"
    assert any("noc_async_write_page(" in row.text for row in browser.all(".cpp .line.pinned"))


def test_a_line_of_cpp_lights_its_python(pages, browser):
    browser.open(pages["fused"][0])
    row = next(each for each in browser.all(".cpp .line") if "exp_tile<" in each.text)
    browser.ask("arguments[0].dispatchEvent(new MouseEvent('mouseenter'))", row)
    assert any("ttl.math.exp" in each.text for each in browser.all(".python .line.near"))
    browser.ask("arguments[0].click()", row)
    assert any("ttl.math.exp" in each.text for each in browser.all(".python .line.pinned"))


def test_the_keyboard_walks_the_lines(pages, browser):
    from selenium.webdriver.common.keys import Keys

    browser.open(pages["fused"][0])
    pane = browser.all(".code.cpp")[0]
    pane.send_keys(Keys.ARROW_DOWN)
    first = [row.get_attribute("data-place") for row in browser.all(".python .line.pinned")]
    pane.send_keys(Keys.ARROW_DOWN)
    second = [row.get_attribute("data-place") for row in browser.all(".python .line.pinned")]
    assert first and second and first != second
    pane.send_keys(Keys.ESCAPE)
    assert not browser.all(".line.pinned")


def test_heat_is_at_the_dearest_line(pages, browser):
    browser.open(pages["fused"][0])
    hot = [row for row in browser.all(".python .line") if row.find_element("css selector", ".heat").text]
    strength = "return Number(getComputedStyle(arguments[0]).backgroundColor.split(/[(,/)]/)[4])"
    hottest = max(hot, key=lambda row: browser.ask(strength, row.find_element("css selector", ".heat")))
    assert "ttl.math.exp" in hottest.text


def test_the_timeline_names_the_slice_and_zooms(pages, browser):
    browser.open(pages["fused"][0])
    canvas = browser.all(".timeline canvas")[0]
    painted = "const c = arguments[0].getContext('2d').getImageData(0, 0, arguments[0].width, arguments[0].height).data; let h = 0; for (let i = 0; i < c.length; i += 97) h = (h * 31 + c[i]) | 0; return h"
    whole = browser.ask(painted, canvas)
    row = "const box = arguments[0].getBoundingClientRect(); arguments[0].dispatchEvent(new MouseEvent(arguments[1], {clientX: box.left + box.width * 0.5, clientY: box.top + 2 + 20 * 2 + 8, bubbles: true}))"
    browser.ask(row, canvas, "mousemove")
    tip = browser.all("#tip")[0].text
    assert "math" in tip and "line" in tip and "cycles" in tip
    browser.ask("arguments[0].click()", next(button for button in browser.all("#time button") if button.text == "zoom in"))
    assert browser.ask("return new Promise(done => setTimeout(() => done(true), 400))")
    assert browser.ask(painted, canvas) != whole
    assert any("operations per" in text.text for text in browser.all(".roofline text"))


def test_stages_show_what_they_changed(pages, browser):
    file, document = pages["fused"]
    browser.open(file)
    (kernel,) = document["kernels"]
    decided = {decision["pass"] for decision in kernel["decisions"]}
    wanted = [stage["name"] for stage in kernel["stages"] if stage["edits"] or stage["name"] in decided]
    assert [node.get_attribute("data-stage") for node in browser.all("details.stage")] == wanted
    node = browser.all('details.stage[data-stage="ttl-place-stores"]')[0]
    browser.ask("arguments[0].open = true", node)
    browser.ask("return new Promise(done => setTimeout(() => done(true), 100))")
    edits = next(stage["edits"] for stage in document["kernels"][0]["stages"] if stage["name"] == "ttl-place-stores")
    assert len(node.find_elements("css selector", ".added")) == sum(len(edit[2]) for edit in edits)
    assert "changed nothing" in browser.all("details.quiet")[0].text


def test_a_ring_and_its_memory_are_drawn(pages, browser):
    file, document = pages["ring"]
    browser.open(file)
    assert len(browser.all(".grid .core")) == 8 and len(browser.all(".grid .pipe")) == 8
    assert len(browser.all(".memory .placed")) == len(document["kernels"][0]["memory"]["buffers"])
    assert len(browser.all(".flow .node.thread")) == len(document["kernels"][0]["threads"])


def test_what_goes_to_a_row_is_drawn_from_core_to_core(pages, browser):
    file, document = pages["matmul"]
    browser.open(file)
    pipes = [pipe for net in document["kernels"][0]["pipes"] for pipe in net["pipes"]]
    assert len(browser.all(".grid .pipe")) == len(pipes) == 16
    assert len(browser.all(".grid .pipe path")) == sum(len(pipe["to"]) for pipe in pipes)
    assert "each to 7 cores at once" in browser.all("#program")[0].text


def test_every_region_of_dst_has_a_line_and_its_bars_a_tip(pages, browser):
    browser.open(pages["ring"][0])
    cards = browser.all(".region")
    assert cards and all(card.find_elements("css selector", "h3 a") for card in cards), "copies too"
    bar = browser.all(".dst-chart .life")[0]
    browser.ask("arguments[0].dispatchEvent(new MouseEvent('mousemove', {clientX: 5, clientY: 5}))", bar)
    assert "in_dfb" in browser.all("#tip")[0].text and "cycles" in browser.all("#tip")[0].text


def test_many_steps_stand_close_to_each_other(browser, tmp_path: Path):
    script = tmp_path / "long.py"
    script.write_text(THREE.replace("square = made", "def powers(x):\n    for _ in tuple(range(40)):\n        x = ttl.math.exp(ttl.math.sin(x) * x) + ttl.math.abs(x)\n    return x\n\n\nsquare = made").replace("lambda x: x * x)\nroot", "powers)\nroot"))
    document, _ = explained(script)
    page.write(tmp_path / "long.html", document)
    browser.open(tmp_path / "long.html")
    (region,) = document["kernels"][0]["dst"]
    steps = sum(len(part["steps"]) for part in region["parts"])
    assert steps > 150
    assert browser.ask("return document.querySelector('.dst-chart').getBoundingClientRect().width") < 20 * steps
    assert len(browser.all(".dst-chart .life.first")) == sum(len(part["requirements"]["values"]) for part in region["parts"])
    assert browser.ask(CUT) == [] and browser.complaints() == []


def test_the_keyboard_zooms_and_pans_the_timeline(pages, browser):
    from selenium.webdriver.common.keys import Keys

    browser.open(pages["fused"][0])
    canvas = browser.all(".timeline canvas")[0]
    shown = "const c = arguments[0].getContext('2d').getImageData(0, 0, arguments[0].width, arguments[0].height).data; let h = 0; for (let i = 0; i < c.length; i += 97) h = (h * 31 + c[i]) | 0; return h"
    seen = [browser.ask(shown, canvas)]
    for key in ("+", "+", Keys.ARROW_RIGHT, "-", "0"):
        canvas.send_keys(key)
        seen.append(browser.ask(shown, canvas))
    assert all(a != b for a, b in itertools.pairwise(seen)) and seen[-1] == seen[0]


def test_names_of_the_compiler_are_explained_where_they_stand(pages, browser):
    browser.open(pages["attention"][0])
    assert browser.all(".cpp abbr.made") and browser.all("table.buffers abbr.made")
    name = next(node for node in browser.all(".cpp abbr.made") if node.text.startswith("between_"))
    browser.ask("arguments[0].dispatchEvent(new MouseEvent('mousemove', {clientX: 5, clientY: 5}))", name)
    assert "through L1" in browser.all("#tip")[0].text


def test_contents_choose_among_kernels(pages, browser):
    browser.open(pages["three"][0])
    assert [node.text for node in browser.all(".choose")] == ["square", "root", "summed"]
    assert "three.py:35, three.py:37" in browser.all("#contents tr")[2].text
    browser.ask("arguments[0].click()", browser.all(".choose")[1])
    assert "sqrt_tile(" in browser.all(".cpp")[0].text
    assert browser.complaints() == []


def test_a_wrong_kernel_shows_error_notes_and_page(pages, browser):
    file, document = pages["wrong"]
    browser.open(file)
    (error,) = document["errors"]
    card = browser.all(".error")[0].text
    assert error["message"] in card and error["page"][:40] in card and error["help"] in card
    (wrong,) = browser.all(".python .line.wrong")
    assert wrong.text.endswith("out.store(left + left)") and "".join(part.text for part in wrong.find_elements("css selector", ".under")) == "out.store(left + left)"
    (noted,) = browser.all(".python .line.noted")
    assert "y_dfb =" in noted.text
    link = browser.all(".error li a")[0]
    browser.ask("arguments[0].click()", link)
    assert browser.all(".python .line.pinned.noted")


def test_the_page_of_attention_is_small_and_fast(pages, browser):
    file, _ = pages["attention"]
    assert file.stat().st_size < MOST_BYTES
    times: list[float] = []
    for _ in range(3):
        browser.open(file)
        times.append(browser.ask("return window.drawn"))
    assert min(times) < MOST_MILLISECONDS, times


def test_profile_writes_the_page_too(tmp_path: Path, browser, capsys: pytest.CaptureFixture[str]):
    from tilewright.cli.main import main

    assert main(["profile", "--no-advice", str(ROOT / "examples" / "01_add.py"), "-o", str(tmp_path)]) == 0
    browser.open(tmp_path / "page.html")
    assert browser.complaints() == [] and browser.all(".timeline canvas")
    assert (tmp_path / "explain.json").exists()
