"""The object a decorated kernel becomes: compile it, call it, and it remembers what it compiled.

This is where the language, the front end, the compiler, the cache and the run meet; none of them knows this room.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from tilewright.cache_key import key_of, on_disk
from tilewright.diagnostics import KernelError, caller_span, fail
from tilewright.dialects.loading import collection_paused, load_xdsl
from tilewright.lang.kernel import (
    KernelFunction,
    RuntimeInteger,
    call_options,
    compile_options,
    possible_build,
)
from tilewright.lang.tensors import BFloat16View, element_notes, is_tensor, is_writable, lives_on_device, visible
from tilewright.narrowing import is_array
from tilewright.options import Options

if TYPE_CHECKING:
    from tilewright.frontend.build import BuiltKernel
    from tilewright.program import Program
    from tilewright.timing.advice import Again
    from tilewright.timing.profile import Profile

GATHERING = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class Kernel(KernelFunction):
    """A kernel that can be compiled and called."""

    def __init__(self, function: Callable[..., Any], grid: Any, options: Options) -> None:
        super().__init__(function, grid, options)
        self._programs: dict[Any, Program] = {}
        self._flagged: dict[str, Kernel] = {}
        self._latest: Program | None = None  # for those who show the kernel
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, _owner: Any = None) -> Any:
        """A kernel that is a method gets its object, a constant of the compilation."""
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Compiles for these arguments and runs: ttnn tensors on their device, others in the simulator.

        Outputs at the end may be left out: they are made like the first tensor and returned. In the body of another kernel the
        call stands for this one's threads and buffers.
        """
        from tilewright import execution

        if "options" in named and "options" not in self.signature.parameters:
            return self._with_flags(str(named.pop("options") or ""))(*args, **named)
        if (build := possible_build()) is not None:
            from tilewright.frontend.composition import expand  # late: most kernels call no other

            return expand(self, args, named, build)
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
        again = self._again(bound, options) if mode == execution.PROFILE else None
        if program.cpp:  # else it has no threads: its body has run
            execution.run(program, tensors, numbers, again=again)
        return returned(made)

    def _repr_html_(self) -> str:
        """For notebooks."""
        from tilewright import notebook

        place = f"{notebook.shown_file(self.span.file)}:{self.span.line}"
        latest = self._latest._repr_html_() if self._latest is not None else ""  # pyright: ignore[reportPrivateUsage]
        return notebook.kernel(self.name, self.grid, place, latest)

    def compile(self, *args: Any, **options: Any) -> Program:
        """The program for arguments like these; nothing runs. Names of parameters are arguments, others as in `Options`."""
        from tilewright import execution

        session = execution.current()
        keep_ir = bool(options.pop("keep_ir", False))
        named = {name: options.pop(name) for name in self.signature.parameters if name in options}
        bound = self.bind(args, named)
        return self._program(bound, self.updated_options(options), keep_ir, cached=session.caches(session.mode))

    def profile(self, *args: Any, **options: Any) -> Profile:
        """How long a call with arguments like these takes on the chip, what binds it, which lines pay; arguments do not change.

        ``thorough=True`` tries everything that may help, however large the kernel is. ``values=True`` says how far the results
        on this data are off, too.
        """
        from tilewright.lang.tensors import to_array
        from tilewright.timing.profile import profile

        named = {name: options.pop(name) for name in self.signature.parameters if name in options}
        bound = self.bind(args, named)
        numbers = {value.name: value.given for value in bound.values.values() if isinstance(value, RuntimeInteger)}
        thorough, values = bool(options.pop("thorough", False)), bool(options.pop("values", False))
        arrays = [to_array(tensor).copy() for _, tensor in bound.tensors()] if values else None
        wanted = self.updated_options(options)
        program, again = self._program(bound, wanted, False), self._again(bound, wanted)
        return profile(program, numbers, again=again, thorough=thorough, arrays=arrays)[0]

    def _again(self, values: Any, options: Options) -> Again:
        """How to compile this kernel in other ways, for a profile that tries what would help."""
        from tilewright.lang.kernel import block_sizes, rebound
        from tilewright.timing.advice import Again

        def compiled(changes: Mapping[str, Any], sizes: Mapping[str, int]) -> Program:
            kernel = Kernel(rebound(self.function, sizes), self.grid, self.options) if sizes else self
            return kernel._compiled(values, options.updated(**changes))

        return Again(compiled, block_sizes(self.function))

    def _with_flags(self, text: str) -> Kernel:
        """This kernel with the flags of a call, ``options="--…"``; what it compiles is kept with it."""
        if text not in self._flagged:
            changes = call_options(text, caller_span("options"))
            self._flagged[text] = self.with_options(**changes) if changes else self
        return self._flagged[text]

    def with_options(self, **options: Any) -> Kernel:
        """The same kernel with other compile options."""
        changed = copy.copy(self)
        changed.options, changed._programs, changed._flagged = self.updated_options(options), {}, {}
        changed._latest = None
        return changed

    def build(self, *args: Any, **options: Any) -> BuiltKernel:
        """Only the front end: the ``ttl`` module before any pass."""
        return self._build(self.bind(args, {}), self.updated_options(options))

    def _program(self, values: Any, options: Options, keep_ir: bool, *, cached: bool = False) -> Program:
        """Kept, on disk if ``cached``, or compiled."""
        key = key_of(self, self._visible(values), options)
        if key is None:
            self._latest = self._compiled(values, options, keep_ir)
            return self._latest
        kept = (key, keep_ir)
        program = self._programs.get(kept)
        if program is None:
            program = self._stored(key, values, options) if cached and not keep_ir else self._compiled(values, options, keep_ir)
            if not program.reads_values:
                self._programs[kept] = program
        self._latest = program
        return program

    def _compiled(self, values: Any, options: Options, keep_ir: bool = False) -> Program:
        with collection_paused():  # loading the compiler is half of a first compilation
            load_xdsl()
            from tilewright.compiler import compile_built

            built = self._build(values, options)
            program = compile_built(built, options, keep_ir=keep_ir)
        program.reads_values, program.meanings = built.reads_values, built.meanings
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


# Outputs the caller leaves out --------------------------------------------------------------------------------------


def left_out(signature: Signature, args: Sequence[Any], named: Mapping[str, Any], numbers: Collection[str]) -> dict[str, Any]:
    """Tensors for the parameters at the end that got none; nothing if the call is wrong in another way."""
    try:
        given = signature.bind_partial(*args, **named).arguments
    except TypeError:
        return {}
    names = list(signature.parameters)
    missing = [
        name
        for name, parameter in signature.parameters.items()
        if name not in given and parameter.default is Parameter.empty and parameter.kind not in GATHERING
    ]
    first = next((value for value in given.values() if is_tensor(value)), None)
    if not missing or first is None or names[-len(missing) :] != missing or any(name in numbers for name in missing):
        return {}
    made = {name: empty_like(first) for name in missing}
    return {} if any(value is None for value in made.values()) else made


def empty_like(value: Any) -> Any:
    """A tensor of the same kind as ``value``, to be written; None where that is not known."""
    import numpy

    if lives_on_device(value):
        return importlib.import_module("tilewright.runtime.devices").like(value)
    if isinstance(value, BFloat16View):
        return BFloat16View(value.array * 0)
    if is_array(value):
        return numpy.zeros_like(value)
    if type(value).__module__.partition(".")[0] == "torch":
        return value.new_zeros(value.shape)
    return None


def returned(made: Mapping[str, Any]) -> Any:
    """What the call gives back: the one tensor it made, or all of them in order, or nothing."""
    values = tuple(made.values())
    return values[0] if len(values) == 1 else values or None
