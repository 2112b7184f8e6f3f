"""Names of the language that stand in annotations and constants only."""

from __future__ import annotations

from typing import Any

from tilewright import hardware

TILE_SHAPE = (hardware.TILE_ROWS, hardware.TILE_COLS)

# Types as the language's documentation names them. Nothing checks them: a kernel is compiled for the values it gets.
INTEGERS = ("PositiveInt", "NaturalInt", "Size", "Index", "Count")
PLACES = ("Shape", "NodeCoord", "NodeRange", "CoreCoord", "CoreRange", "DstT")
OBJECTS = (
    "Block", "BlockExpr", "DFB", "Transfer", "TensorSlice", "PipeIdentity", "UnicastRemoteSemaphore", "MulticastRemoteSemaphore",
)  # fmt: skip


class AnnotationType(type):
    """The class of an annotation: it may be subscripted, and says what it is for if it is called."""

    def __getitem__(cls, _item: Any) -> Any:
        return cls

    def __call__(cls, *_args: Any, **_kwargs: Any) -> Any:
        raise TypeError(f"ttl.{cls.__name__} is a type for annotations; wait(), reserve() and ttl.copy make such objects")


def names() -> dict[str, Any]:
    return {
        "TILE_SHAPE": TILE_SHAPE,
        **dict.fromkeys(INTEGERS, int),
        **dict.fromkeys(PLACES, Any),
        **{name: AnnotationType(name, (), {}) for name in OBJECTS},
    }
