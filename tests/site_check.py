"""The built site in a browser: every page loads without complaint, asks nobody outside, shows its pictures, and its links lead somewhere.

    python tests/site_check.py build/site

`make site` builds it and runs this.
"""

from __future__ import annotations

import functools
import http.server
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

from headless import Browser, headless

WIDTHS = (1280, 480)
PICTURES = "return [...document.images].filter(each => !(each.complete && each.naturalWidth)).map(each => each.src)"
LINKS = "return [...document.querySelectorAll('a[href]')].map(each => each.href)"
ANCHORS = "return [...document.querySelectorAll('[id]')].map(each => each.id)"
SIDEWAYS = "return document.documentElement.scrollWidth > innerWidth + 1"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def wrong(browser: Browser, site: Path, address: str) -> list[str]:
    """What is wrong with the pages of a site that is served at an address."""
    found: list[str] = []
    anchors: dict[str, set[str]] = {}
    links: list[tuple[str, str]] = []
    for file in sorted(site.rglob("*.html")):
        name = file.relative_to(site).as_posix()
        for width in WIDTHS if name != "404.html" else ():
            browser.visit(f"{address}/{name}", width=width)
            found += [f"{name}: the page scrolls sideways at {width}"] * browser.ask(SIDEWAYS)
        if name == "404.html":
            continue
        found += [f"{name}: no picture {each}" for each in browser.ask(PICTURES)]
        found += [f"{name}: asks {each}" for each in browser.requests() if not each.startswith(address)]
        found += [f"{name}: {each['message']}" for each in browser.complaints()]
        anchors[name] = set(browser.ask(ANCHORS))
        links += [(name, link) for link in browser.ask(LINKS) if link.startswith(address)]
    for name, link in links:
        page, anchor = urldefrag(link.removeprefix(f"{address}/"))
        target = unquote(page) or "index.html"
        if not (site / target).is_file():
            found.append(f"{name}: {link} leads nowhere")
        elif anchor and target in anchors and unquote(anchor) not in anchors[target] and anchor != "__top":
            found.append(f"{name}: {link} has no such place")
    return sorted(set(found))


def main(site: Path) -> int:
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, headless() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = wrong(browser, site, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    print("\n".join(found) or f"{len(list(site.rglob('*.html')))} pages, nothing wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
