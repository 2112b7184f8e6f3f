"""The names of ``T``: functions that compute a value, what each other name is, and why some are refused."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from tilewright.frontend.tilelang.dtypes import TILE_FORMATS, DataType, converted
from tilewright.frontend.tilelang.primitives import ACTIONS, atomic_add, cumsum
from tilewright.frontend.tilelang.reader import macro
from tilewright.frontend.tilelang.reading import Reading, alloc_global, current
from tilewright.frontend.tilelang.statements import Counted, KernelDomain, ParallelDomain, PersistentDomain
from tilewright.frontend.tilelang.symbols import (
    Apply,
    Index,
    Number,
    Trouble,
    combine,
    expression,
    if_then_else,
    is_integer,
    is_symbolic,
    negated,
    plain,
    raw,
)
from tilewright.integers import OPERATORS, make
from tilewright.lang.tilelang_tensors import Dimension, DynamicFactory, TensorFactory
from tilewright.narrowing import as_tuple

# T's name, the row of the op table, and its value on a plain number.
UNARY: dict[str, tuple[str, Callable[[float], float]]] = {
    **{name: (name, getattr(math, name)) for name in (
        "exp", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
        "asinh", "acosh", "atanh", "erf", "floor", "ceil", "trunc", "isnan", "isinf",
    )},
    "exp2": ("exp2", lambda x: 2.0**x),
    "rsqrt": ("rsqrt", lambda x: 1 / math.sqrt(x)),
    "sigmoid": ("sigmoid", lambda x: 1 / (1 + math.exp(-x))),
    "round": ("round", round),
    "abs": ("abs", abs),
    "fabs": ("abs", abs),
}  # fmt: skip
FAST = {f"__{name}": name for name in ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan")}
BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "max": ("max", max),
    "min": ("min", min),
    "pow": ("**", lambda a, b: a**b),
    "power": ("**", lambda a, b: a**b),
    "fmod": ("fmod", math.fmod),
    "atan2": ("atan2", math.atan2),
}


def unary(name: str) -> Callable[[Any], Any]:
    row, known = UNARY[FAST.get(name, name)]

    def call(value: Any, *_span: Any, **_named: Any) -> Any:
        if not is_symbolic(value):
            return known(value)
        if isinstance(value, Number):
            return Number(float(known(value.value)))
        return Apply(row, (expression(value),))

    return call


def binary(name: str) -> Callable[[Any, Any], Any]:
    row, known = BINARY[name]

    def call(left: Any, right: Any, *_span: Any) -> Any:
        if not is_symbolic(left) and not is_symbolic(right):
            return known(left, right)
        if is_integer(left) and is_integer(right) and row in ("max", "min"):
            return plain(make(row, raw(left), raw(right)))
        return Apply(row, (expression(left), expression(right)))

    return call


def clamp(value: Any, low: Any, high: Any) -> Any:
    return binary("min")(binary("max")(value, low), high)


def cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, str):  # the older order: T.Cast("float32", value)
        value, dtype = dtype, value
    return converted(dtype, value)


def joined(symbol: str, python: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        return functools.reduce(lambda a, b: combine(symbol, a, b) if is_symbolic(a) or is_symbolic(b) else python(a, b), values)

    return call


both, either = joined("and", lambda a, b: a and b), joined("or", lambda a, b: a or b)


def without_span(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Builders of TVM name a place in the source last."""

    def call(left: Any, right: Any, *_span: Any) -> Any:
        return function(left, right)

    return call


def ceildiv(value: Any, divisor: Any) -> Any:
    return (value + divisor - 1) // divisor


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def infinity(dtype: Any = "float32") -> float:
    del dtype
    return math.inf


def smallest(dtype: Any = "float32") -> float:
    return -largest(dtype)


def largest(dtype: Any = "float32") -> float:
    return 65504.0 if "16" in str(dtype) and "b" not in str(dtype) else 3.3895313892515355e38


def truncated_division(left: Any, right: Any) -> Any:
    if is_symbolic(left) or is_symbolic(right):
        return left // right
    return int(left / right)


