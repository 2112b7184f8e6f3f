"""The names of the language: one table of every spelling of both generations, and the objects behind names that only threads
may use.

Values of the table are canonical names. A spelling not listed here stands for itself. The compiler reads the functions; host
code must not call them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from types import FunctionType
from typing import Any

from tilewright import hardware
from tilewright.diagnostics import Diagnostic, KernelError, caller_span, fail
from tilewright.dtypes import DTYPES as KNOWN_DTYPES

# Attributes of the ``ttl`` module.
MODULE_NAMES = {
    "operation": "kernel",
    "atom": "kernel",
    "make_dataflow_buffer_like": "make_circular_buffer_like",
    "DataflowBuffer": "CircularBuffer",
    "node": "core",
}

# Keyword arguments of ``make_circular_buffer_like``.
BUFFER_ARGUMENTS = {"block_count": "buffer_factor"}

# Arguments of the kernel decorator that are options of a compilation under another name.
OPTION_NAMES = {
    "fp32_dest_acc_en": "fp32_dest_acc",
    "dst_full_sync_en": "full_sync",
    "math_fidelity": "math_fidelity",
    "math_approx_mode": "math_approx_mode",
}

# Flags inside the decorator's ``options="--ttl-…"`` that have a counterpart here: (option, value when on, value when off).
OPTION_FLAGS = {
    "ttl-fpu-binary-ops": ("fpu_binary_ops", True, False),
    "ttl-combine-pack-tiles": ("combine_packs", True, False),
}

# Flags of that text that change nothing here, and what stands for each.
OPTION_FLAGS_WITHOUT_EFFECT = {
    "ttl-maximize-dst": "always: DST is filled with as many tiles as fit",
    "ttl-block-matmul": "chosen by cost",
    "ttl-subblock-sync": "chosen by cost",
    "ttl-reduce-full-fp32": "f32_reductions=",
    "ttl-matmul-full-fp32": "products are summed in 32 bits where the result is f32",
    "ttl-strict-f32-acc": "sums that do not fit DST go on in L1, and explain says so",
    "ttl-compiler-dfbs": "always: values get buffers where they need them",
    "ttl-l1-budget": "the chip's L1; what exceeds it is TW302",
    "ttl-accumulation-strategy": "chosen by cost: DST where a running value fits, else L1",
    "ttl-reuse-user-dfbs": "buffers share where the chip has too few of them; allocation_group= asks for it",
    "ttl-specialize-cores": "one text serves all cores",
    "ttl-pipe-computed-addresses": "receivers announce their blocks",
    "ttl-pipe-capacity-sync": "receivers announce their blocks",
    "ttl-pipe-batch-tiles": "one transfer for each block",
    "ttl-memory-model": "buffers are the launcher's",
}
FLAG_VALUES = {"ttl-accumulation-strategy": ("auto", "dst", "l1-pack")}  # of flags that take a word

# Decorator arguments other tools take and that need no action here: data is tiled, outputs are ordinary arguments.
DECORATOR_WITHOUT_EFFECT = ("indexing_maps", "iterator_types", "num_outs", "memory_space", "tiled", "verbose")

# Functions on blocks that are not elementwise rows of the op table: spelling below ``ttl.`` -> handler.
BLOCK_FUNCTIONS = {
    **{f"{room}.{name}": name for room in ("math", "block") for name in (
        "reduce_sum", "reduce_max", "reduce_min", "reduce_mean", "broadcast", "transpose", "squeeze", "unsqueeze", "fill",
        "matmul", "typecast", "cumsum", "argmax", "argmin", "topk", "dropout",
    )},
    "math.bcast": "broadcast",
}  # fmt: skip

# Names that functions take their blocks by, in order; spellings of one place stand together.
OPERAND_NAMES = {
    "where": (("condition", "cond"), ("true_value",), ("false_value",)),
    "mask": (("expr",), ("mask", "mask_blk")),
    "mask_posinf": (("expr",), ("mask", "mask_blk")),
}
ANY_OPERAND_NAMES = (("expr", "a", "x", "block", "input"), ("b", "y", "other"), ("c",))

DIMS_NAMES = ("dim", "axis", "axes")  # of reductions and broadcasts

# Other names of parameters: the specification's, the simulator's and torch's differ.
PARAMETER_NAMES = {
    "elu": {"alpha": "slope"},
    "leaky_relu": {"negative_slope": "slope"},
    "hardtanh": {"min_val": "min", "max_val": "max"},
    "clamp": {"min_val": "min", "max_val": "max"},
    "softplus": {"beta_recip": "beta_reciprocal"},
    "celu": {"alpha_reciprocal": "alpha_recip"},
    "relu_max": {"limit": "upper_limit"},
    "relu_min": {"limit": "lower_limit"},
}

# Spellings of dtypes a user may write for typecast, fill and tensors, by the last word of their text.
DTYPES = {"float": "f32", **{spelling: dtype.name for dtype in KNOWN_DTYPES for spelling in (dtype.name, dtype.api)}}


def canonical(name: str) -> str:
    return MODULE_NAMES.get(name, name)


def dtype_name(text: str) -> str | None:
    """``DataType.BFLOAT16``, ``torch.bfloat16``, ``<class 'numpy.float32'>`` … -> ``bf16``; None if not a dtype we know."""
    word = text.strip("<>' ").split(".")[-1].strip("'> ").lower()
    return DTYPES.get(word)


class LanguageFunction:
    """One function of the language. ``name`` is what the compiler dispatches on."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        remedy = "call it in a function marked @ttl.compute() or @ttl.datamovement()"
        raise fail("TW009", f"ttl.{self.name} runs inside a thread only", caller_span(self.name.split(".")[-1]), help=remedy)

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


@cache
def function_names() -> dict[str, None]:
    """In the order of the tables."""
    from tilewright.dialects.tile_ops import BY_PYTHON, COMPOSITE_BY_PYTHON

    return dict.fromkeys((*BY_PYTHON, *COMPOSITE_BY_PYTHON, *BLOCK_FUNCTIONS))


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
