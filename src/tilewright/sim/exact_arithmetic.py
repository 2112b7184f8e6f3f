"""The hardware's arithmetic: a tile is its storage pattern in L1 and an fp32 pattern in Src and DST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tilewright import hardware
from tilewright.dtypes import WORDS
from tilewright.program import ComputeConfig, TensorSpec
from tilewright.sim.arithmetic import Format, ProductJob, carry_out
from tilewright.sim.call_parameters import encoded_params, nearest_even, variant_of
from tilewright.sim.numerics import formats, fpu, packer, sfpu
from tilewright.sim.numerics.accumulate import Fidelity
from tilewright.sim.registry import Site
from tilewright.sim.tensors import Array, DirectMemory, join_faces
from tilewright.tile_pages import join_pages, split_pages

STORAGE: dict[str, Any] = {name: np.dtype(word).type for name, word in WORDS.items()}
ELEMENTWISE: dict[str, Callable[..., Array]] = {"add": fpu.elwadd, "sub": fpu.elwsub, "mul": fpu.elwmul}


class ExactArithmetic(DirectMemory):
    defers_products = True

    def __init__(self, config: ComputeConfig, chip: str) -> None:
        self.chip = chip
        self.dst32 = config.fp32_dest_acc_en
        self.erratum = fpu.Erratum() if hardware.CHIPS[chip].cancellation_erratum else None
        self.fidelity: Fidelity = cast(Fidelity, config.math_fidelity)
        self._calls: dict[tuple[Site, Site | None], tuple[tuple[int, ...], str, bool]] = {}
        self._zeros: dict[tuple[int, ...], Array] = {}

    def pages(self, spec: TensorSpec, array: Array) -> Array:
        if spec.dtype in STORAGE:
            kind = STORAGE[spec.dtype]
            fits = formats.holds_bf16(array) if spec.dtype == "bf16" else array.dtype.itemsize == np.dtype(kind).itemsize
            if fits:
                return split_pages(spec, np.ascontiguousarray(array).view(kind))
        return formats.to_l1(split_pages(spec, np.ascontiguousarray(array)), spec.dtype)

    def write_back(self, spec: TensorSpec, pages: Array, array: Array) -> None:
        if spec.dtype in STORAGE and array.dtype.itemsize == pages.dtype.itemsize and array.dtype != np.float16:
            array[...] = join_pages(spec, pages).view(array.dtype)
            return
        array[...] = join_pages(spec, formats.from_l1(pages, spec.dtype)).astype(array.dtype)

    def zeros(self, shape: tuple[int, ...]) -> Array:
        if shape not in self._zeros:
            self._zeros[shape] = np.zeros(shape, np.uint32)
        return self._zeros[shape]

    def to_source(self, tile: Array, dtype: str) -> Array:
        return packer.to_src(tile, dtype, dst32=self.dst32)

    def straight_to_dst(self, tile: Array, dtype: str, *, unpack_to_dest: bool) -> Array:
        return packer.copy_to_dst(tile, dtype, dst32=self.dst32, unpack_to_dest=unpack_to_dest)

    def copy(self, source: Array) -> Array:
        return packer.add_zero(source) if self.dst32 else source

    def binary(self, kind: str, a: Array, b: Array, old: Array | None, *, accumulate: bool) -> Array:
        before = self.zeros(a.shape) if old is None else old
        chip = {"dst32": self.dst32, "erratum": self.erratum, "fidelity": self.fidelity}
        return ELEMENTWISE[kind](a, b, before, **chip, accumulate=accumulate)

    def dst_to_source(self, value: Array, source: Format) -> Array:
        kept = packer.src_format(source[0], dst32=self.dst32, unpack_to_dest=source[1])
        return fpu.dest_to_src(value, dst32=self.dst32, src_format=cast(Any, kept))

    def broadcast(self, source: Array, dim: str, row: int = 0) -> Array:
        return fpu.broadcast_src_b(source, cast(fpu.Broadcast, dim), row=row)

    def unary_broadcast(self, source: Array, dim: str, *, direct: bool) -> Array:
        return fpu.unary_bcast(source, cast(fpu.Broadcast, dim), dst32=self.dst32, unpack_to_dest=direct)

    def transpose(self, source: Array, *, direct: bool) -> Array:
        return fpu.transpose(source, dst32=self.dst32, unpack_to_dest=direct)

    def turned(self, source: Array) -> Array:
        """A source tile as the unpacker transposes it."""
        return np.swapaxes(source, -1, -2)

    def matmul(self, in0: Array, in1: Array, old: Array) -> Array:
        return fpu.matmul_block(in0, in1, old, dst32=self.dst32, erratum=self.erratum, fidelity=self.fidelity)

    def products(self, jobs: list[ProductJob]) -> list[list[Array]]:
        return carry_out(jobs, self.matmul, self.zeros)

    def reduce(self, data: Array, scaler: Array, old: Array | None, *, pool: str, dim: str, dtype: str) -> Array:
        before = self.zeros(data.shape) if old is None else old
        kept = packer.src_format(dtype, dst32=self.dst32)
        return fpu.reduce(
            cast(Any, pool), cast(Any, dim), data, scaler, before, dst32=self.dst32, erratum=self.erratum,
            fidelity=self.fidelity, src_format=cast(Any, kept), fresh=old is None,
        )  # fmt: skip

    def vector(self, site: Site, init: Site | None, operands: list[Array], shape: tuple[int, ...]) -> Array:
        params, variant, nearest = self.vector_choice(site, init)
        if len(operands) == 2:
            return sfpu.binary(
                self.chip, site.name, *operands, dst32=self.dst32, params=params, nearest_even=nearest, variant=variant
            )
        if len(operands) == 3:
            return sfpu.ternary(self.chip, site.name, *operands, dst32=self.dst32, params=params, variant=variant)
        if not operands:
            return sfpu.unary(self.chip, site.name, self.zeros(shape), dst32=self.dst32, params=params, variant=variant)
        return sfpu.unary(self.chip, site.name, operands[0], dst32=self.dst32, params=params, variant=variant)

    def vector_choice(self, site: Site, init: Site | None) -> tuple[tuple[int, ...], str, bool]:
        """Immediates, variant and rounding of a call."""
        key = (site, init)
        if key not in self._calls:
            self._calls[key] = (encoded_params(site, init), variant_of(site, init), nearest_even(site))
        return self._calls[key]

    def only_faces(self, part: str, value: Array, old: Array | None = None) -> Array:
        return join_faces(part, value, old)

    def copy_slot(self, value: Array, *, integer: bool) -> Array:
        """Floats pass through the vector unit, which flushes denormals."""
        return value if integer else sfpu.unary(self.chip, "identity_tile", value, dst32=self.dst32)

    def vector_reduce(self, kind: str, dim: str, data: Array) -> Array:
        return sfpu.sfpu_reduce(self.chip, cast(Any, kind), cast(Any, dim), data, dst32=self.dst32)

    def vector_broadcast(self, kind: str, dim: str, data: Array, vector: Array) -> Array:
        return sfpu.sfpu_bcast(self.chip, cast(Any, kind), cast(Any, dim), data, vector, dst32=self.dst32)

    def constant_tile(self, values: Array, dtype: str) -> Array:
        """Numbers as L1 holds them."""
        return formats.to_l1(values, dtype)

    def pack(self, value: Array, dtype: str, *, relu: Any, old: Array | None) -> Array:
        return packer.pack(value, dtype, dst32=self.dst32, relu=relu, old_l1=old, l1_acc=old is not None)

    def mask_reduced(self, tile: Array, dim: str) -> Array:
        """What the packer's edge mask leaves of a reduced tile in DST: column 0, row 0 or one element."""
        masked = np.zeros_like(tile)
        rows = slice(None) if dim == "row" else slice(0, 1)
        cols = slice(None) if dim == "col" else slice(0, 1)
        masked[..., rows, cols] = tile[..., rows, cols]
        return masked
