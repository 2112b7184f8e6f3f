"""``T.alloc_global``: memory outside the core for what a block puts down and takes up again.

Reader and writer do not wait for each other, so nothing goes out and comes back. What a block stores there and loads again in the
same piece of code stays in the core, as a fragment. What another block or iteration stored would need the memory, and is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.frontend.tilelang.dtypes import element_name, tile_dtype
from tilewright.frontend.tilelang.symbols import ALONG, SAME, Fragment, Read, Tensor
from tilewright.frontend.tilelang.tile_program import Assign, Load, Statement, Store
from tilewright.frontend.tilelang.trouble import Trouble
from tilewright.integers import Value

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reading import Reading

WORKSPACE = "workspace"


def alloc_global(reading: Reading, shape: Any, dtype: Any = "float32", *_scope: Any, **_hints: Any) -> Tensor:
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    element = element_name(dtype)
    # It is no argument of the kernel, so its number means nothing.
    return Tensor("workspace", tuple(int(size) for size in sizes), element, tile_dtype(element, reading), -1, WORKSPACE)


class Workspaces:
    """What the blocks of each workspace hold, and in which piece of code they were stored."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[Tensor, tuple[Value, ...], tuple[int, ...]], tuple[list[Statement], Fragment]] = {}

    def replaced(self, reading: Reading, statement: Statement) -> Statement:
        """A store to a workspace, or a load from one, as the assignment it is; other statements as they are."""
        if not isinstance(statement, (Load, Store)) or statement.window.tensor.made != WORKSPACE:
            return statement
        window, body = statement.window, reading.bodies[-1]
        key = (window.tensor, window.starts, window.extents)
        if isinstance(statement, Store):
            for other in [other for other in self.blocks if other[0] is window.tensor and other != key]:
                del self.blocks[other]  # it may overlap
            source = statement.source
            kept = reading.fragment(source.shape, window.tensor.dtype, "fragment", f"{source.name}_kept")
            self.blocks[key] = (body, kept)
            return Assign(kept, Read(source, None, ALONG if source.is_vector else SAME), statement.place)
        found = self.blocks.get(key)
        if found is None or found[0] is not body:
            raise Trouble(
                "TW001",
                "a block of T.alloc_global is read that was not stored in the same piece of code",
                help="blocks do not wait for each other: make it a parameter, and write one function per launch",
                word="copy",
            )
        return Assign(statement.target, Read(found[1], None, ALONG if statement.target.is_vector else SAME), statement.place)
