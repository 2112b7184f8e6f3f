"""How things are spelled in C++: kernel calls and headers in each ttnn release, and index arithmetic.

The table of calls was read off the headers of the releases. A call that is not listed is written as it is named. A listed one
has spellings with the first release they hold for. Operands arrive as C++ text in the order of the canonical (oldest) call.
Index arithmetic is folded into the call where it is used once, and named where it is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from xdsl.dialects.arith import CmpiOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import I1, INDEX, constant_of, defining_op, int_value
from tilewright.dialects.values import is_result
from tilewright.integers import FORMS, PREDICATES
from tilewright.records import record


@record
class Written:
    """A call about to be written."""

    name: str
    arguments: tuple[str, ...]
    template: tuple[str, ...]
    dst_format: str = ""  # DataFormat of a DST datum
    shape: tuple[str, ...] = ()  # transpose, ct, rt, kt of a matmul


Spelling = Callable[[Written], str]


def plain(name: str) -> Spelling:
    def spell(call: Written) -> str:
        template = f"<{', '.join(call.template)}>" if call.template else ""
        return f"{name}{template}({', '.join(call.arguments)})"

    return spell


def _swapped(call: Written) -> str:
    return f"{call.name}({call.arguments[1]}, {call.arguments[0]})"


def _copy_dest_typed(call: Written) -> str:
    return f"copy_dest_values<{call.dst_format}>({call.arguments[1]}, {call.arguments[0]})"


def _reuse(suffix: str) -> Spelling:
    def spell(call: Written) -> str:
        op = call.template[0].removeprefix("EltwiseBinaryType::ELW").lower()
        return f"{op}_reuse_dest_{suffix}<{call.template[1]}>({', '.join(call.arguments)})"

    return spell


def _pack_tile(call: Written) -> str:
    out_of_order = "true" in call.template
    if out_of_order:
        return f"pack_tile<true>({', '.join(call.arguments)})"
    return f"pack_tile({', '.join(call.arguments[:2])})"


def _pack_tile_old(call: Written) -> str:
    return f"pack_tile<{'true' if 'true' in call.template else 'false'}>({', '.join(call.arguments)})"


def _bcast_init(call: Written) -> str:
    """Scalar broadcasts of two ops are named differently in old releases."""
    name = call.name
    if name in ("sub_bcast_scalar_init_short", "mul_bcast_scalar_init_short"):
        name = name.replace("_bcast_", "_tiles_bcast_")
    return plain(name)(call)


def _matmul(name: str, *shape: int) -> Spelling:
    """A matmul call with the entries of its shape the release wants."""

    def spell(call: Written) -> str:
        words = (*call.arguments, *(call.shape[entry] for entry in shape))
        return f"{name}({', '.join(words)})"

    return spell


def _startup_reverse(call: Written) -> str:
    return f"compute_kernel_hw_startup<SrcOrder::Reverse>({', '.join(call.arguments)})"


SPELLINGS: dict[str, tuple[tuple[tuple[int, int], Spelling], ...]] = {
    "init_sfpu": (((0, 62), plain("init_sfpu")), ((0, 78), plain("compute_kernel_hw_startup"))),
    "binary_op_init_common": (((0, 62), plain("binary_op_init_common")), ((0, 77), plain("compute_kernel_hw_startup"))),
    "copy_tile_init": (((0, 62), plain("copy_tile_init")), ((0, 78), plain("copy_init"))),
    "add_tiles_init": (((0, 62), plain("add_tiles_init")), ((0, 77), plain("add_init"))),
    "sub_tiles_init": (((0, 62), plain("sub_tiles_init")), ((0, 77), plain("sub_init"))),
    "mul_tiles_init": (((0, 62), plain("mul_tiles_init")), ((0, 77), plain("mul_init"))),
    "binary_dest_reuse_tiles_init": (((0, 62), plain("binary_dest_reuse_tiles_init")), ((0, 77), _reuse("init"))),
    "binary_dest_reuse_tiles": (((0, 62), plain("binary_dest_reuse_tiles")), ((0, 77), _reuse("tiles"))),
    "copy_dest_values": (((0, 62), plain("copy_dest_values")), ((0, 69), _swapped), ((0, 78), _copy_dest_typed)),
    "pack_tile": (((0, 62), _pack_tile_old), ((0, 69), _pack_tile)),
    "pack_tile_block": (((0, 62), plain("pack_tile_block")), ((0, 76), plain("pack_block"))),
    "mm_init": (((0, 62), plain("mm_init")), ((0, 74), _startup_reverse)),
    "mm_init_short": (((0, 62), _matmul("mm_init_short", 0)), ((0, 74), _matmul("matmul_init", 0))),
    "mm_block_init_short": (
        ((0, 62), _matmul("mm_block_init_short", 0, 1, 2, 3)),
        ((0, 74), _matmul("matmul_block_init", 0, 1, 2, 3)),
    ),
    "matmul_tiles": (((0, 62), _matmul("matmul_tiles", 0)), ((0, 69), _matmul("matmul_tiles"))),
    "matmul_block": (((0, 62), _matmul("matmul_block", 0, 1, 2, 3)),),
    "transpose_wh_init_short": (((0, 62), plain("transpose_wh_init_short")), ((0, 74), plain("transpose_init"))),
    "transpose_wh_tile": (((0, 62), plain("transpose_wh_tile")), ((0, 74), plain("transpose_tile"))),
    "unary_bcast_full_init": (((0, 62), plain("unary_bcast_init")),),
    **{
        f"{op}_bcast_{dim}_init_short": (((0, 62), _bcast_init), ((0, 77), plain(f"{op}_bcast_{dim}_init")))
        for op in ("add", "sub", "mul")
        for dim in ("rows", "cols", "scalar")
    },
    "noc_async_read_page": (((0, 62), plain("noc_async_read_tile")), ((0, 69), plain("noc_async_read_page"))),
    "noc_async_write_page": (((0, 62), plain("noc_async_write_tile")), ((0, 69), plain("noc_async_write_page"))),
}


def spell(call: Written, release: tuple[int, int]) -> str:
    """C++ text of a call, without the semicolon."""
    return _spelling(call.name, release)(call)


@lru_cache(maxsize=1024)
def _spelling(name: str, release: tuple[int, int]) -> Spelling:
    chosen = plain(name)
    for since, spelling in SPELLINGS.get(name, ()):
        if since <= release:
            chosen = spelling
    return chosen


OLDEST, NEWEST = (0, 62), (0, 99)
CHANGED = tuple((0, number) for number in (69, 72, 74, 76, 77, 78, 79, 80, 81))  # releases that may have other names than before


def release(text: str) -> tuple[int, int]:
    """``"0.78"`` or ``"0.81.1"`` as a comparable pair."""
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        raise fail("TW601", f"'{text}' is not a ttnn release", help="give one like 0.62, 0.69, 0.78 or 0.81")
    found = (int(parts[0]), int(parts[1]))
    if not OLDEST <= found <= NEWEST:
        raise fail("TW601", f"ttnn {text} is not supported", help="Tilewright spells kernels for ttnn 0.62 and newer")
    return found


# Which header declares which call, and in which order headers stand.

STRUCTURAL = {
    "copy_tile": "tile_move_copy.h",
    "copy_tile_init": "tile_move_copy.h",
    "copy_dest_values": "copy_dest_values.h",
    "copy_dest_values_init": "copy_dest_values.h",
    "pack_tile": "pack.h",
    "pack_tile_block": "pack.h",
    "reconfig_data_format": "reconfig_data_format.h",
    "reconfig_data_format_srca": "reconfig_data_format.h",
    "reconfig_data_format_srcb": "reconfig_data_format.h",
    "pack_reconfig_data_format": "reconfig_data_format.h",
    "pack_reconfig_l1_acc": "pack.h",
    "pack_relu_config": "pack.h",
    "mm_init": "matmul.h",
    "mm_init_short": "matmul.h",
    "mm_block_init_short": "matmul.h",
    "matmul_tiles": "matmul.h",
    "matmul_block": "matmul.h",
    "reduce_init": "reduce.h",
    "reduce_tile": "reduce.h",
    "reduce_uninit": "reduce.h",
    "sfpu_reduce": "compute_kernel_api.h",
    "sfpu_reduce_init": "compute_kernel_api.h",
    "unary_bcast": "bcast.h",
    "unary_bcast_init": "bcast.h",
    "unary_bcast_full_init": "bcast.h",
}

# The order of hand-written kernels: start-up, then what reaches the unpacker, the packer and the matrix unit, then vector
# functions, unary ones last. It is not taste: some vector headers open the math library's namespace in every thread, and an
# unpacker header after them finds two functions of one name (`is_32bit_input`: digamma.h before tile_move_copy.h in ttnn 0.78).
FIRST = (
    "common.h", "compute_kernel_hw_startup.h", "eltwise_unary/eltwise_unary.h",
    "tile_move_copy.h", "reconfig_data_format.h", "pack.h", "transpose.h", "transpose_wh.h",
    "bcast.h", "eltwise_binary.h", "matmul.h", "reduce.h",
)  # fmt: skip
UNARY = "eltwise_unary/"

FROM_TABLE = {name: form.header for row in tile_ops.ROWS for form in row.forms for name in (form.call, form.init) if name}
NEEDED_FIRST = {form.call: form.includes_first for row in tile_ops.ROWS for form in row.forms if form.includes_first}


# Names that the older reduce.h has as defaults of its template arguments, and takes from whoever includes it.
REDUCE_DEFAULTS = ("#define REDUCE_OP PoolType::SUM", "#define REDUCE_DIM ReduceDim::REDUCE_ROW", "")


def headers(calls: Iterable[str], release: tuple[int, int]) -> list[str]:
    """Include lines of a compute kernel."""
    folder = "compute_kernel_api/" if release < (0, 69) else "api/compute/"
    found: set[str] = {f"{folder}common.h"}
    for name in calls:
        header = STRUCTURAL.get(name) or FROM_TABLE.get(name) or _family(name, release)
        if header is not None:
            found.add(_path(header, folder, release))
        found.update(_path(first, folder, release) for first in NEEDED_FIRST.get(name, ()))  # its name sorts before
        if name == "init_sfpu":
            found.add(f"{folder}eltwise_unary/eltwise_unary.h" if release < (0, 78) else f"{folder}compute_kernel_hw_startup.h")
        if name == "mm_init" and release >= (0, 74):
            found.add(f"{folder}compute_kernel_hw_startup.h")
        if name == "binary_op_init_common":
            found.add(f"{folder}eltwise_binary.h" if release < (0, 77) else f"{folder}compute_kernel_hw_startup.h")
    ordered = sorted(found, key=lambda path: _place(path.removeprefix(folder)))
    defined = REDUCE_DEFAULTS if release < (0, 78) and f"{folder}reduce.h" in found else ()
    return ["#include <cstdint>", "", *defined, *(f'#include "{path}"' for path in ordered)]


def _place(header: str) -> tuple[int, str]:
    if header in FIRST:
        return FIRST.index(header), header
    return len(FIRST) + header.startswith(UNARY), header


def _family(name: str, release: tuple[int, int]) -> str | None:
    if name.startswith("transpose_wh"):
        return "transpose_wh.h" if release < (0, 74) else "transpose.h"
    if name.startswith("sfpu_") and "_bcast_" in name:
        return "sfpu_binary_bcast.h"
    return "bcast.h" if "_bcast_" in name else None


def _path(header: str, folder: str, release: tuple[int, int]) -> str:
    if release < (0, 69):
        # The oldest release keeps its general header one folder up and pack in it, and names the copy header alike.
        if header == "compute_kernel_api.h":
            return "compute_kernel_api.h"
        if header == "binary_max_min.h":
            return "compute_kernel_api.h"
    return f"{folder}{header}"


SIGNED_COMPARISONS = (2, 3, 4, 5)
PASS_THROUGH = ("arith.index_cast", "arith.index_castui", "arith.extui", "arith.trunci")
ATOM = 20


def is_expression(op: Operation) -> bool:
    return op.name.startswith("arith.")


def is_truth(value: SSAValue) -> bool:
    return value.type is not INDEX and value.type == I1  # nearly all numbers are indices


class Expressions:
    """Text of every value of one function."""

    def __init__(self) -> None:
        self.names: dict[SSAValue, str] = {}
        self.negative: dict[SSAValue, bool] = {}

    def text(self, value: SSAValue, outer: int = 0) -> str:
        name = self.names.get(value)
        if name is not None:
            return name
        written, strength = self._written(value)
        return f"({written})" if strength < outer else written

    def _written(self, value: SSAValue) -> tuple[str, int]:
        name = self.names.get(value)
        if name is not None:
            return name, ATOM
        number = constant_of(value)
        if number is not None:
            return (("true" if number else "false") if is_truth(value) else str(number)), ATOM
        op = defining_op(value)  # a loop variable has a name
        form = FORMS.get(op.name)
        if form is not None and form.strength:
            folded = self._folded(op)
            if folded is not None:
                return folded
            sign, strength = form.cpp, form.strength
            if op.name in ("arith.andi", "arith.ori") and is_truth(op.results[0]):
                sign, strength = ("&&", 4) if op.name == "arith.andi" else ("||", 3)
            first, second = op.operands
            left = self.text(first, strength)
            added = self._number(second)
            if op.name == "arith.addi" and added is not None and added < 0:
                return f"{left} - {-added}", strength
            right = self.text(second, strength + (sign != "+"))
            return f"{left} {sign} {right}", strength
        if type(op) is CmpiOp:
            predicate = op.predicate.value.data
            sign = PREDICATES[predicate]
            if predicate in SIGNED_COMPARISONS:
                return self.compared(op.lhs, sign, op.rhs), 9
            return f"{self.text(op.lhs, 10)} {sign} {self.text(op.rhs, 10)}", 9
        if op.name == "arith.select":
            condition, yes, no = (self.text(operand, 3) for operand in op.operands)
            return f"{condition} ? {yes} : {no}", 2
        if form is not None and form.cpp:
            signed = op.name.endswith("si") and any(self.may_be_negative(operand) for operand in op.operands)
            kind = "int32_t" if signed else "uint32_t"
            return f"{form.cpp}<{kind}>({', '.join(self.text(operand) for operand in op.operands)})", ATOM
        if op.name in PASS_THROUGH:
            return self._written(op.operands[0])
        raise AssertionError(f"no C++ for {op.name}")

    def compared(self, left: SSAValue, sign: str, right: SSAValue) -> str:
        """Variables are unsigned: where a side may lie below zero, both are read as signed."""
        if not self.may_be_negative(left) and not self.may_be_negative(right):
            return f"{self.text(left, 10)} {sign} {self.text(right, 10)}"
        return f"{self._as_signed(left)} {sign} {self._as_signed(right)}"

    def _as_signed(self, value: SSAValue) -> str:
        return self.text(value) if self._number(value) is not None else f"static_cast<int32_t>({self.text(value)})"

    def may_be_negative(self, value: SSAValue) -> bool:
        if value not in self.negative:
            self.negative[value] = False  # a loop variable may depend on itself only through its loop
            self.negative[value] = self._may_be_negative(value)
        return self.negative[value]

    def _may_be_negative(self, value: SSAValue) -> bool:
        if type(value) is BlockArgument:
            loop = value.block.parent_op()
            if type(loop) is not ForOp:
                return False
            if value.index == 0:
                return self.may_be_negative(loop.lb)
            last = value.block.last_op
            changed = last is not None and self.may_be_negative(last.operands[value.index - 1])
            return changed or self.may_be_negative(loop.iter_args[value.index - 1])
        assert is_result(value)
        owner = value.op
        number = constant_of(value)
        if number is not None:
            return number < 0
        if owner.name == "arith.subi" or int_value(owner, "low", 0) < 0:  # an element that may be
            return True
        if type(owner) is ForOp:
            return self.may_be_negative(owner.body.block.args[1 + value.index])
        return is_expression(owner) and any(self.may_be_negative(operand) for operand in owner.operands)

    def _folded(self, op: Operation) -> tuple[str, int] | None:
        """Sums and products that a person would not write: of two numbers, with 0, with 1."""
        if op.name not in ("arith.addi", "arith.muli"):
            return None
        left, right = op.operands
        first, second = self._number(left), self._number(right)
        total = _combined(op.name, first, second)
        if total is not None:
            return str(total), ATOM
        neutral = 0 if op.name == "arith.addi" else 1
        return self._written(right) if first == neutral else self._written(left) if second == neutral else None

    def _number(self, value: SSAValue) -> int | None:
        number = constant_of(value)
        if number is not None:
            return number
        if is_result(value) and value.op.name in ("arith.addi", "arith.muli") and value not in self.names:
            left, right = value.op.operands
            return _combined(value.op.name, self._number(left), self._number(right))
        return None


def _combined(name: str, left: int | None, right: int | None) -> int | None:
    if name == "arith.muli" and 0 in (left, right):
        return 0
    if left is None or right is None:
        return None
    return left + right if name == "arith.addi" else left * right
