"""IR text coming in: the dialects with all their ops, as parsers need them, and what verifiers of single ops cannot know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects import affine, arith, func, scf, tensor
from xdsl.dialects.builtin import Builtin, DictionaryAttr, FloatAttr, IntegerAttr, IntegerType, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Dialect, Operation, SSAValue
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.utils.exceptions import ParseError, VerifyException

from tilewright.diagnostics import Span, fail
from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import (
    KNOWN_ALIASES,
    PINNED,
    REQUIRED,
    AccessorType,
    CBType,
    DstType,
    KernelCBType,
    PipeType,
    SemaphoreType,
    SliceAttr,
    SliceType,
    ThreadAttr,
    TransferType,
    TTCore,
    is_array_attr,
    is_integer_attr,
)
from tilewright.dialects.ttkernel import CALLS, KernelAccessorType
from tilewright.dialects.ttl import (
    BLOCK_OPS,
    DEBUG_OPS,
    EXTERNAL_OPS,
    MEAN,
    SYNC_OPS,
    TENSOR_OPS,
    TILE_OPS,
    WORK_OPS,
    CoreOp,
    GridSizeOp,
    InitSfpuOp,
    StoreOp,
    YieldOp,
)
from tilewright.dialects.ttl_buffers import BUFFER_OPS, ELEMENT_OPS, MOVEMENT_OPS
from tilewright.dialects.ttl_compute import COMPUTE_OPS, TILE_BLOCK_OPS
from tilewright.dialects.ttl_network import NETWORK_OPS
from tilewright.dialects.ttl_program import PROGRAM_OPS
from tilewright.dialects.ttl_regions import BLOCK_ALIASES, REGION_OPS, TILE_LINALG, TextParser
from tilewright.dialects.walking import operations, span_of

# Which attributes each op has, and what they hold. An attribute that no pass would look at is refused, not dropped. The front
# end writes no others; this is for text, of any stage.

PINS = (PINNED, REQUIRED)
PLACED = ("dst_idx", "dst_stride", "ttl.unit", "ttl.faces", *PINS)  # of tile ops, once they have a register
RUNS = ("ct", "rt", "kt")  # of products that run over several tiles
NAMED = ("name",)

# By op, without ``ttl.``; rows of the op table are below.
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "program": ("grid", "memory_space", "tiled"),
    "kernel": ("grid", "memory_space", "tiled", "block_factors", "compile_time_args", "compute_config"),
    "compute_thread": ("microcore_hint",),
    "datamovement_thread": ("microcore_hint",),
    "create_cb": ("shape", "element_type", "buffer_factor", "memory_space", "buffer_index", "page_size", "core_ranges"),
    "create_pipe": ("src_core", "dst_core", "dst_core_range"),
    "create_semaphore": ("initial_value", "is_remote", "number", *NAMED),
    "get_remote_semaphore": ("core",),
    "get_remote_multicast_semaphore": ("core_range",),
    "semaphore_wait": ("at_least",),
    "tensor_accessor": ("tensor_index", "layout", "significant_bits", *NAMED),
    "tensor_slice": ("strides", "turned", "clipped"),
    "grid_slice": ("block_factors",),
    "core": ("dims",),
    "grid_size": ("dims",),
    "core_dim": ("dims",),
    "core_table": ("values", *NAMED),
    "argument": ("low", "high", "given", *NAMED),
    "net_pipe": ("net", "side", "src_cores", "dst_core_ranges", "unicast", *NAMED),
    "work": ("part", "amount", *NAMED),
    "print": ("text", "subject", "processor", "pages", "count", "format", "edge", "first", "wide", "dtype"),
    "breakpoint": ("names", "kinds", "held", "constants", "others", "shapes"),
    "bind_cb": (
        "cb_index", "buffer_factor", "origin", "alias_of", "core_ranges", "tensor_index", "tensor_name", "first_tile",
        "eager", "holds", "significant_bits", "allocation_group", "ttl.in_dst", "ttl.spill", *NAMED,
    ),
    "attach_cb": ("tile_offset", "first_tile", "as_value", "accumulate", "out_of_order", "held", "in_order"),
    "cb_wait": ("tiles", "external"),
    "cb_reserve": ("tiles", "external"),
    "running": ("tiles", "ttl.leaves_dst"),
    "cb_push": ("tiles", "external"),
    "cb_pop": ("tiles", "external"),
    "fill_scaler": ("value", "pattern"),
    "read_element": ("form", "low", "high"),
    "write_element": ("form",),
    "extern_call": ("text", "code", "meaning"),
    "fill_mask": ("axis", "limit"),
    "fill_pattern": ("pattern",),
    "pattern_block": ("pattern",),
    "store": ("accumulate", "relu", "edge", "out_of_order", "tile_offset", "first_tile"),
    "compute": (
        "indexing_maps", "iterator_types", "ttl.dst_footprint", "ttl.dst_layout", "ttl.unroll_factor", "ttl.residents",
        "ttl.role_in_section", "ttl.section", "ttl.results", "ttl.sub_blocks",
    ),
    "compute_region": ("keep_in_dst",),
    "acquire_dst": ("index",),
    "spill_tile_to_l1": ("index", "dst_reg"),
    "matmul": ("transpose_b", "turned_b", "keep_in_dst", *PINS),
    "reduce": ("kind", "dims", "exact", "keep_in_dst", *PINS),
    "bcast": ("dims", "keep_in_dst", *PINS),
    "fill_block": ("value", *PINS),
    "block_matmul": ("dst_reg", "keep_in_dst", *PINS),
    "block_reduce_sum": ("axis", "dst_reg", "keep_in_dst", *PINS),
    "block_reduce_max": ("axis", "dst_reg", "keep_in_dst", *PINS),
    "block_bcast": ("axis", "dst_reg", "keep_in_dst", *PINS),
    "copy_tile": ("by_position", "dst_stride"),
    "copy_dest_values": PLACED,
    "dst_tile": PLACED,
    "linearized_index": ("map",),
    "l1_accumulate": (),
    "tile_matmul": ("k", "columns", "transpose_b", "turned_b", *RUNS, *PLACED),
    "tile_matmul_accumulate": ("k", "columns", "transpose_b", "turned_b", *RUNS, *PLACED),
    "tile_mul_accumulate": PLACED,
    "tile_reduce": ("kind", "dim", "rows", "cols", *PLACED),
    "tile_fold": ("kind", "rows", "cols", *PLACED),
    "tile_vector_reduce": ("kind", "dim", *PLACED),
    "tile_bcast": ("dim", *PLACED),
    "tile_transpose": PLACED,
    "tile_scratch": PLACED,
    "tile_binary_bcast": ("kind", "dim", *PLACED),
    "tile_resident": ("resident", "edge", *PLACED),
}  # fmt: skip

FUNCTION = {
    "ttl.kernel_thread", "ttl.role", "ttl.role_given", "ttl.signposts", "ttl.fp32_dest_acc_en", "ttl.dst_full_sync_en",
    "ttl.math_fidelity", "ttl.unpack_to_dest",
}  # fmt: skip
LOOP = {  # on loops, once a region is one
    "ttl.tile", "ttl.tile_stride", "ttl.sub_blocks", "ttl.section", "ttl.dst_footprint", "ttl.unroll_factor", "ttl.dst_layout",
    "ttl.batch", "ttl.reads_ahead",
    "ttl.residents", "ttl.role_in_section",
}  # fmt: skip

UNROLLED = ("ttl.tile", "ttl.tile_stride")  # on every op of a loop that was written out

NUMBERS = (
    "tensor_index", "dst_idx", "dst_stride", "k", "columns", "rows", "cols", "ct", "rt", "kt", "cb_index", "buffer_factor",
    "tiles", "alias_of", "first_tile", "tile_offset", "number", "net", "low", "high", "given", "amount", "resident", "axis",
    "index", "page_size", "buffer_index", "initial_value", "significant_bits", "ttl.dst_footprint", "ttl.unroll_factor",
    "ttl.section", "ttl.batch", "ttl.reads_ahead", "limit", PINNED,
)  # fmt: skip
TEXTS = (
    "name", "kind", "dim", "side", "layout", "pattern", "origin", "tensor_name", "part", "subject", "processor", "text",
    "form", "code", "meaning", "holds",
    "ttl.unit", "ttl.faces", "ttl.dst_layout", "ttl.leaves_dst", "ttl.role", "ttl.math_fidelity", "microcore_hint",
)  # fmt: skip
LISTS = (
    "dims", "strides", "clipped", "values", "src_cores", "dst_core_ranges", "core_range", "core", "ttl.unpack_to_dest",
    "ttl.results",
)  # fmt: skip
FLAGS = (
    "turned", "unicast", "at_least", "exact", "transpose_b", "turned_b", "out_of_order", "by_position", "dst_reg", REQUIRED,
    "ttl.in_dst", "ttl.spill", "eager", "as_value",
)  # fmt: skip
TRUTHS = ("keep_in_dst", "is_remote")
ROW_PREFIXES = {"ttl.tile_": PLACED, "ttl.block_": ("dst_reg", "keep_in_dst", *PINS), "ttl.": ("keep_in_dst", MEAN, *PINS)}


@lru_cache(maxsize=4096)
def known_attributes(name: str) -> frozenset[str] | None:
    """Of an op of our dialect; None if it is no such op."""
    if not name.startswith("ttl."):
        return None
    if name[4:] in ATTRIBUTES:
        return frozenset(ATTRIBUTES[name[4:]])
    for prefix, more in ROW_PREFIXES.items():
        row = tile_ops.BY_NAME.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if row is not None:
            return frozenset((*(param.name for param in row.params), *more))
    return frozenset()


def check_attributes(op: Operation) -> None:
    known = known_attributes(op.name)
    for key, value in op.attributes.items():
        if known is None:
            foreign = FUNCTION if op.name == "func.func" else LOOP
            if key.startswith("ttl.") and key not in foreign:
                raise VerifyException(f"{op.name}: no attribute '{key}'")
        elif key not in known and key not in UNROLLED:
            raise VerifyException(f"{op.name}: no attribute '{key}'; it has {', '.join(sorted(known)) or 'none'}")
        wanted = None if op.name.startswith("ttkernel.") else _wanted(op, key, value)
        if wanted:
            raise VerifyException(f"{op.name}: {key} is {wanted}")


def _wanted(op: Operation, key: str, value: Attribute) -> str:
    """What the attribute holds, if ``value`` is none of it."""
    if key in NUMBERS and not is_integer_attr(value):
        return "a number"
    if key in TEXTS and not isinstance(value, StringAttr):
        return "text"
    if key in LISTS and key != "values" and op.name.startswith("ttl.") and not _is_list(op, key, value):
        return "a list"
    if key in FLAGS and not isinstance(value, UnitAttr):
        return "given or left out, without a value"
    if key in TRUTHS and not (_is_truth(value) or (key == "keep_in_dst" and isinstance(value, UnitAttr))):
        return "true or false"
    if key == "value" and not isinstance(value, (IntegerAttr, FloatAttr)):
        return "a number"
    if key == "compute_config" and not isinstance(value, DictionaryAttr):
        return "a dictionary"
    if key == "ttl.kernel_thread" and not isinstance(value, ThreadAttr):
        return "#ttkernel.thread<compute> or #ttkernel.thread<noc>"
    return ""


def _is_list(op: Operation, key: str, value: Attribute) -> bool:
    if key == "dims" and op.name in ("ttl.core", "ttl.grid_size", "ttl.core_dim"):
        return True  # a number there, which the op itself looks at
    return is_array_attr(value)


def _is_truth(value: Attribute) -> bool:
    return is_integer_attr(value) and isinstance(value.type, IntegerType) and value.type.width.data == 1


def check_regions(op: Operation) -> None:
    if any(len(region.blocks) > 1 for region in op.regions):
        raise VerifyException(f"{op.name}: its code is one block; what is done is decided by scf.if and scf.for")


# Every use comes after its definition. xDSL's verifier does not look.

def check_dominance(op: Operation) -> None:
    """Our control flow is structured: a value is visible after its definition in its block, and in regions below."""
    _region_of(op, set())


def _region_of(op: Operation, visible: set[SSAValue]) -> None:
    for region in op.regions:
        for block in region.blocks:
            _block(block, set(visible))


def _block(block: Block, visible: set[SSAValue]) -> None:
    visible.update(block.args)
    for op in block.ops:
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                error = VerifyException(f"{op.name}: operand {index} is used before it is defined")
                error.op = op  # pyright: ignore[reportAttributeAccessIssue]
                raise error
        if op.regions:
            _region_of(op, visible)
        visible.update(op.results)


TTL = Dialect(
    "ttl",
    [
        *BUFFER_OPS, *MOVEMENT_OPS, *ELEMENT_OPS, *EXTERNAL_OPS, *DEBUG_OPS, *COMPUTE_OPS, *BLOCK_OPS, *TILE_BLOCK_OPS,
        *REGION_OPS, *BLOCK_ALIASES.values(), *WORK_OPS, *NETWORK_OPS, *PROGRAM_OPS, CoreOp, GridSizeOp, StoreOp, YieldOp,
        InitSfpuOp, *SYNC_OPS, *TENSOR_OPS.values(), *TILE_OPS.values(),
    ],
    [CBType, DstType, TransferType, SemaphoreType, PipeType, AccessorType, SliceType, SliceAttr],
)  # fmt: skip
TTKernel = Dialect("ttkernel", [*CALLS.values()], [KernelCBType, KernelAccessorType, ThreadAttr])


def _memref() -> Dialect:
    from xdsl.dialects.memref import MemRef

    return MemRef


def load_dialects(context: Context) -> Context:
    """Everything our IR text may contain."""
    context.register_dialect("linalg", lambda: TILE_LINALG)
    context.register_dialect("memref", _memref)
    for dialect in (Builtin, func.Func, arith.Arith, scf.Scf, tensor.Tensor, affine.Affine, TTCore, TTL, TTKernel):
        context.load_dialect(dialect)
    return context


# Text to a module ------------------------------------------------------------------------------------------------------------

DEFINED_ALIAS = re.compile(r"^\s*(#[\w$.-]+)\s*=", re.MULTILINE)
TRANSFORM_HELP = "leave the script out: blocks are tiled to the capacity of DST, and --dst-capacity is its target_size"
NAMED_GENERIC = re.compile(r"%[\w$.-]+ *= *(?=linalg\.generic\b)")


def parse(text: str, name: str, *, first_line: int = 1) -> ModuleOp:
    """The module in ``text``; TW603 with the line if it is not valid."""
    parser: TextParser | None = None
    try:
        parser = TextParser(load_dialects(Context()), text, name, first_line=first_line)
        defined = set(DEFINED_ALIAS.findall(text))
        parser.attribute_aliases.update({name: value for name, value in KNOWN_ALIASES.items() if name not in defined})
        return parser.parse_module()
    except ParseError as error:
        unnamed = _without_name(text, error.span.start)
        if unnamed is not None:
            return parse(unnamed, name, first_line=first_line)
        raise located(error, text, name, first_line) from None
    except Exception as error:
        # xDSL's parsers of types, attributes and ops answer some wrong text with errors of Python.
        line, column = parser.place(min(parser.pos, len(text))) if parser is not None else (first_line, 1)
        message = f"cannot be parsed: {first_paragraph(str(error)) or type(error).__name__}"
        raise fail("TW603", message, Span(name, line, column)) from None


def _without_name(text: str, start: int) -> str | None:
    """Without the name of a ``linalg.generic`` on memrefs, which has no result: the specification's listing names one."""
    named = NAMED_GENERIC.match(text, start)
    if named is None:
        return None
    return text[: named.start()] + " " * len(named.group()) + text[named.end() :]