def truncated_remainder(left: Any, right: Any) -> Any:
    return left % right if is_symbolic(left) or is_symbolic(right) else int(math.fmod(left, right))


def refuse_reinterpretation(*_args: Any) -> Any:
    remedy = "convert values with T.cast; packed formats come in as bfp8_b tensors"
    raise Trouble("TW001", "bytes read as another type", help=remedy)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: unary(name) for name in (*UNARY, *FAST)},
    **{name: binary(name) for name in BINARY},
    "if_then_else": if_then_else,
    "Select": if_then_else,
    "clamp": clamp,
    "cast": cast,
    "Cast": cast,
    "And": both,
    "Or": either,
    "Not": negated,
    "any_of": either,
    "all_of": both,
    "fma": multiply_add,
    "ceildiv": ceildiv,
    "floordiv": OPERATORS["//"],
    "floormod": OPERATORS["%"],
    "truncdiv": truncated_division,
    "truncmod": truncated_remainder,
    "infinity": infinity,
    "max_value": largest,
    "min_value": smallest,
    "reinterpret": refuse_reinterpretation,
    "add": OPERATORS["+"],
    "sub": OPERATORS["-"],
    "mul": OPERATORS["*"],
    "bitwise_and": without_span(OPERATORS["&"]),
    "bitwise_or": without_span(OPERATORS["|"]),
    "bitwise_xor": without_span(OPERATORS["^"]),
    "shift_left": without_span(OPERATORS["<<"]),
    "shift_right": without_span(OPERATORS[">>"]),
}


# Settings of another machine: they change how fast a kernel is there, never what it computes.
HINTS = (
    "use_swizzle", "annotate_layout", "annotate_l2_hit_ratio", "annotate_safe_value", "annotate_padding", "sync_threads",
    "sync_warp", "no_set_max_nreg", "set_max_nreg", "inc_max_nreg", "dec_max_nreg", "disable_warp_group_reg_alloc",
    "annotate_producer_reg_dealloc", "annotate_consumer_reg_alloc", "device_assert", "assume", "evaluate", "pdl_sync",
    "pdl_trigger", "annotate_compile_flags", "attr", "func_attr", "fence_proxy_async", "ptx_wait_group", "cp_async_wait",
)  # fmt: skip

THREADS = "threads are not visible on this machine: write loops over elements as T.Parallel and let the compiler place them"
TRANSFERS = "use T.copy in T.Pipelined(…, num_stages=n): the reader and writer processors already move data in the background"
ATOMICS = "T.atomic_add works; else give each block its own part of the output, and join the parts in a second kernel"
REASONS = {
    ATOMICS: ("atomic",),
    THREADS: (
        "get_thread_binding",
        "get_thread_bindings",
        "get_lane_idx",
        "get_warp_idx",
        "thread_binding",
        "launch_thread",
        "env_thread",
        "shfl",
        "warp",
        "tvm_",
    ),
    "take the block's coordinates from 'with T.Kernel(…) as (bx, by)'": ("get_block_binding",),
    "write the loop as T.Parallel; the vector unit works on whole tiles": ("vectorized",),
    TRANSFERS: (
        "tma",
        "mbarrier",
        "barrier",
        "alloc_barrier",
        "create_list_of_mbarrier",
        "create_tma_descriptor",
        "alloc_descriptor",
    ),
    "write it with T.gemm, T.copy and T.Parallel": ("ptx",),
    "use T.gemm": ("wgmma", "tcgen05", "mma", "dp4a"),
    "sparse products are not supported: use T.gemm": ("gemm_sp",),
    "processors are specialised already (reader, compute, writer): write the plain kernel": ("ws", "attr_ws", "WS"),
    "use T.alloc_fragment": ("alloc_tmem",),
    "write one function per launch: blocks do not wait for each other": ("sync_grid",),
    "use T.reduce_sum or T.gemm": ("alloc_reducer", "finalize_reducer"),
    "declare the parameter: A: T.Tensor(shape, dtype)": ("make_tensor", "ptr", "match_buffer"),
    "write it with T.reduce_max": ("topk",),
    "blocks are shared out over the cores already: write T.Kernel(grid_x, grid_y)": ("PersistentTileScheduler",),
    "write it with the functions of T": ("call_extern", "call_intrin", "call_pure_extern", "import_source"),
    "print on the host; `tilewright explain` shows what the kernel does": ("print",),
    "gather the patches on the host and use T.gemm": ("c2d_im2col", "im2col"),
    "allocate the fragment with the shape you need": ("view", "reshape"),
    "random numbers are not supported: pass them in as a tensor": ("rng",),
    "gathers are not supported": ("clamp_index",),
    "use T.copy": ("ldg", "stg"),
    "there are no pointers: use T.copy on slices": ("address_of", "access_ptr"),
    "use for k in T.serial(…)": ("while_",),
    "write T.Kernel(grid_x, grid_y)": ("ClusterKernel",),
}
REFUSED = {word: reason for reason, words in REASONS.items() for word in words}


