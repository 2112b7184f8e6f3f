"""Names that mean something inside threads only: the compiler reads them, host code must not call them; annotations."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

from tilewright import hardware
from tilewright.diagnostics import Diagnostic, KernelError, fail
from tilewright.lang.building import caller_span
from tilewright.lang.names import BLOCK_FUNCTIONS


class LanguageFunction:
    """One function of the language. ``name`` is what the compiler dispatches on."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise fail(
            "TW009",
            f"ttl.{self.name} runs inside a thread only",
            caller_span(self.name.split(".")[-1]),
            help="call it in a function marked @ttl.compute() or @ttl.datamovement()",
        )

    def __repr__(self) -> str:
        return f"ttl.{self.name}"


# What to write instead of names of the language that this release does not compile.
MESH = "one operation runs on one chip: exchange tensors between calls with ttnn.all_gather, ttnn.all_reduce and such"
RESOURCES = "the launcher makes what the kernel needs; ttl.call_extern_func takes arguments of external code"
INSTEAD = {
    "ScalarType": "let the function push its result, and read it with ttl.read_index",
    "DispatchCondition": "decide by an integer: an argument, ttl.node(), or ttl.read_index",
    "CompilerOptions": 'options="--ttl-…" of the decorator or of a call, or options by name',
    "build_info": "`tilewright doctor` says what is installed",
    "ops": "tilewright.kernels has matmul, attention, softmax, rmsnorm and others, and examples/ has a decoder layer",
    **dict.fromkeys(
        (
            "AllToAllTransfer", "AxisNeighborTransfer", "DeviceDomain", "DeviceRange", "DeviceRef", "DomainComponent",
            "GatherTransfer", "ScatterTransfer", "StencilTransfer", "TransferEdge", "TransferGraph", "FabricManagerClaim",
            "FabricConnectionBinding", "FabricConnectionRequirement",
        ),
        MESH,
    ),
    **dict.fromkeys(
        ("CoreRuntimeArgs", "KernelDefine", "KernelRuntimeResources", "ProgramRuntimeResources"),
        RESOURCES,
    ),
}


class NotYetSupported(LanguageFunction):
    """A name of the language that this release does not compile."""

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise unsupported(self.name, caller_span(self.name))

    def __getattr__(self, word: str) -> Any:
        if word.startswith("_"):
            raise AttributeError(word)
        raise UnknownName(unsupported(self.name, caller_span(self.name)).diagnostics[0])


def unsupported(name: str, span: Any) -> KernelError:
    remedy = INSTEAD.get(name, "see docs/language.md for what is")
    return fail("TW008", f"ttl.{name} is not supported yet", span, help=remedy)


class UnknownName(KernelError, AttributeError):
    """A name the language does not have. Also an AttributeError, so that ``hasattr`` and ``getattr`` with a default work."""


def unknown_name(owner: str, word: str, known: Iterable[str]) -> UnknownName:
    return UnknownName(
        Diagnostic(
            code="TW003",
            message=f"{owner} has no '{word}'",
            span=caller_span(word),
            help=suggestion(owner, word, known) or "docs/language.md and docs/ops.md list what exists",
        )
    )


def suggestion(owner: str, word: str, known: Iterable[str]) -> str:
    import difflib

    names = sorted(known)
    within = [name for name in names if word in name.split("_")]  # sum: reduce_sum
    close = within[:3] or difflib.get_close_matches(word, names, n=3, cutoff=0.65)
    return f"did you mean {' or '.join(f'{owner}.{item}' for item in close)}?" if close else ""


class FunctionFamily:
    """``ttl.math`` or ``ttl.block``: functions come from the op table when they are asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, word: str) -> LanguageFunction:
        if word.startswith("__"):
            raise AttributeError(word)
        name = find_function(f"{self._name}.{word}")
        if name is None:
            raise unknown_name(f"ttl.{self._name}", word, dir(self))
        return LanguageFunction(name)

    def __dir__(self) -> list[str]:
        return [name.split(".")[1] for name in function_names() if name.startswith(self._name + ".")]

    def __repr__(self) -> str:
        return f"ttl.{self._name}"


def function_names() -> tuple[str, ...]:
    from tilewright.dialects.tile_ops import BY_PYTHON, COMPOSITE_BY_PYTHON

    return (*BY_PYTHON, *COMPOSITE_BY_PYTHON, *BLOCK_FUNCTIONS)


def find_function(name: str) -> str | None:
    """``math.x`` and ``block.x`` are one family: releases moved names between them."""
    known = function_names()
    if name in known:
        return name
    family, _, word = name.partition(".")
    other = f"{'block' if family == 'math' else 'math'}.{word}"
    return other if other in known else None


TILE_SHAPE = (hardware.TILE_ROWS, hardware.TILE_COLS)

# Types as the language's documentation names them. Nothing checks them: a kernel is compiled for the values it gets.
INTEGERS = ("PositiveInt", "NaturalInt", "Size", "Index", "Count")
PLACES = ("Shape", "NodeCoord", "NodeRange", "CoreCoord", "CoreRange", "DstT")
OBJECTS = (
    "Block", "BlockExpr", "DFB", "Transfer", "TensorSlice", "PipeIdentity", "UnicastRemoteSemaphore", "MulticastRemoteSemaphore",
    "ReceiveRequest", "ReadyReceive", "TensorBlock", "CopyTransferHandler",
)  # fmt: skip


class AnnotationType(type):
    """The class of an annotation: it may be subscripted, and says what it is for if it is called."""

    def __getitem__(cls, _item: Any) -> Any:
        return cls

    def __call__(cls, *_args: Any, **_kwargs: Any) -> Any:
        raise TypeError(f"ttl.{cls.__name__} is a type for annotations; wait(), reserve() and ttl.copy make such objects")


def annotation_names() -> dict[str, Any]:
    return {
        "TILE_SHAPE": TILE_SHAPE,
        **dict.fromkeys(INTEGERS, int),
        **dict.fromkeys(PLACES, Any),
        **{name: AnnotationType(name, (), {}) for name in OBJECTS},
    }


def is_of_language(function: FunctionType) -> bool:
    """One of our own, which threads do not contain. The library's kernels are written as a user's are, helpers included."""
    return function.__module__.startswith("tilewright.") and not function.__module__.startswith("tilewright.kernels.")
