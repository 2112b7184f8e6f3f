"""Kernels in the eager style: ``@tilelang.jit`` on the function that launches, sizes named by ``T.const``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.diagnostics import fail
from tilewright.lang.building import caller_span
from tilewright.lang.tilelang_kernel import TileLangKernel
from tilewright.options import Options


class Undeclared:
    """A tensor that was not given; the annotation in the kernel's body says what it is."""

    def __repr__(self) -> str:
        return "a tensor that the kernel declares"


UNDECLARED = Undeclared()


class EagerKernel(TileLangKernel):
    """``fixed`` are arguments that are known already; ``known_sizes`` the values of sizes, by the names T.const gives them."""

    fixed: dict[str, Any]
    known_sizes: dict[str, int]

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.fixed, self.known_sizes = {}, {}

    def copied(self) -> EagerKernel:
        changed = EagerKernel(self.function, self.grid, self.options)
        changed.fixed, changed.known_sizes = dict(self.fixed), dict(self.known_sizes)
        return changed

    def key_parts(self) -> tuple[Any, ...]:
        return *super().key_parts(), self.fixed, self.known_sizes

    def compile(self, *args: Any, **named: Any) -> Any:
        """The program for these arguments. With sizes or arguments by name, as in ``gemm.compile(M=512, block=64)``: a kernel
        that has them fixed and takes the tensors that are left."""
        own = {name: value for name, value in named.items() if name not in Options.names() and name != "keep_ir"}
        options = {name: value for name, value in named.items() if name not in own}
        if not own:
            return super().compile(*args, **options)
        kernel = self._fixed(own)
        kernel.options = kernel._updated(options)
        return super(EagerKernel, kernel).compile(*args) if args else kernel

    def _fixed(self, given: dict[str, Any]) -> EagerKernel:
        kernel = self.with_outputs(self.out_idx)
        assert isinstance(kernel, EagerKernel)
        for name, value in given.items():
            if name in self.signature.parameters:
                kernel.fixed[name] = value
            elif isinstance(value, int):
                kernel.known_sizes[name] = value
            else:
                raise fail(
                    "TW004",
                    f"{self.name}: unknown argument '{name}'",
                    caller_span("compile"),
                    help=f"its parameters are {self.signature}; sizes are named by T.const",
                )
        return kernel

    def bind(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        if not self.fixed and not self.known_sizes:
            return super().bind(args, named)
        given = {**self.fixed, **named}
        rest = [name for name in self.signature.parameters if name not in given]
        given.update(zip(rest, args, strict=False))
        if not args:
            parameters = self.signature.parameters
            given.update({name: UNDECLARED for name in rest if parameters[name].default is parameters[name].empty})
        return super().bind((), given)