ELEMENTWISE = ("serial", "Serial", "unroll", "Unroll", "atomic_add")  # may stand inside T.Parallel


class Action:
    """A function of ``T`` that only a kernel may call."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function

    def __call__(self, *args: Any, **named: Any) -> Any:
        reading = current(f"T.{self.name}")
        if reading.parallel and self.name not in ELEMENTWISE:
            remedy = "elements are computed all at once; put it before or after"
            raise Trouble("TW001", f"T.{self.name} inside T.Parallel", help=remedy, word=self.name)
        wrong = next((word for word in named if word.startswith(MEANINGFUL) and word not in self._parameters()), None)
        if wrong is not None:
            raise Trouble("TW004", f"T.{self.name} has no argument '{wrong}'", help=self._usage(), word=self.name)
        try:
            return self.function(reading, *args, **named)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # the call itself does not fit
                message = f"T.{self.name}: {str(error).partition('() ')[2] or error}"
                raise Trouble("TW004", message, help=self._usage(), word=self.name) from None
            raise

    def _parameters(self) -> list[str]:
        parameters = list(inspect.signature(self.function).parameters.values())[1:]  # without the reading
        return [parameter.name for parameter in parameters if not parameter.name.startswith("_")]

    def _usage(self) -> str:
        return f"T.{self.name}({', '.join(self._parameters())})"

    def __repr__(self) -> str:
        return f"T.{self.name}"


# Arguments that are no hints: dropping one a function does not have would change the result.
MEANINGFUL = ("trans", "dim", "axis", "keepdim", "alpha", "beta")


class Refused:
    """A name of TileLang that has no meaning on this machine. It says so when it is used."""

    def __init__(self, name: str, help: str) -> None:
        self.name, self.help = name, help

    def __call__(self, *_args: Any, **_named: Any) -> Any:
        raise Trouble("TW001", f"T.{self.name} is not supported on Tensix", help=self.help, word=self.name)

    __getitem__ = __call__

    def __repr__(self) -> str:
        return f"T.{self.name}"


class Anything:
    """``T.GemmWarpPolicy.FullRow``, ``T.Layout(…)`` and such: accepted, without effect."""

    def __call__(self, *_args: Any, **_named: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def _extent(value: Any, what: str) -> int:
    if not is_integer(value) or isinstance(value, Index):
        raise Trouble("TW007", f"{what} is {value!r}", help="give a constant")
    if int(value) < 1:
        raise Trouble("TW004", f"{what} is {value}", help="at least 1")
    return int(value)


def kernel(_reading: Reading, *grid: Any, threads: Any = None, prelude: Any = None, **_hints: Any) -> KernelDomain:
    del threads, prelude
    if not 1 <= len(grid) <= 4:
        raise Trouble("TW004", f"T.Kernel with {len(grid)} dimensions", help="one to three", word="Kernel")
    return KernelDomain(tuple(_extent(size, "a size of T.Kernel") for size in grid))


def parallel(_reading: Reading, *extents: Any, **_hints: Any) -> ParallelDomain:
    return ParallelDomain(tuple(_extent(extent, "an extent of T.Parallel") for extent in extents))


def serial(_reading: Reading, start: Any, stop: Any = None, step: int = 1, **_hints: Any) -> Counted:
    return Counted(0, start, step) if stop is None else Counted(start, stop, step)


def pipelined(_reading: Reading, start: Any, stop: Any = None, num_stages: int = 0, **_hints: Any) -> Counted:
    first, last = (0, start) if stop is None else (start, stop)
    if int(num_stages) < 0:
        remedy = "0, or how many blocks are on the way at once"
        raise Trouble("TW004", f"num_stages is {num_stages}", help=remedy, word="Pipelined")
    return Counted(first, last, 1, int(num_stages))


def persistent(_reading: Reading, domain: Any, wave_size: Any, index: Any, **_hints: Any) -> PersistentDomain:
    """The order of the tiles is a hint; which of them a block gets is not."""
    sizes = tuple(_extent(size, "a size of T.Persistent") for size in domain)
    return PersistentDomain(sizes, _extent(wave_size, "wave_size of T.Persistent"), index)


def constants(_reading: Reading, names: str, *_rest: Any) -> Any:
    return DynamicFactory()(names)


def variable(_reading: Reading, _dtype: Any = "int32", init: Any = 0, **_hints: Any) -> Any:
    """``T.alloc_var``: a name for numbers; what is assigned to it is followed while the kernel is read."""
    return init


def empty(reading: Reading, shape: Any, dtype: Any = "float32", **_hints: Any) -> Any:
    create = getattr(reading, "create_output", None)
    if create is None:
        raise Trouble("TW009", "T.empty here", word="empty")
    return create(as_tuple(shape), dtype)


LOOPS: dict[str, Callable[..., Any]] = {
    "Kernel": kernel,
    "Parallel": parallel,
    "serial": serial,
    "Serial": serial,
    "unroll": serial,
    "Unroll": serial,
    "Pipelined": pipelined,
    "Persistent": persistent,
    "const": constants,
    "empty": empty,
    "alloc_var": variable,
    "alloc_global": alloc_global,
    "cumsum": cumsum,
    "atomic_add": atomic_add,
}
PLAIN: dict[str, Any] = {
    "Tensor": TensorFactory(),
    "Buffer": TensorFactory(),
    "StridedTensor": TensorFactory(),
    "dynamic": DynamicFactory(),
    "symbolic": DynamicFactory(),
    "dyn": DynamicFactory(),
    "GemmWarpPolicy": Anything(),
    "dtype": DataType,
    "macro": macro,
    "Layout": Anything(),
    "Fragment": Anything(),
}


def no_effect(*_args: Any, **_named: Any) -> None:
    return None


def find(name: str) -> Any:
    """The object behind ``T.name``."""
    if name in TILE_FORMATS:
        return DataType(name)
    for table in (PLAIN, FUNCTIONS):
        if name in table:
            return table[name]
    if name in LOOPS or name in ACTIONS:
        return Action(name, LOOPS[name] if name in LOOPS else ACTIONS[name])
    if name in HINTS:
        return no_effect
    reason = next((help for word, help in REFUSED.items() if name == word or name.startswith(f"{word}_")), None)
    reason = reason or next((help for word, help in REFUSED.items() if name.startswith(word) and len(word) > 2), None)
    if reason is not None:
        return Refused(name, reason)
    if name in ("float64", "int4") or name.startswith("float8"):
        return DataType(name)
    import difflib

    close = difflib.get_close_matches(name, [*PLAIN, *FUNCTIONS, *LOOPS, *ACTIONS], n=3, cutoff=0.6)
    more = "; did you mean " + " or ".join(f"T.{word}" for word in close) + "?" if close else ""
    raise AttributeError(f"T has no '{name}'{more}")


def names() -> list[str]:
    return sorted({*TILE_FORMATS, *PLAIN, *FUNCTIONS, *LOOPS, *ACTIONS, *HINTS, "prim_func"})


__all__ = ["Dimension", "find", "names"]
