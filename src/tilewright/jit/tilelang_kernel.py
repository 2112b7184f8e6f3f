"""The object a TileLang function becomes: compile it, call it, and it remembers what it compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import KernelError, caller_span, fail
from tilewright.dialects.loading import collection_paused, load_xdsl
from tilewright.jit.kernel import Kernel
from tilewright.lang.tensors import is_tensor
from tilewright.lang.tilelang_tensors import (
    UNDECLARED,
    CallerTensors,
    Dimension,
    TensorArguments,
    TensorType,
    TileLangFunction,
    element_name,
)
from tilewright.narrowing import as_tuple
from tilewright.options import Options

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.build import BuiltTileLang
    from tilewright.program import Program


L1_IS_FULL = "TW302"


class TileLangKernel(Kernel, TileLangFunction):
    """``@T.prim_func``, or an eager ``@tilelang.jit`` function."""

    def __init__(self, function: Callable[..., Any], grid: Any = None, options: Options | None = None) -> None:
        super().__init__(function, grid, options or Options())
        self.out_idx: tuple[int, ...] = ()
        self.label = function.__name__

    @property
    def name(self) -> str:
        return self.label

    def copied(self) -> TileLangKernel:
        return TileLangKernel(self.function, self.grid, self.options)

    def with_outputs(self, out_idx: Any) -> TileLangKernel:
        """The same kernel, which creates and returns these parameters instead of taking them."""
        count = len(self.signature.parameters)
        given = () if out_idx is None else as_tuple(out_idx)
        changed = self.copied()
        changed.label = self.label
        changed.out_idx = tuple(sorted(index % count for index in given))
        return changed

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Runs on these arguments. Parameters named by ``out_idx``, and ``T.empty`` tensors, are created and returned."""
        from tilewright import execution

        values = self.bind(args, named)
        for index, (name, value) in enumerate(zip(self.signature.parameters, values, strict=True)):
            if isinstance(value, TensorType) and index not in self.out_idx:
                raise self._missing(name)
        session = execution.current()
        given = [value for value in values if is_tensor(value)]
        mode = execution.chosen_mode(session.mode, given)
        program = self._program(values, execution.fitted(session.options(self.options), mode, given), session.keep_ir)
        tensors = TensorArguments(program.argument_layouts, [value for value in values if is_tensor(value)])
        if session.runner is not None:  # it is told whose tensors they are; what it does with them is up to it
            session.runner(program, tensors.callers, {})
            return tensors.finish(run=False)
        execution.run(program, tensors.arrays)
        return tensors.finish(run=execution.chosen_mode(session.mode, tensors.arrays) != execution.COMPILE)

    def bind(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """Arguments in the order of the parameters; declared types stand in for tensors that are not given."""
        if not args and not named and self.types:
            return [self.types.get(name) or _default(name, parameter) for name, parameter in self.signature.parameters.items()]
        if not self.out_idx or len(args) + len(named) == len(self.signature.parameters):
            return self._matched(list(super().bind(args, named).values.values()))
        given = iter(args)
        values: list[Any] = []
        for index, name in enumerate(self.signature.parameters):
            if index in self.out_idx:
                values.append(self.types.get(name))
            elif name in named:
                values.append(named[name])
            else:
                value = next(given, None)
                if value is None:
                    raise self._missing(name)
                values.append(value)
        return self._matched(values)

    def _missing(self, name: str) -> Exception:
        remedy = f"its parameters are {self.signature}"
        return fail("TW004", f"{self.name}: '{name}' is missing", caller_span(self.name), help=remedy)

    def _matched(self, values: list[Any]) -> list[Any]:
        """Sizes that the call decides, set from the tensors given."""
        sizes = self.sizes(values)
        result: list[Any] = []
        for name, value in zip(self.signature.parameters, values, strict=True):
            if value is None and name not in self.types and self.signature.parameters[name].default is not None:
                raise fail("TW004", f"output '{name}' has no declared type", self.span, help=f"{name}: T.Tensor(shape, dtype)")
            if isinstance(value, TensorType):
                shape = tuple(sizes.get(size.name, size) if isinstance(size, Dimension) else size for size in value.shape)
                value = TensorType(shape, value.dtype)
            result.append(value)
        return result

    def build(self, *args: Any, **options: Any) -> BuiltTileLang:
        """Only the front end: the ``ttl`` module before any pass, and the tile program it was made from."""
        return self._build(self.bind(args, {}), self.updated_options(options))

    def get_kernel_source(self, *args: Any, **named: Any) -> str:
        """The C++ of all three threads, for these arguments or for declared shapes."""
        program = self.compile(*args, **named)
        return program.get_kernel_source() if isinstance(program, TileLangKernel) else "\n".join(program.cpp.values())

    def declared_types(self) -> list[TensorType]:
        """Types of the tensors a call takes, as the kernel reads without any."""
        built = self.build()
        taken = [layout for number, layout in enumerate(built.layouts) if number not in built.outputs and not layout.made]
        return [TensorType(layout.shape, layout.element) for layout in taken]

    def get_profiler(self, *_supply: Any, **_hints: Any) -> Any:
        from tilewright.jit.tilelang_jit import Profiler

        return Profiler(self)

    def _build(self, values: list[Any], options: Options, *, shallow: bool = False) -> BuiltTileLang:
        from tilewright.frontend.tilelang.build import build_tilelang

        return build_tilelang(self, values, options, shallow=shallow)

    def _built_program(self, values: list[Any], options: Options, keep_ir: bool) -> tuple[BuiltTileLang, Program]:
        """With buffers that let reader, compute and writer overlap, or, if L1 does not hold those, without."""
        from tilewright.compiler import compile_built

        built = self._build(values, options)
        try:
            return built, compile_built(built, options, keep_ir=keep_ir)
        except KernelError as error:
            if error.diagnostics[0].code != L1_IS_FULL:
                raise
        shallow = self._build(values, options, shallow=True)
        return shallow, compile_built(shallow, options, keep_ir=keep_ir)

    def _compiled(self, values: list[Any], options: Options, keep_ir: bool = False) -> Program:
        with collection_paused():
            load_xdsl()
            built, program = self._built_program(values, options, keep_ir)
        program.argument_layouts = CallerTensors(built.layouts, tuple(built.outputs), self.out_idx)
        program.diagnostics = (*program.diagnostics, *built.tile_program.notes)
        return program

    def _stored(self, key: str, values: Any, options: Options) -> Program:
        """Layouts of the caller's tensors are not kept on disk."""
        return self._compiled(values, options)

    def key_parts(self) -> tuple[Any, ...]:
        return *super().key_parts(), self.label, self.out_idx, self.types

    def _visible(self, values: list[Any]) -> dict[str, Any]:
        def seen(value: Any) -> Any:
            given = is_tensor(value) and not isinstance(value, TensorType)
            return (tuple(value.shape), element_name(value.dtype)) if given else value

        return {name: seen(value) for name, value in zip(self.signature.parameters, values, strict=True)}


def _default(name: str, parameter: inspect.Parameter) -> Any:
    if parameter.default is inspect.Parameter.empty:
        raise fail("TW004", f"argument '{name}' is missing", caller_span(), help="it has neither a value nor a declared type")
    return parameter.default


class EagerKernel(TileLangKernel):
    """``@tilelang.jit`` on the function that launches. ``fixed`` are arguments that are known already; ``known_sizes`` the values
    of sizes, by the names T.const gives them."""

    is_eager = True
    fixed: dict[str, Any]

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
        kernel.options = kernel.updated_options(options)
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
                remedy = f"its parameters are {self.signature}; sizes are named by T.const"
                raise fail("TW004", f"{self.name}: unknown argument '{name}'", caller_span("compile"), help=remedy)
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
