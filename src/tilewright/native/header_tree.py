"""The include tree a kernel of one release sees: every public header path, as a thin file over ``include/tw``.

The files are generated, so that 130 paths times every spelling stay one table. Vector-unit functions are invocations of the
macros of ``tw/compute/vector.h``. A family ``U0 abs`` declares ``abs_tile`` and ``abs_tile_init``. ``U0 ceil:rounding_op``
shares another init, ``@name`` gives the function's whole name. ``UT gelu 0 1`` has an algorithm chosen by template argument 0,
default 1; with ``UN`` only the call does. ``UTW`` has the width of DST as the next argument of call and init, ``UTX`` of the
call alone; ``UW silu 0`` has nothing else. ``U0I``, ``U1I``, ``BI`` and ``TI`` are told the data format by their first template
argument.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

# Headers whose functions are written by hand in tw/compute/vector_special.h.
SPECIAL = (
    "eltwise_unary/exp.h", "eltwise_unary/fill.h", "eltwise_unary/fmod.h", "eltwise_unary/remainder.h", "eltwise_unary/recip.h",
    "eltwise_unary/rounding.h", "eltwise_unary/typecast.h", "eltwise_unary/rdiv.h", "eltwise_unary/rpow.h",
    "copy_dest_values.h", "mask.h", "isclose.h", "cumsum.h",
)  # fmt: skip

FAMILIES: dict[str, str] = {
    "eltwise_unary/activations.h": "U0 hardsigmoid; U0 softsign; U2 celu; U1 softshrink; U1 hardshrink; P0 hardsigmoid",
    "eltwise_unary/addcdiv.h": "T1 addcdiv",
    "eltwise_unary/addcmul.h": "T1 addcmul",
    "eltwise_unary/binop_with_scalar.h": (
        "I binop_with_scalar_tile_init; U1 add_unary:binop_with_scalar; U1 sub_unary:binop_with_scalar;"
        "U1 mul_unary:binop_with_scalar; U1 div_unary:binop_with_scalar; U1 rsub_unary:binop_with_scalar;"
        "U1 @add_unary_tile_int32:binop_with_scalar;"
        "U1 @sub_unary_tile_int32:binop_with_scalar"
    ),
    "eltwise_unary/bitwise.h": "U1I bitwise_and; U1I bitwise_or; U1I bitwise_xor",
    "eltwise_unary/bitwise_not.h": "U0 bitwise_not",
    "eltwise_unary/cbrt.h": "U0 cbrt",
    "eltwise_unary/clamp.h": "U2 clamp; U2 @clamp_tile_int32:clamp",
    "eltwise_unary/comp.h": (
        "U1 unary_eq; U1 unary_ne; U1 unary_gt; U1 unary_ge; U1 unary_lt; U1 unary_le; U1 @unary_eq_tile_int32:unary_eq;"
        "U1 @unary_ne_tile_int32:unary_ne; U1 @unary_gt_tile_int32:unary_gt; U1 @unary_ge_tile_int32:unary_ge;"
        "U1 @unary_lt_tile_int32:unary_lt; U1 @unary_le_tile_int32:unary_le; U0 gtz; U0 nez; U0 gez; U0 ltz; U0 eqz; U0 lez;"
        "U0 @gtz_tile_int32:gtz; U0 @nez_tile_int32:nez; U0 @gez_tile_int32:gez; U0 @ltz_tile_int32:ltz; U0 @eqz_tile_int32:eqz;"
        "U0 @lez_tile_int32:lez; U0 @eqz_tile_uint32:eqz; U0 @nez_tile_uint32:nez;"
        "U0 @eqz_tile_uint16:eqz; U0 @nez_tile_uint16:nez"
    ),
    "eltwise_unary/digamma.h": "U0 digamma",
    "eltwise_unary/dropout.h": "I1 dropout_kernel_init; U2 dropout:@dropout_kernel_init",
    "eltwise_unary/elu.h": "U1 elu",
    "eltwise_unary/erf_erfc.h": "UT erf 0 1; U0 erfc",
    "eltwise_unary/erfinv.h": "U0 erfinv",
    "eltwise_unary/gelu.h": "UT gelu 0 1; UT gelu_derivative 0 0; U0 gelu_tanh; P0 gelu; P0 gelu_tanh",
    "eltwise_unary/hardmish.h": "U0 hardmish",
    "eltwise_unary/hardtanh.h": "U2 hardtanh; P2 hardtanh",
    "eltwise_unary/i0.h": "U0 i0",
    "eltwise_unary/i1.h": "U0 i1",
    "eltwise_unary/identity.h": "U0 identity; U0 @identity_tile_uint32:identity",
    "eltwise_unary/isinf_isnan.h": "U0 isinf; U0 isposinf; U0 isneginf; U0 isnan; U0 isfinite",
    "eltwise_unary/lerp.h": "T lerp",
    "eltwise_unary/lgamma.h": "U0 lgamma_stirling; B lgamma_stirling_float; T lgamma_adjusted",
    "eltwise_unary/log1p.h": "UTW log1p 0 0",
    "eltwise_unary/logical_not.h": "U0I logical_not",
    "eltwise_unary/mac.h": "T mac",
    "eltwise_unary/mish.h": "UT mish 0 0",
    "eltwise_unary/negative.h": "U0 negative; U0 @negative_tile_int32:negative",
    "eltwise_unary/polygamma.h": "U2 polygamma",
    "eltwise_unary/prelu.h": "U1 prelu",
    "eltwise_unary/rand.h": "I2 rand_tile_init; U2 rand:rand",
    "eltwise_unary/relu.h": (
        "U0 relu; U1 relu_min; U1 relu_max; I leaky_relu_tile_init; S leaky_relu; P1 relu_max; U0 @relu_tile_int32:relu;"
        "U1 @relu_max_tile_int32:relu_max; U1 @relu_min_tile_int32:relu_min; U1 @relu_max_tile_uint32:relu_max;"
        "U1 @relu_min_tile_uint32:relu_min; U1 @relu_max_tile_uint16:relu_max; U1 @relu_min_tile_uint16:relu_min"
    ),
    "eltwise_unary/reverseops.h": "U1 rsub",
    "eltwise_unary/rsqrt.h": "UN rsqrt 1 0",
    "eltwise_unary/rsub.h": "U1 rsub; U1 @rsub_unary_int32_tile",
    "eltwise_unary/selu.h": "U2 selu; P2 selu",
    "eltwise_unary/shift.h": "U1I left_shift; U1I right_shift",
    "eltwise_unary/snake_beta.h": "T snake_beta",
    "eltwise_unary/sfpu_int_sum.h": (
        "I sfpu_sum_int_init; U0 @sfpu_sum_int_col:@sfpu_sum_int_init; U0 @sfpu_sum_int_row:@sfpu_sum_int_init"
    ),
    "eltwise_unary/softplus.h": "U3 softplus; P3 softplus",
    "eltwise_unary/sqrt.h": "UN sqrt 0 0",
    "eltwise_unary/tanh_derivative.h": "UT tanh_derivative 0 0",
    "eltwise_unary/tanhshrink.h": "U0 tanhshrink",
    "eltwise_unary/threshold.h": "U2 threshold",
    "eltwise_unary/trigonometry.h": (
        "U0 sin; U0 cos; U0 tan; U0 asin; U0 acos; U0 atan; U0 sinh; U0 cosh; U0 asinh; U0 acosh; U0 atanh"
    ),
    "eltwise_unary/where.h": "TI where",
    "eltwise_unary/xielu.h": "U2 xielu",
    "compute_kernel_api.h": (
        "UTX sigmoid 1 0; P0 sigmoid; UW silu 0; P0 silu; UTW tanh 0 0; P0 tanh; U0 square; UTW log 0 0; U1 log_with_base;"
        "U0 signbit; U0 @signbit_tile_int32; U0 abs; U0 @abs_tile_int32:abs; U0 sign; U0 tiled_prod; U0 alt_complex_rotate90;"
        "U0 exp2;"
        "U1 heaviside; UTW expm1 0 0; U1 unary_max; U1 unary_min; U1 @unary_max_int32_tile; U1 @unary_min_int32_tile;"
        "U1 @unary_max_uint32_tile; U1 @unary_min_uint32_tile; S sfpu_reduce"
    ),
    "add_int_sfpu.h": "BI add_int",
    "atan2.h": "B atan2_binary",
    "binary_bitwise_sfpu.h": (
        "I binary_bitwise_tile_init; BI bitwise_and_binary:binary_bitwise; BI bitwise_or_binary:binary_bitwise;"
        "BI bitwise_xor_binary:binary_bitwise"
    ),
    "binary_comp.h": "BI eq_int; BI ne_int; BI lt_int; BI gt_int; BI le_int; BI ge_int",
    "binary_fmod.h": "B @fmod_int32_tile; B fmod_binary",
    "binary_max_min.h": (
        "BV binary_max; BV binary_min; B @binary_max_int32_tile; B @binary_min_int32_tile; B @binary_max_uint32_tile;"
        "B @binary_min_uint32_tile"
    ),
    "binary_remainder.h": "B @remainder_int32_tile; B @remainder_uint32_tile; B remainder_binary",
    "binary_shift.h": (
        "I binary_shift_tile_init; BI binary_left_shift:binary_shift; BI binary_right_shift:binary_shift;"
        "BI binary_logical_right_shift:binary_shift"
    ),
    "div_int32_floor.h": "B @div_int32_floor_tile; B @div_int32_trunc_tile",
    "div_int32_sfpu.h": "B @div_int32_tile",
    "eltwise_binary_sfpu.h": (
        "BR add_binary; BR sub_binary; BR rsub_binary; B mul_binary; B div_binary; B power_binary; B eq_binary; B ne_binary;"
        "B lt_binary; B gt_binary; B le_binary; B ge_binary"
    ),
    "gcd.h": "B gcd",
    "lcm.h": "B lcm",
    "logaddexp.h": "B logaddexp_binary",
    "logaddexp2.h": "B logaddexp2_binary",
    "logsigmoid.h": "B logsigmoid",
    "mul_int_sfpu.h": "BI mul_int",
    "ema.h": "I2 ema_init; U0 ema:@ema_init",
    "nextafter.h": "B nextafter_binary; B nextafter_bf16_binary",
    "quantization.h": (
        "I1 quant_tile_init; I1 quant_uint8_tile_init; I1 quant_int8_tile_init; I1 requant_tile_init; I1 requant_uint8_tile_init;"
        "I1 requant_int8_tile_init; I1 requant_int8_in_tile_init; I1 requant_int8_in_uint8_out_tile_init;"
        "I1 requant_int8_in_int8_out_tile_init; I1 dequant_tile_init; I1 dequant_int8_tile_init; B quant:quant;"
        "B quant_int8:quant_int8; B requant:requant; B requant_int8:requant_int8; B requant_int8_in:requant_int8_in;"
        "B requant_int8_in_int8_out:requant_int8_in_int8_out; B dequant:dequant; B dequant_int8:dequant_int8"
    ),
    "reshuffle.h": "U1 reshuffle_rows",
    "sfpu_binary_bcast.h": (
        "I sfpu_bcast_col_init; I sfpu_bcast_row_init; B2 @sfpu_add_bcast_col:@sfpu_bcast_col_init;"
        "B2 @sfpu_sub_bcast_col:@sfpu_bcast_col_init; B2 @sfpu_mul_bcast_col:@sfpu_bcast_col_init;"
        "B2 @sfpu_add_bcast_row:@sfpu_bcast_row_init; B2 @sfpu_sub_bcast_row:@sfpu_bcast_row_init;"
        "B2 @sfpu_mul_bcast_row:@sfpu_bcast_row_init; S sfpu_bcast; I sfpu_normalize_bcast_scalar_init;"
        "B @sfpu_normalize_bcast_col:@sfpu_bcast_col_init; B @sfpu_normalize_bcast_scalar:@sfpu_normalize_bcast_scalar_init;"
        "T @sfpu_residual_normalize_bcast_col:@sfpu_bcast_col_init; T @sfpu_normalize_bcast_col_two_tiles:@sfpu_bcast_col_init"
    ),
    "sub_int_sfpu.h": "BI sub_int; BI rsub_int",
    "xlogy.h": "B xlogy_binary",
}

# Only in the oldest release, and only since then. Its power_tile takes whole exponents: power_iterative_tile later.
OLD_FAMILIES: dict[str, str] = {"compute_kernel_api.h": "I max_tile_init; OLD_MAX max; OLD_POWER power"}
NEW_FAMILIES: dict[str, str] = {"compute_kernel_api.h": "U1 power; U1 power_iterative"}


def _names(text: str) -> tuple[str, str, bool]:
    """Function, init, and whether this line also declares the init."""
    name, _, shared = text.partition(":")
    function = name[1:] if name.startswith("@") else f"{name}_tile"
    if not shared:
        return function, f"{function}_init", True
    return function, shared[1:] if shared.startswith("@") else f"{shared}_tile_init", False


def macro_lines(families: str) -> list[str]:
    """C++ macro invocations for one header."""
    lines: list[str] = []
    for item in filter(None, (part.strip() for part in families.split(";"))):
        kind, subject, *numbers = item.split()
        if kind == "S":  # by hand in vector_special.h
            continue
        if kind in ("I", "I1", "I2"):
            lines.append(f"TW_INIT{kind[1:]}({subject})")
            continue
        if kind in ("OLD_MAX", "OLD_POWER"):
            lines.append(f"TW_{kind}")
            continue
        function, init, own_init = _names(subject)
        if kind.startswith("P"):
            pack_init = f"{function}_init_pack"
            lines += [f"TW_INIT_P({pack_init})", f"TW_{kind}({function}_pack, {function}, {pack_init})"]
        elif kind == "UT":
            at, default = numbers
            lines += [f"TW_INIT_T({init}, 0, {default})", f"TW_UT({function}, {init}, {at}, {default})"]
        elif kind in ("UTW", "UTX"):
            at, default = numbers
            lines += [f"TW_INIT_{kind[1:]}({init}, {default})", f"TW_UTW({function}, {init}, {at}, {default})"]
        elif kind == "UW":
            lines += [f"TW_INIT_W({init})", f"TW_UW({function}, {init}, {numbers[0]})"]
        elif kind == "UN":
            lines += [f"TW_INIT({init})", f"TW_UN({function}, {init}, {', '.join(numbers)})"]
        else:
            lines += [f"TW_INIT({init})"] * own_init
            lines.append(f"TW_{kind}({function}, {init})")
    return lines


INCLUDE = Path(__file__).parent / "include"

FIRST_NEW_PATHS = 69  # from 0.69 on: api/compute/ instead of compute_kernel_api/
FIRST_TRANSPOSE = 74  # from 0.74 on: transpose.h instead of transpose_wh.h

BASE = "tw/compute/base.h"
VECTOR = "tw/compute/vector_special.h"
DATAFLOW = "tw/dataflow/api.h"

# Header below the compute root -> the file of ours that has its functions.
COMPUTE_HEADERS = {
    "common.h": BASE,
    "common_globals.h": BASE,
    "blank.h": BASE,
    "cb_api.h": BASE,
    "reg_api.h": BASE,
    "pack.h": BASE,
    "reconfig_data_format.h": BASE,
    "compute_kernel_hw_startup.h": BASE,
    "eltwise_unary/sfpu_split_includes.h": BASE,
    "tile_move_copy.h": "tw/compute/move.h",
    "eltwise_unary/eltwise_unary.h": "tw/compute/unary_start.h",
    "eltwise_binary.h": "tw/compute/binary.h",
    "bcast.h": "tw/compute/bcast.h",
    "matmul.h": "tw/compute/matmul.h",
    "reduce.h": "tw/compute/reduce.h",
    "reduce_custom.h": "tw/compute/reduce.h",
}
OLD_COMPUTE_HEADERS = {
    "transpose_wh.h": "tw/compute/transpose.h",
    "transpose_wh_dest.h": "tw/compute/transpose.h",
}
NEW_COMPUTE_HEADERS = {
    "transpose.h": "tw/compute/transpose.h",
    "transpose_dest.h": "tw/compute/transpose.h",
}
OLD_PATHS = {
    "dataflow_api.h": DATAFLOW,
    "accessor/tensor_accessor.h": DATAFLOW,
    "debug/dprint.h": "tw/kernel_args.h",
}
NEW_PATHS = {
    "api/dataflow/dataflow_api.h": DATAFLOW,
    "api/dataflow/noc.h": "tw/dataflow/objects.h",
    "api/dataflow/endpoints.h": "tw/dataflow/objects.h",
    "api/dataflow/noc_semaphore.h": "tw/dataflow/objects.h",
    "api/semaphore.h": "tw/dataflow/objects.h",
    "api/core_local_mem.h": "tw/dataflow/objects.h",
    "api/dataflow/circular_buffer.h": "tw/dataflow/circular_buffer.h",
    "api/dataflow/dataflow_buffer.h": "tw/dataflow/circular_buffer.h",
    "experimental/kernel_args.h": "tw/named_args.h",
    "api/tensor/tensor_accessor.h": DATAFLOW,
    "api/tensor/tensor_accessor_args.h": DATAFLOW,
    "api/tensor/noc_traits.h": "tw/dataflow/objects.h",
    "api/compile_time_args.h": "tw/kernel_args.h",
    "api/debug/dprint.h": "tw/kernel_args.h",
}
ALL_PATHS = {"hostdevcommon/kernel_structs.h": "tw/types.h"}
FIRST_FORMATTED_PRINT = 78  # from 0.78 on: DPRINT("{}", x) instead of DPRINT << x


def _forward(target: str) -> str:
    return f'#pragma once\n#include "{target}"\n'


def _vector_header(name: str, release: int) -> str:
    dated = OLD_FAMILIES if release < FIRST_NEW_PATHS else NEW_FAMILIES
    families = FAMILIES[name] + "; " + dated.get(name, "")
    lines = "\n".join(macro_lines(families))
    return f'#pragma once\n#include "{VECTOR}"\nnamespace ckernel {{\n{lines}\n}}\n'


def header_files(release: int) -> dict[str, str]:
    """Path -> text of every header a kernel may include."""
    root = "compute_kernel_api/" if release < FIRST_NEW_PATHS else "api/compute/"
    moved = OLD_COMPUTE_HEADERS if release < FIRST_TRANSPOSE else NEW_COMPUTE_HEADERS
    files = {root + name: _forward(target) for name, target in {**COMPUTE_HEADERS, **moved}.items()}
    files |= {root + name: _forward(VECTOR) for name in SPECIAL}
    files |= {root + name: _vector_header(name, release) for name in FAMILIES}
    paths = {**ALL_PATHS, **(OLD_PATHS if release < FIRST_NEW_PATHS else NEW_PATHS)}
    files |= {path: _forward(target) for path, target in paths.items()}
    if release >= FIRST_FORMATTED_PRINT:
        files |= {f"api/debug/{name}": _forward("tw/debug.h") for name in ("dprint.h", "dprint_tile.h", "device_print.h")}
    if release < FIRST_NEW_PATHS:
        files["compute_kernel_api.h"] = _forward(root + "compute_kernel_api.h")
    return files


def tree_digest(release: int) -> str:
    """Changes whenever a header a kernel can see changes."""
    digest = hashlib.sha256()
    for path in sorted(INCLUDE.rglob("*.h")):
        digest.update(path.relative_to(INCLUDE).as_posix().encode() + b"\0" + path.read_bytes())
    for name, text in sorted(header_files(release).items()):
        digest.update(f"{name}\0{text}".encode())
    return digest.hexdigest()[:16]


def write_tree(release: int, folder: Path) -> None:
    for name, text in header_files(release).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
