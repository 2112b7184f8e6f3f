"""The object a decorated kernel becomes: compile it, call it, and it remembers what it compiled."""

from __future__ import annotations

import functools
import gc
import inspect
import types
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright.cache_key import key_of, on_disk
from tilewright.diagnostics import KernelError, Span, fail
from tilewright.lang.arguments import Arguments
from tilewright.lang.building import caller_span, span_in_line
from tilewright.lang.decorator_options import check_values, compile_options
from tilewright.lang.outputs import left_out, returned
from tilewright.lang.runtime_integers import RuntimeInteger, annotation_of, checked
from tilewright.lang.tensors import element_notes, is_tensor, is_writable, visible
from tilewright.options import Options

if TYPE_CHECKING:
    from tilewright.frontend.build import BuiltKernel
    from tilewright.program import Program
    from tilewright.timing.profile import Profile



class Kernel:
    """A kernel function with the options of its decorator."""

    def __init__(self, function: Callable[..., Any], grid: Any, options: Options) -> None:
        self.function = function
        self.grid = grid
        self.options = options
        self.signature = inspect.signature(function)
        wanted = {name: annotation_of(parameter.annotation) for name, parameter in self.signature.parameters.items()}
        self._runtime = {name: annotation for name, annotation in wanted.items() if annotation is not None}
        self._programs: dict[Any, Program] = {}
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def span(self) -> Span:
        code = self.function.__code__
        return span_in_line(code.co_filename, code.co_firstlineno)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Compiles for these arguments and runs: ttnn tensors on their device, others in the simulator.

        Outputs at the end may be left out: they are made like the first tensor and returned.
        """
        from tilewright import execution

        made = left_out(self.signature, args, named, self._runtime)
        bound = self.bind(args, {**named, **made})
        session = execution.current()
        tensors = [tensor for _, tensor in bound.tensors()]
        mode = execution.chosen_mode(session.mode, tensors)
        options = execution.fitted(session.options(self.options), mode, tensors)
        program = self._program(bound, options, session.keep_ir, cached=session.caches(mode))
        if not made.keys() <= {program.tensors[index].name for index in program.written_tensors}:
            self.bind(args, named)  # an input is missing: say so
        for index in program.written_tensors:
            if not is_writable(tensors[index]):
                found = f"the kernel writes to '{program.tensors[index].name}', which is read-only"
                raise fail("TW106", found, caller_span(self.name), help="pass a copy: array.copy()")
        numbers = {value.name: value.given for value in bound.values.values() if isinstance(value, RuntimeInteger)}
        execution.run(program, tensors, numbers)
        return returned(made)

    def compile(self, *args: Any, **options: Any) -> Program:
        """The program for arguments like these; nothing runs. Options as in `tilewright.options.Options`."""
        from tilewright import execution

        session = execution.current()
        keep_ir = bool(options.pop("keep_ir", False))
        return self._program(self.bind(args, {}), self._updated(options), keep_ir, cached=session.caches(session.mode))

    def profile(self, *args: Any, **options: Any) -> Profile:
        """How long a call with arguments like these takes on the chip, what binds it, which lines pay; nothing is computed."""
        from tilewright.timing.profile import profile

        bound = self.bind(args, {})
        numbers = {value.name: value.given for value in bound.values.values() if isinstance(value, RuntimeInteger)}
        return profile(self._program(bound, self._updated(options), False), numbers)[0]

    def build(self, *args: Any, **options: Any) -> BuiltKernel:
        """Only the front end: the ``ttl`` module before any pass."""
        return self._build(self.bind(args, {}), self._updated(options))

    def __get__(self, instance: Any, _owner: Any = None) -> Any:
        """A kernel that is a method gets its object, a constant of the compilation."""
        return self if instance is None else types.MethodType(self, instance)

    def bind(self, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """`Arguments` of this call; another front end has its own form of them."""
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as error:
            raise fail(
                "TW004", f"{self.name}: {error}", caller_span(self.name), help=f"its parameters are {self.signature}"
            ) from None
        bound.apply_defaults()
        span = caller_span(self.name)
        values = {
            name: checked(name, wanted, value, span) if (wanted := self._runtime.get(name)) and not is_tensor(value) else value
            for name, value in bound.arguments.items()
        }
        return Arguments(self.signature, values)

    def _updated(self, options: dict[str, Any]) -> Options:
        unknown = sorted(set(options) - set(Options.names()))
        if unknown:
            raise fail("TW015", f"unknown option '{unknown[0]}'", caller_span(unknown[0]), help=", ".join(Options.names()))
        check_values(options, caller_span(*options))
        return self.options.updated(**options)

    def key_parts(self) -> tuple[Any, ...]:
        """What makes this another kernel, for `content`."""
        return self.function, self.grid, self.options

    def _program(self, values: Any, options: Options, keep_ir: bool, *, cached: bool = False) -> Program:
        """Kept, on disk if ``cached``, or compiled."""
        key = key_of(self, self._visible(values), options)
        if key is None:
            return self._compiled(values, options, keep_ir)
        kept = (key, keep_ir)
        program = self._programs.get(kept)
        if program is None:
            program = self._stored(key, values, options) if cached and not keep_ir else self._compiled(values, options, keep_ir)
            if not program.reads_values:
                self._programs[kept] = program
        return program

    def _compiled(self, values: Any, options: Options, keep_ir: bool = False) -> Program:
        with collection_paused():  # loading the compiler is half of a first compilation
            from tilewright.compiler import compile_built

            built = self._build(values, options)
            program = compile_built(built, options, keep_ir=keep_ir)
        program.reads_values = built.reads_values
        program.diagnostics = (*program.diagnostics, *element_notes(program.tensors, self.span))
        return program

    def _stored(self, key: str, values: Any, options: Options) -> Program:
        """From disk, or compiled and put there."""
        from tilewright import cache

        def compile_again() -> Program:
            if key_of(self, self._visible(values), options) == key:
                return self._compiled(values, options)
            found = f"what '{self.name}' reads has changed since this program was stored"
            raise fail("TW017", found, self.span, help="compile it again; the IR of stored programs is made when it is asked for")

        found = cache.load(on_disk(key), compile_again)
        if found is not None:
            return found
        program = self._compiled(values, options)
        if not program.reads_values:
            cache.save(on_disk(key), program)
        return program

    def _visible(self, values: Any) -> dict[str, Any]:
        """The arguments with what a kernel may see of them in place of every tensor."""
        try:
            return values.replaced(visible)
        except KernelError as error:  # said at the call; found only here because the place costs more than the check
            place = caller_span(self.name)
            raise KernelError(*(replace(found, span=found.span or place) for found in error.diagnostics)) from None

    def _build(self, values: Any, options: Options) -> BuiltKernel:
        from tilewright.frontend.build import build_kernel

        return build_kernel(self, values, options)


def kernel(function: Callable[..., Any] | None = None, *, grid: Any = None, **arguments: Any) -> Any:
    """``@ttl.kernel(grid=(x, y))``, also called ``@ttl.operation``; any compile option may be given by name."""
    options = compile_options(arguments, caller_span("kernel"))

    def decorate(target: Callable[..., Any]) -> Kernel:
        if not inspect.isfunction(target):
            remedy = "write options by name, for example @ttl.operation(grid=(2, 2))"
            raise fail("TW004", f"only a function can be a kernel, not {target!r}", caller_span(), help=remedy)
        return Kernel(target, grid, options)

    return decorate if function is None else decorate(function)


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """No cyclic collection inside: IR is all cycles and stays alive, so a collection finds nothing and costs its size."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
