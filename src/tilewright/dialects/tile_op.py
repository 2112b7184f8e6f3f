"""The shape of one row of the op table: everything any part of Tilewright knows about a tile op; and what inits leave behind,
by name.

``dialects/tile_ops.py`` assembles the rows. Parser, verifier, allocator, emitter, simulator, cost model and documentation read
them; nothing else says what an op means.

What inits and calls of the vector unit leave behind, the simulator and the native machine read too. An init that is not named
here loads programmable constants: its op needs it to be the last such init. Names without a row in the op table are functions
of the API that a hand-written kernel may call.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

from tilewright.dtypes import COMPUTED_INTEGERS, DTYPES, FLOATS
from tilewright.records import record

# Inits that only reset counters: after any vector init has run once they need not run again. Comparisons of two tiles are not
# here though their inits look it: they store through an address mode their init sets.
STATELESS = frozenset((
    "abs_tile_init", "add_binary_tile_init", "add_int_tile_init", "addcmul_tile_init", "alt_complex_rotate90_tile_init",
    "binary_bitwise_tile_init", "binary_shift_tile_init", "binop_with_scalar_tile_init", "bitwise_and_tile_init",
    "bitwise_not_tile_init", "bitwise_or_tile_init", "bitwise_xor_tile_init", "celu_tile_init", "clamp_tile_init",
    "copy_dest_values_init", "elu_tile_init", "fill_tile_init", "hardmish_tile_init", "hardshrink_tile_init",
    "hardtanh_tile_init", "hardtanh_tile_init_pack", "heaviside_tile_init", "i0_tile_init", "identity_tile_init",
    "isfinite_tile_init", "isinf_tile_init", "isnan_tile_init", "isneginf_tile_init", "isposinf_tile_init",
    "leaky_relu_tile_init", "left_shift_tile_init", "lerp_tile_init", "lgamma_adjusted_tile_init",
    "logical_not_tile_init", "logsigmoid_tile_init", "mask_tile_init", "mul_binary_tile_init", "negative_tile_init",
    "power_iterative_tile_init", "prelu_tile_init", "relu_max_tile_init", "relu_max_tile_init_pack",
    "relu_min_tile_init", "relu_tile_init", "reshuffle_rows_tile_init", "right_shift_tile_init", "rounding_op_tile_init",
    "rsub_binary_tile_init", "rsub_int_tile_init", "rsub_tile_init", "rsub_unary_int32_tile_init", "selu_tile_init",
    "selu_tile_init_pack", "sign_tile_init", "softplus_tile_init", "softplus_tile_init_pack", "softshrink_tile_init",
    "sub_binary_tile_init", "sub_int_tile_init", "threshold_tile_init", "tiled_prod_tile_init", "unary_eq_tile_init",
    "unary_ge_tile_init", "unary_gt_tile_init", "unary_le_tile_init", "unary_lt_tile_init", "unary_ne_tile_init",
))  # fmt: skip

# Inits that set the address mode their op stores through.
ADDRESS_MODE = frozenset((
    "eq_binary_tile_init", "eq_int_tile_init", "eqz_tile_init", "ge_binary_tile_init", "ge_int_tile_init",
    "gez_tile_init", "gt_binary_tile_init", "gt_int_tile_init", "gtz_tile_init", "le_binary_tile_init",
    "le_int_tile_init", "lez_tile_init", "lt_binary_tile_init", "lt_int_tile_init", "ltz_tile_init",
    "ne_binary_tile_init", "ne_int_tile_init", "nez_tile_init",
))  # fmt: skip

# Inits that record instructions as macros.
MACROS = frozenset((
    "binary_max_int32_tile_init", "binary_max_tile_init", "binary_max_uint32_tile_init", "binary_min_int32_tile_init",
    "binary_min_tile_init", "binary_min_uint32_tile_init", "mac_tile_init", "max_tile_init", "signbit_tile_init",
    "signbit_tile_int32_init", "typecast_tile_init", "unary_max_int32_tile_init", "unary_max_tile_init",
    "unary_max_uint32_tile_init", "unary_min_int32_tile_init", "unary_min_tile_init", "unary_min_uint32_tile_init",
    "where_tile_init",
))  # fmt: skip

# Calls that write a programmable constant each time they run, whatever their init does.
WRITE_CONSTANTS = frozenset((
    "clamp_tile", "clamp_tile_int32", "unary_max_int32_tile", "unary_max_tile", "unary_max_uint32_tile",
    "unary_min_int32_tile", "unary_min_tile", "unary_min_uint32_tile",
))  # fmt: skip

# Inits that put the address step of every vector call back to zero, whatever ran before.
STOP_STEPPING = frozenset((
    "exp_tile_init", "recip_tile_init", "sfpu_bcast_col_init", "sfpu_bcast_init", "sfpu_bcast_row_init",
    "snake_beta_tile_init",
))  # fmt: skip

# Inits of ops that fill the upper half of the replay buffer, where the matrix unit has its own.
FILL_REPLAY = frozenset(("gcd_tile_init", "lcm_tile_init", "rand_tile_init"))


def leaves_state(init: str, call: str) -> bool:
    """Whether another op may need its init again after this one ran, or this one after another."""
    return init not in STATELESS or call in WRITE_CONSTANTS


FLOAT_DTYPES = FLOATS
INTEGER_DTYPES = COMPUTED_INTEGERS

# Members of the kernel API's DataFormat, by our dtype names.
DATA_FORMATS = {dtype.name: dtype.format for dtype in DTYPES}


# What a row computes: NumPy arrays and numbers in, an array out. One alternative per count: so parameters of lambdas have types.
Meaning: TypeAlias = (
    "Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any] | Callable[[Any, Any, Any, Any], Any]"
)


def applicable(meaning: Meaning) -> Callable[..., Any]:
    """``meaning`` for a caller that has operands as a list and parameters by name."""
    return meaning



class Unit(Enum):
    """Which engine runs a form, and where its tile operands are."""

    SFPU = "sfpu"  # every operand in DST
    FPU = "fpu"  # both operands straight from buffers
    REUSE_A = "reuse_a"  # operand 0 in DST, operand 1 in a buffer (DEST_TO_SRCA)
    REUSE_B = "reuse_b"  # operand 0 in a buffer, operand 1 in DST (DEST_TO_SRCB)


class Writes(Enum):
    """What a form does to its result slot."""

    IN_PLACE = "in_place"  # takes the slot of its (first) DST operand
    ANY = "any"  # any free slot; may be a dying operand's
    ACCUMULATES = "accumulates"  # adds to what is there: needs a zero slot


@record(kw_only=True)
class Param:
    """A compile-time argument of an op, e.g. the scalar of ``x + 2.0``."""

    name: str
    kind: str = "float"  # float, int, bool, str
    default: Any = None  # None: must be given
    low: float | None = None  # smallest and largest legal value
    high: float | None = None
    summary: str = ""
    example: Any = None  # for documentation and generated tests where there is no default
    hidden: bool = False  # a constant of the row that Python code cannot set

    @property
    def sample(self) -> Any:
        """A legal value."""
        return self.example if self.example is not None else self.default


@record(kw_only=True)
class Spelling:
    """How a form is written from one release on, where that differs from the form itself. ``None``: as in the form."""

    since: str
    call: str | None = None
    init: str | None = None
    template: tuple[str, ...] | None = None
    init_template: tuple[str, ...] | None = None


@record(kw_only=True)
class UnitForm:
    """One way to run an op.

    ``args`` says how the C++ call is filled: ``d0 d1 d2`` DST slot of a tile operand, ``o`` result slot, ``b0 b1``
    buffer of an operand, ``t0 t1`` tile index in that buffer, and parameters as ``name:f32`` (fp32 bits),
    ``name:recip`` (bits of 1/x), ``name:int``, ``name:float``. ``template`` entries are C++ text with ``{fmt}``
    (DataFormat of DST, e.g. DataFormat::Float32), ``{fp32}`` (true/false) and parameters as ``{name}``, ``{name:f32}``
    (fp32 bits), ``{name:format}`` (DATA_FORMATS of a dtype), ``{narrow:width}`` (DST's width, or 16 bits whatever DST is) or
    ``{whole:rows}`` (rows of numbers that a pass takes), ``{unlimited:limit}`` (whether small operands are cut off);
    ``template_text`` fills them in.
    """

    unit: Unit
    init: str  # canonical kernel call, as in the ttkernel dialect; "" if none is needed
    call: str
    header: str  # below api/compute/ (or compute_kernel_api/ in old releases)
    writes: Writes
    args: tuple[str, ...]
    template: tuple[str, ...] = ()
    init_template: tuple[str, ...] = ()
    init_args: tuple[str, ...] = ()
    stateful: bool = False  # the init leaves state the op needs: re-run after another stateful init
    lookup: bool = False  # its approximate form keeps a table in registers that every other vector call overwrites
    rounds: str = "truncate"  # into 16-bit DST: truncate, nearest-even, nearest-away, exact
    since: str = "0.62"  # first release that has it
    commutes: bool = False
    defaults: tuple[str, ...] = ()  # the API's own template arguments: equal ones at the end are not written
    init_defaults: tuple[str, ...] = ()
    includes_first: tuple[str, ...] = ()  # headers this one needs before it
    spellings: tuple[Spelling, ...] = ()  # oldest first
    by_faces: bool = False  # takes a VectorMode after its arguments; see tile_faces

    def at(self, release: str) -> UnitForm:
        """This form as ``release`` spells it."""
        if release not in self._spelled:
            self._spelled[release] = self._at(release)
        return self._spelled[release]

    @cached_property
    def _spelled(self) -> dict[str, UnitForm]:
        return {}

    def _at(self, release: str) -> UnitForm:
        current = self
        for spelling in self.spellings:
            if release_key(spelling.since) > release_key(release):
                break
            changed = {key: value for key, value in vars(spelling).items() if key != "since" and value is not None}
            current = replace(current, **changed)
        return current

    def exists_in(self, release: str) -> bool:
        return release_key(self.since) <= release_key(release)

    @cached_property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """Which of the op's operands the call takes first, second and so on; none if another form does the same."""
        plain = tuple(range(sum(argument[0] in "db" and argument[1:].isdigit() for argument in self.args)))
        # A dest-reuse form of a commuting op takes either operand from DST; DEST_TO_SRCA is the cheaper side.
        if self.commutes and self.unit is Unit.REUSE_A:
            return (plain, plain[::-1])
        if self.commutes and self.unit is Unit.REUSE_B:
            return ()
        return (plain,)

    @cached_property
    def init_params(self) -> frozenset[str]:
        """Parameters of the row that its init depends on, in any release."""
        templates = [self.init_template, *(spelling.init_template or () for spelling in self.spellings)]
        named = {name for template in templates for entry in template for name in re.findall(r"\{(\w+)", entry)}
        return frozenset(named | {argument.split(":")[0] for argument in self.init_args if ":" in argument})

    def keeps_table(self, template: Sequence[str]) -> bool:
        """Whether a call with these template arguments reads a table its init left in registers."""
        return self.lookup and is_approximate(self.template, self.defaults, template)

    def call_template(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Template arguments of the call as C++ text, without those the API assumes anyway."""
        return written_template(self.template, self.defaults, values)

    def init_call_template(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return written_template(self.init_template, self.init_defaults, values)


@record(kw_only=True)
class TileOp:
    """One op."""

    name: str  # ttl.<name> on tensors, ttl.tile_<name> on tiles
    summary: str
    arity: int  # tile operands
    forms: tuple[UnitForm, ...]
    reference: Meaning  # NumPy meaning, on float64 (or integer) arrays, parameters by keyword
    python: tuple[str, ...] = ()  # spellings below ttl., e.g. math.exp
    operator: str = ""  # Python operator: + - * / @ ** neg abs ...
    params: tuple[Param, ...] = ()
    dtypes: tuple[str, ...] = FLOAT_DTYPES
    domain: tuple[float, float] = (-4.0, 4.0)  # ordinary inputs for generated tests and examples
    bound_ulp: float = 2.0  # of the result in bf16, against ``reference``, in either DST width; measured where ``golden``
    faithful: tuple[float, float] = (-math.inf, math.inf)  # inputs for which the bounds hold, results that flush to 0 apart
    faithful_from: float = 0.0  # and their smallest magnitude
    approx_bound_ulp: float = 0.0  # the same with approx=True; 0: there is no such form
    result_dtype: str = ""  # empty: the operands' dtype; "{dtype}": what that parameter says
    notes: str = field(default="")
    scalar: str = ""  # row that takes a Python number as last operand instead of a tile; see tile_ops.with_number
    rscalar: str = ""  # row that takes a Python number as first operand
    by_dtype: tuple[tuple[str, str], ...] = ()  # (dtype, row) where an integer dtype needs another row
    golden: str = ""  # name of the vendor-simulator data that measured it
    jumps: bool = False  # a step function: the smallest error of its operand may change the result by a whole step

    def form(self, unit: Unit) -> UnitForm | None:
        for form in self.forms:
            if form.unit is unit:
                return form
        return None


@record(kw_only=True)
class Step:
    """One op of a composite: ``a0 a1`` are the composite's operands, ``s0 s1`` results of earlier steps."""

    op: str
    operands: tuple[str, ...]
    params: tuple[tuple[str, Any], ...] = ()  # a value, or "=name" for a parameter of the composite


@record(kw_only=True)
class Composite:
    """A Python function or operator the kernel API has no call for: the front end writes its steps instead."""

    name: str
    summary: str
    arity: int
    steps: tuple[Step, ...]  # the last one gives the result
    reference: Meaning
    python: tuple[str, ...] = ()
    operator: str = ""
    params: tuple[Param, ...] = ()
    scalar: str = ""
    rscalar: str = ""
    by_dtype: tuple[tuple[str, str], ...] = ()
    notes: str = ""


def dst_format(dtype: str, *, wide: bool) -> str:
    """C++ DataFormat of a value in DST: integers keep theirs, floats have the one of DST's width."""
    if dtype in INTEGER_DTYPES:
        return f"DataFormat::{DATA_FORMATS[dtype]}"
    return "DataFormat::Float32" if wide else "DataFormat::Float16_b"


@lru_cache(maxsize=256)
def release_key(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def encode(value: Any, encoding: str) -> int | float:
    """A parameter as the kernel API takes it: ``f32`` bits, ``recip`` bits of 1/x, ``int`` or ``float``."""
    if encoding == "int":
        return int(value)
    if encoding == "float":
        return float(value)
    if encoding == "recip":
        value = 1.0 / value if value else float("inf")
    return struct.unpack("<I", struct.pack("<f", value))[0]


def is_approximate(pattern: Sequence[str], defaults: Sequence[str], words: Sequence[str]) -> bool:
    """The argument that chooses the approximate form; if left out, the API's default."""
    place = list(pattern).index("{approx}") if "{approx}" in pattern else 0
    given = words if len(words) > place else defaults
    return len(given) > place and given[place] == "true"


# The template argument by which a function is computed to the bits of a 16-bit DST, whatever DST is.
NARROW = "narrow"
WIDTH = "{narrow:width}"
WIDTH_OF_DST, WIDTH_16 = "DST_ACCUM_MODE", "false"

# The template argument by which a call takes the tile in one pass of 32 rows of numbers, instead of a pass of 8 for every face.
WHOLE = "whole"
PASS = "{whole:rows}"
ROWS_OF_FACE, ROWS_OF_TILE = "8", "32"

# The template argument by which an exponential leaves out its lower limit, for operands that cannot be negative.
UNLIMITED = "unlimited"
LIMIT = "{unlimited:limit}"


def is_narrow(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Whether template arguments ask for the function as a 16-bit DST has it."""
    place = list(pattern).index(WIDTH) if WIDTH in pattern else len(words)
    return len(words) > place and words[place] == WIDTH_16


def template_text(entry: str, values: Mapping[str, Any]) -> str:
    """One template argument with its parameters filled in."""
    if "{" not in entry:
        return entry

    def text(match: re.Match[str]) -> str:
        if match[2] == "width":
            return WIDTH_16 if values.get(match[1]) else WIDTH_OF_DST
        if match[2] == "limit":
            return f"InputClamping::{'None' if values.get(match[1]) else 'ClampToNegative'}"
        if match[2] == "rows":
            return ROWS_OF_TILE if values.get(match[1]) else ROWS_OF_FACE
        value = values[match[1]]
        if match[2] == "format":
            return DATA_FORMATS[value]
        if match[2]:
            return f"0x{encode(value, match[2]):08X}"
        return str(value).lower() if isinstance(value, bool) else str(value)

    return re.sub(r"\{(\w+)(?::(\w+))?\}", text, entry)


def written_template(template: tuple[str, ...], defaults: tuple[str, ...], values: Mapping[str, Any]) -> tuple[str, ...]:
    if not template:
        return ()
    written = [template_text(entry, values) for entry in template]
    while written and len(written) <= len(defaults) and written[-1] == defaults[len(written) - 1]:
        written.pop()
    return tuple(written)


# Parts of a tile that a vector call may be confined to. A tile is four faces, upper left, upper right, lower left, lower right.
# Some calls take a ``VectorMode`` after their other arguments and then leave faces as they are: enough for a value of which
# only the first column, row or element is looked at.

FACES = "ttl.faces"  # of a tile op: the part of its result that anybody looks at
COLUMN, ROW, FIRST = "column", "row", "first"
ALL_FACES = frozenset(range(4))
MEMBERS = {COLUMN: frozenset((0, 2)), ROW: frozenset((0, 1)), FIRST: frozenset((0,))}
MODES = {COLUMN: "C", ROW: "R", FIRST: "None", WHOLE: "None"}

# First and last release in which the type of the argument is known, and how a mode is written there.
SPELLINGS = (("0.62", "0.69", "(int)VectorMode::{}"), ("0.78", "0.81", "VectorMode::{}"))


def mode_text(part: str, release: str) -> str | None:
    """The argument that confines a call to a part, or ``None`` if the release is not known to have it."""
    key = release_key(release)[:2]
    for first, last, text in SPELLINGS:
        if release_key(first) <= key <= release_key(last):
            return text.format(MODES[part])
    return None


def share(part: str) -> float:
    """How much of a whole tile's work a part is; empty text is the whole tile."""
    return len(MEMBERS[part]) / len(ALL_FACES) if part and part != WHOLE else 1.0


def in_one_pass(form: UnitForm, values: Mapping[str, Any], part: str, release: str) -> bool:
    """Whether a call can take its tile in one pass: approximate code is written out for the rows of a face."""
    return not part and PASS in form.at(release).template and not values.get("approx")
