"""The four pictures of the page in the docs, taken anew from the examples.

    python tests/page_pictures.py      writes docs/images/source.png, dst.png, program.png and time.png
"""

from __future__ import annotations

import base64
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from explained import ROOT, example
from headless import Browser, headless
from tilewright.report import page

FOLDER = ROOT / "docs" / "images"
WIDTH = 1100
COLOURS = 256
# Picture: example, what is done before, and the part of the page.
PIN = "document.querySelectorAll('.python .line').forEach(row => { if (row.textContent.includes('ttl.math.exp')) row.click(); })"
PICTURES = {
    "source": ("02_fused", PIN, "#source"),
    "dst": ("tilelang/07_flash_attention", "", ".region:nth-child(5)"),
    "program": ("10_matmul", "", "#program"),
    "time": ("10_matmul", "", "#time"),
}


def taken(browser: Browser, selector: str) -> bytes:
    """One element and a little around it."""
    box: dict[str, float] = browser.ask(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return { x: box.x + scrollX - 6, y: box.y + scrollY - 6, width: box.width + 12, height: box.height + 12 };",
        selector,
    )
    clip: dict[str, Any] = {**box, "scale": 1}
    found = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip})
    return base64.b64decode(found["data"])


PIXELS = """
const [picture, done] = arguments, image = new Image();
image.onload = () => {
  const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const data = context.getImageData(0, 0, image.width, image.height).data;
  let text = '';
  for (let i = 0; i < data.length; i += 32768) text += String.fromCharCode(...data.subarray(i, i + 32768));
  done([image.width, image.height, btoa(text)]);
};
image.src = 'data:image/png;base64,' + picture;
"""


def small(browser: Browser, picture: bytes) -> bytes:
    """The same picture in the colours that it has most of, a quarter of its size."""
    width, height, data = browser.driver.execute_async_script(PIXELS, base64.b64encode(picture).decode())
    pixels = np.frombuffer(base64.b64decode(data), np.uint8).reshape(height * width, 4)[:, :3]
    rough = (pixels >> 3).astype(np.int32) @ np.array([1 << 10, 1 << 5, 1])
    known, places, counts = np.unique(rough, return_inverse=True, return_counts=True)
    kept = np.argsort(-counts)[:COLOURS]
    colours = np.array([pixels[rough == known[each]].mean(axis=0) for each in kept])  # of each kind the mean of what is there
    kinds = np.stack([known >> 10, known >> 5 & 31, known & 31], axis=1) * 8 + 4
    nearest = ((kinds[:, None, :] - colours[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
    rows = nearest.astype(np.uint8)[places].reshape(height, width)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()  # a row begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", colours.round().astype(np.uint8).tobytes()), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, headless() as browser:
        for name, (script, first, selector) in PICTURES.items():
            file = Path(folder) / f"{name}.html"
            page.write(file, example(script)[0])
            browser.open(file, width=WIDTH)
            if first:
                browser.ask(first)
            (FOLDER / f"{name}.png").write_bytes(small(browser, taken(browser, selector)))
            print(f"{name}.png", (FOLDER / f"{name}.png").stat().st_size, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
