"""Writes ``docs/errors.md`` from the error codes: ``python -m tilewright.report.errors_page [FILE]``.

Every error code that a kernel can have has an example here: a wrong kernel and its mended form. Lines begin with ``-`` (wrong),
``+`` (mended) or a space (they stay); ``…`` stands for lines that are left out. Each is part of a kernel below
``tests/errors``, with which a test tries both.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from tilewright.error_codes import CODES

EXAMPLES = {
    "TW001": """
- return a
""",
    "TW002": """
- o.store(a + c)
+ o.store(a + b)
""",
    "TW003": """
- o.store(ttl.math.expp(a))
+ o.store(ttl.math.exp(a))
""",
    "TW004": """
- o.store(a + b_cb)
+ o.store(a + b)
""",
    "TW005": """
  if step >= 0:
-     load(buffer, tensor, step + 1)
+     pass
…
- load(a_cb, lhs, 1)
+ load(a_cb, lhs, 0)
""",
    "TW009": """
- compute()
""",
    "TW010": """
- def kernel(lhs, out):
-     ttl.make_dataflow_buffer_like(lhs, shape=(1, 1))
+ def kernel(lhs, out):
+     a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1))
+
+     @ttl.datamovement()
+     def read():
+         with a_cb.reserve() as blk:
+             ttl.copy(lhs[0, 0], blk).wait()
+
+     @ttl.datamovement()
+     def write():
+         with a_cb.wait() as blk:
+             ttl.copy(blk, out[0, 0]).wait()
""",
    "TW012": """
- if x == 0:
-     blk = a_cb.reserve()
- else:
-     blk = b_cb.reserve()
- ttl.copy(lhs[0:2, 0:2], blk).wait()
+ with a_cb.reserve() as blk:
+     ttl.copy(lhs[0:2, 0:2], blk).wait()
+ with b_cb.reserve() as blk:
+     ttl.copy(rhs[0:2, 0:2], blk).wait()
""",
    "TW013": """
- ttl.copy(blk + blk, out[0:2, 0:2]).wait()
+ ttl.copy(blk, out[0:2, 0:2]).wait()
""",
    "TW014": """
- ttl.copy(lhs[0:2, 0:2], o).wait()
+ o.store(a + b)
""",
    "TW017": """
- depth = lhs.shape[5]
+ depth = lhs.shape[1]
""",
    "TW018": """
- result.store(a * 2.0)
+ result.store(a * 2.0 + 1)
…
- ttl.copy(result_out + 1, out[0:2, 0:2])
+ ttl.copy(result_out, out[0:2, 0:2])
""",
    "TW101": """
- o.store(a - ttl.math.reduce_max(b, dims=[1]))
+ o.store(a - ttl.math.reduce_max(b[0:2, :], dims=[1]))
""",
    "TW102": """
- o.store(a + b)
+ o.store(a + ttl.math.typecast(b, "bf16"))
""",
    "TW103": """
- ttl.copy(lhs[2:4, 0:2], blk).wait()
+ ttl.copy(lhs[0:2, 0:2], blk).wait()
""",
    "TW104": """
- ttl.copy(lhs, blk).wait()
+ ttl.copy(lhs[0:2, 0:2], blk).wait()
""",
    "TW105": """
- kernel(lhs.reshape(-1), rhs, out)
+ kernel(lhs, rhs, out)
""",
    "TW106": """
- kernel(lhs.astype(numpy.float64), rhs, out)
+ kernel(lhs, rhs, out)
""",
    "TW108": """
- a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(0, 2), block_count=2)
+ a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
""",
    "TW109": """
- ttl.copy(lhs[0:2], blk).wait()
+ ttl.copy(lhs[0:2, 0:2], blk).wait()
""",
    "TW110": """
- @ttl.operation(grid=(1, 1))
+ @ttl.operation(grid=(2, 1))
…
  pipe = ttl.Pipe(src=(0, 0), dst=(1, 0))
""",
    "TW112": """
- o.store(a - before)
+ o.store(a - ttl.block.broadcast(before, dims=[1], shape=(1, 1)))
""",
    "TW115": """
- half = ttl.make_dfb("bf16", shape=(1, 1), tile=(8, 32))
+ half = ttl.make_dfb("bf16", shape=(1, 1), tile=(32, 32))
""",
    "TW201": """
- if column == 0:
-     a_cb.pop()
+ a_cb.pop()
""",
    "TW202": """
  o.store(a + b)
- o.push()
""",
    "TW203": """
- o.store(a + o)
+ o.store(a + b)
""",
    "TW204": """
- with out_cb.wait() as blk:
+ with b_cb.reserve() as blk:
      ttl.copy(rhs[0:2, 0:2], blk).wait()
""",
    "TW205": """
  o = out_cb.reserve()
+ o.store(result)
  o.push()
""",
    "TW206": """
  with a_cb.wait() as a, b_cb.wait() as b:
      result = b * 2
- o.store(a + result)
+     o.store(a + result)
""",
    "TW207": """
