"""How tensors lie in tiles: which two dimensions are tiled, what is padded, and windows in tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright import hardware
from tilewright.diagnostics import fail
from tilewright.frontend.tilelang.symbols import Fragment, Tensor
from tilewright.frontend.tilelang.tile_program import Load, Place, Statement, Store, TileProgram, Window, walk
from tilewright.integers import UNBOUNDED, Value, bounds, linear, make
from tilewright.lang.tensors import TRAVELS_AS
from tilewright.program import TensorSpec
from tilewright.records import record
from tilewright.source_places import span_of_node

if TYPE_CHECKING:
    from numpy.typing import NDArray

TILE = hardware.TILE_ROWS


@record
class TensorLayout:
    """``order`` are the tensor's axes: untiled ones first, then those of tile rows and columns (rows: None for a vector)."""

    name: str
    shape: tuple[int, ...]  # as the user has it
    dtype: str
    lead: tuple[int, ...]
    rows: int | None
    columns: int
    padded: tuple[int, ...]  # untiled sizes, then tiled ones in whole tiles
    element: str = ""  # the type as the kernel names it
    made: str = ""  # what the launcher fills it with; empty for the user's tensors
    origin: Any = None  # see `Tensor.origin`
    stored: bool = True  # the kernel writes to it

    @property
    def spec(self) -> TensorSpec:
        element = self.element if self.element in TRAVELS_AS else ""
        return TensorSpec(name=self.name, shape=self.padded, dtype=self.dtype, element=element)

    @property
    def is_plain(self) -> bool:
        """The user's tensor itself can be used."""
        return self.padded == self.shape and self.lead == tuple(range(len(self.lead)))

    @property
    def order(self) -> tuple[int, ...]:
        return (*self.lead, *(() if self.rows is None else (self.rows,)), self.columns)

    def packed(self, array: NDArray[Any]) -> NDArray[Any]:
        """The values in a padded array of this layout; padding is zero."""
        import numpy as np

        inner = np.transpose(array, self.order)
        if self.rows is None:
            inner = np.expand_dims(inner, -2)
        result = np.zeros(self.padded, array.dtype)
        result[tuple(slice(0, size) for size in inner.shape)] = inner
        return result

    def unpacked(self, padded: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        sizes = [self.shape[axis] for axis in self.order]
        if self.rows is None:
            sizes.insert(len(sizes) - 1, 1)
        inner = padded[tuple(slice(0, size) for size in sizes)]
        if self.rows is None:
            inner = np.squeeze(inner, -2)
        return np.transpose(inner, np.argsort(self.order))

    def tile_starts(self, window: Window, place: Place) -> list[Value]:
        starts = [window.starts[axis] for axis in self.lead]
        starts.append(0 if self.rows is None else in_tiles(window.starts[self.rows], place, self.name))
        return [*starts, in_tiles(window.starts[self.columns], place, self.name)]

    def tile_extents(self, window: Window) -> tuple[int, int]:
        rows = 1 if self.rows is None else window.extents[self.rows] // TILE
        return rows, window.extents[self.columns] // TILE


def in_tiles(value: Value, place: Place, name: str) -> Value:
    """An element index that is a multiple of the tile size, in tiles."""
    terms, constant = linear(value)
    if constant % TILE or any(factor % TILE for _, factor in terms):
        raise fail(
            "TW105",
            f"this block of '{name}' does not start at a tile",
            span_of_node(place.file, place.node),
            help=f"start blocks at multiples of {TILE}: block sizes are multiples of {TILE}",
        )
    total: Value = constant // TILE
    for term, factor in sorted(terms, key=lambda item: str(item[0])):
        total = make("+", make("*", term, factor // TILE), total)
    return total


def fragment_tiles(fragment: Fragment) -> tuple[int, ...]:
    """Tiles of a fragment: (rows, columns), or (length,) of a vector."""
    sizes = tuple(size for size in fragment.shape if size != 1) or fragment.shape
    if len(sizes) > 2:
        raise _misfit(fragment, f"has {len(sizes)} dimensions", "use fragments of two dimensions and loop over the others")
    if any(size % TILE for size in sizes):
        padded = tuple(-(-size // TILE) * TILE for size in fragment.shape)
        raise _misfit(fragment, f"{fragment.shape} is not whole tiles of {TILE}x{TILE}", f"make it {padded}")
    return tuple(size // TILE for size in sizes)


def _misfit(fragment: Fragment, what: str, help: str) -> Exception:
    place = fragment.place
    return fail("TW105", f"fragment '{fragment.name}' {what}", span_of_node(place.file, place.node), help=help)


def tensor_layouts(program: TileProgram) -> dict[Tensor, TensorLayout]:
    found: dict[Tensor, TensorLayout] = {}
    for tensor in program.tensors:
        uses = [s for s in walk(program.body) if isinstance(s, (Load, Store)) and s.window.tensor is tensor]
        found[tensor] = _layout(tensor, uses)
    return found


def _layout(tensor: Tensor, uses: Sequence[Statement]) -> TensorLayout:
    axes: set[int] = set()
    rank = len(tensor.shape)
    for use in uses:
        assert isinstance(use, (Load, Store))
        own = {axis for axis, extent in enumerate(use.window.extents) if extent > 1}
        span = span_of_node(use.place.file, use.place.node)
        if len(own) > 2:
            raise fail(
                "TW109",
                f"{len(own)} dimensions of '{tensor.name}' in one copy",
                span,
                help="copy two dimensions and loop over the others",
            )
        if axes and own != axes:
            raise fail(
                "TW109",
                f"'{tensor.name}' is copied along dimensions {sorted(axes)} elsewhere and {sorted(own)} here",
                span,
                help="a tensor is tiled along the same two dimensions everywhere",
            )
        axes = own
    tiled = sorted(axes) or list(range(max(0, rank - 2), rank))
    rows, columns = (tiled[0], tiled[1]) if len(tiled) == 2 else (None, tiled[0])
    lead = tuple(axis for axis in range(rank) if axis not in tiled)
    sizes = [tensor.shape[axis] for axis in lead]
    sizes.append(TILE if rows is None else _padded(tensor, rows, uses))
    padded = (*sizes, _padded(tensor, columns, uses))
    stored = any(isinstance(use, Store) for use in uses)
    return TensorLayout(
        tensor.name, tensor.shape, tensor.format, lead, rows, columns, padded, tensor.dtype, tensor.made, tensor.origin, stored
    )


def _padded(tensor: Tensor, axis: int, uses: Sequence[Statement]) -> int:
    """Whole tiles, and room for blocks that stick out: copies read zeros there and write nothing."""
    size = -(-tensor.shape[axis] // TILE) * TILE
    for use in uses:
        assert isinstance(use, (Load, Store))
        last = bounds(use.window.starts[axis])[1]
        if last < UNBOUNDED:
            size = max(size, min(last + use.window.extents[axis], tensor.shape[axis] + use.window.extents[axis] - 1))
    return -(-size // TILE) * TILE