def located(error: Any, text: str, name: str, first_line: int) -> Exception:
    start = error.span.start
    line = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    width = max(1, error.span.end - start)
    span = Span(name, first_line + line, column, column + width)
    message = str(error.msg).strip() or "cannot be parsed"
    return fail("TW603", message, span, help=TRANSFORM_HELP if "Operation transform." in message else "")


def verify(module: ModuleOp) -> None:
    """Every op by itself, so that what is wrong has a line; then what no single op can say."""
    found = operations(module)
    for op in found:
        if any(isinstance(operand, ForwardDeclaredValue) for operand in op.operands):
            raise fail("TW603", f"the module does not verify: {op.name} uses a value that nothing defines", span_of(op))
    for op in found:
        try:
            op.verify(verify_nested_ops=False)
            check_attributes(op)
            check_regions(op)
        except Exception as error:  # verifiers of xDSL's own ops do not expect every wrong type
            raise fail("TW603", f"the module does not verify: {first_paragraph(str(error))}", span_of(op)) from None
    try:
        module.verify()
        check_dominance(module)
    except VerifyException as error:
        place = getattr(error, "op", None)
        span = None if place is None else span_of(place)
        raise fail("TW603", f"the module does not verify: {first_paragraph(str(error))}", span) from None


def first_paragraph(text: str) -> str:
    return text.strip().split("\n\n")[-1].strip()