- with a_cb.wait() as blk:
-     ttl.copy(blk, out[0:2, 0:2]).wait()
""",
    "TW208": """
  with a_cb.reserve() as blk:
      ttl.copy(lhs[0:2, 0:2], blk).wait()
+ with b_cb.reserve() as blk:
+     ttl.copy(rhs[0:2, 0:2], blk).wait()
""",
    "TW209": """
- with b_cb.reserve() as blk:
-     ttl.copy(rhs[0:2, 0:2], blk).wait()
""",
    "TW210": """
- for _ in range(2):
-     with a_cb.reserve() as blk:
-         ttl.copy(lhs[0:2, 0:2], blk).wait()
+ with a_cb.reserve() as blk:
+     ttl.copy(lhs[0:2, 0:2], blk).wait()
""",
    "TW211": """
  for _ in range(4):
      with a_cb.reserve() as blk:
          ttl.copy(lhs[0:2, 0:2], blk).wait()
- for _ in range(4):
      with b_cb.reserve() as blk:
          ttl.copy(rhs[0:2, 0:2], blk).wait()
""",
    "TW213": """
- a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=10**30)
+ a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
""",
    "TW214": """
- block.push()
- transfer.wait()
+ transfer.wait()
+ block.push()
""",
    "TW215": """
  with a_cb.reserve() as blk:
      ttl.copy(a[row, column], blk).wait()
-     ttl.copy(blk, pipe).wait()
+     if column == 0:
+         ttl.copy(blk, pipe).wait()
+ if column == 1:
+     with a_cb.reserve() as blk:
+         ttl.copy(pipe, blk).wait()
…
- with a_cb.wait() as x, y_cb.reserve() as o:
-     o.store(x + x)
+ with a_cb.wait() as x, y_cb.reserve() as o:
+     o.store(x + x)
+ if ttl.node(dims=1) == 1:
+     with a_cb.wait() as x:
+         pass
""",
    "TW216": """
- wide_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
+ wide_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
…
- ttl.copy(a[row, 0:2], blk).wait()
+ ttl.copy(a[row, 0], blk).wait()
""",
    "TW217": """
  one = ttl.copy(pipe, first)
+ one.wait()
  two = ttl.copy(pipe, second)
- one.wait()
  two.wait()
""",
    "TW218": """
  net.if_dst(take)
  if column == 0:
      with a_cb.reserve() as blk:
          ttl.copy(a[row, column], blk).wait()
+         net.if_src(lambda pipe: ttl.copy(blk, pipe).wait())
""",
    "TW301": """
- for _ in range(31):
+ for _ in range(8):
""",
    "TW302": """
- a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(16, 16), block_count=4)
+ a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(16, 16), block_count=1)
""",
    "TW303": """
- @ttl.operation(grid=(9, 8))
+ @ttl.operation(grid=(8, 8))
""",
    "TW304": """
- a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
+ a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=3)
…
  for _ in range(3):
      with a_cb.reserve() as blk:
          ttl.copy(lhs[0:2, 0:2], blk).wait()
-     with b_cb.reserve() as blk:
-         ttl.copy(rhs[0:2, 0:2], blk).wait()
+ with b_cb.reserve() as blk:
+     ttl.copy(rhs[0:2, 0:2], blk).wait()
""",
    "TW305": """
- net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(x, x + 1), row)) for x, row in others])
+ rest = [(slice(1, 7), 0), (slice(0, 7), slice(1, 3))]
+ net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=cores) for cores in rest])
""",
    "TW307": """
- a_cb = ttl.make_dataflow_buffer_like(a, shape=(8, 10), block_count=4)
+ a_cb = ttl.make_dataflow_buffer_like(a, shape=(8, 10), block_count=3)
""",
}


FAMILIES = {
    "TW0": "Language",
    "TW1": "Shapes and types",
    "TW2": "Buffers and synchronisation",
    "TW3": "Hardware limits",
    "TW4": "DST",
    "TW5": "Found while running",
    "TW6": "Device and environment",
}
INTRODUCTION = (
    "Made from the error codes by `python -m tilewright.report.errors_page docs/errors.md`; a test compares the two. "
    "`tilewright explain CODE` prints the same text. Where a kernel can be wrong in that way, a part of one "
    "follows: the lines with `-` are wrong, those with `+` mend it. A test tries both."
)


def page() -> str:
    parts = ["# Error codes", "", textwrap.fill(INTRODUCTION, 100)]
    for prefix, family in FAMILIES.items():
        codes = {code: entry for code, entry in sorted(CODES.items()) if code.startswith(prefix)}
        if not codes:
            continue
        parts += ["", f"## {family}"]
        for code, entry in codes.items():
            parts += ["", f"### {code}: {entry.title}", "", textwrap.fill(entry.page, 100, break_long_words=False)]
            if code in EXAMPLES:
                parts += ["", "```diff", EXAMPLES[code].strip("\n"), "```"]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/errors.md").write_text(page(), encoding="utf-8")
