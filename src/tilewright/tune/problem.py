"""One call to be tuned: which kernel, for which tensors and sizes, and how a configuration of it becomes a program.

A subject is what the decorator stands on. On a kernel, parameters that the configuration names come from it, and names of
compile options (``grid``, ``math_fidelity``, …) change the options. On a function that makes a kernel, its parameters do, and the
kernel it returns takes the tensors of the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright import execution
from tilewright.diagnostics import Span, caller_span, fail, span_in_line
from tilewright.jit.kernel import Kernel
from tilewright.jit.tilelang_kernel import TileLangKernel
from tilewright.lang.kernel import RuntimeInteger
from tilewright.lang.tensors import describe, is_tensor, lives_on_device
from tilewright.narrowing import is_mapping
from tilewright.options import Options
from tilewright.records import record
from tilewright.tune.space import Config, Space, list_space, text_of

if TYPE_CHECKING:
    from tilewright.program import Program


@record(eq=False)
class Problem:
    """The arguments of one call, apart from what is tuned."""

    args: tuple[Any, ...]  # positional: tensors, and others if the subject takes them so
    named: dict[str, Any]
    key: dict[str, Any]  # what tells this problem from others in a results file; plain values
    chip: str
    options: dict[str, Any]  # compile options of the session


class Subject:
    """A kernel, or a function that makes one."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.function: Callable[..., Any] = getattr(target, "function", target)
        self.makes_kernels = not isinstance(target, Kernel)
        self.signature = inspect.signature(self.function)
        self._made: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def file(self) -> str:
        return self.function.__code__.co_filename

    @property
    def span(self) -> Span:
        return span_in_line(self.file, self.function.__code__.co_firstlineno)

    def kernel(self, problem: Problem, config: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The kernel of a configuration, and the arguments its call takes."""
        parameters = self.signature.parameters
        own = {name: value for name, value in config.items() if name in parameters}
        options = {name: value for name, value in config.items() if name not in parameters}
        unknown = sorted(set(options) - set(Options.names()))
        if unknown:
            remedy = f"'{self.name}' has the parameters {', '.join(parameters)}; names of compile options are known, too"
            raise fail("TW019", f"'{unknown[0]}' is neither a parameter nor an option", self.span, help=remedy)
        if not self.makes_kernels:
            return self._configured(self.target, options), problem.args, {**problem.named, **own}
        tensors = tuple(value for value in problem.args if is_tensor(value))
        rest = tuple(value for value in problem.args if not is_tensor(value))
        takes = {name: value for name, value in problem.named.items() if name in parameters}
        wanted = text_of({"args": rest, **takes, **config})
        kernel = self._made.get(wanted)
        if kernel is None:
            made = self.target(*rest, **takes, **own)
            if not isinstance(made, Kernel):
                found = f"'{self.name}' returned {type(made).__name__}, not a kernel"
                raise fail("TW019", found, self.span, help="@ttl.autotune stands on a kernel or on a function that returns one")
            kernel = self._made[wanted] = self._configured(made, options)
        return kernel, tensors, {name: value for name, value in problem.named.items() if name not in parameters}

    def _configured(self, kernel: Any, options: dict[str, Any]) -> Any:
        if not options:
            return kernel
        wanted = text_of({"kernel": id(kernel), **options})
        if wanted not in self._made:
            self._made[wanted] = kernel.with_options(**options)
        return self._made[wanted]

    def program(self, problem: Problem, config: Mapping[str, Any]) -> Program:
        """Compiles; what is wrong with the configuration is a `KernelError`."""
        kernel, args, named = self.kernel(problem, config)
        # A copy: a kernel keeps its programs, and of a thousand configurations one is wanted.
        found = kernel.with_options().compile(*args, **named, **problem.options)
        return found.compile() if isinstance(found, Kernel) else found

    def numbers(self, problem: Problem, config: Mapping[str, Any]) -> dict[str, int]:
        """Run-time integers of the call."""
        kernel, args, named = self.kernel(problem, config)
        if isinstance(kernel, TileLangKernel):
            return {}  # TileLang has none, and may be given sizes only
        values = getattr(kernel.bind(args, named), "values", None)
        given = values.values() if is_mapping(values) else ()
        return {value.name: value.given for value in given if isinstance(value, RuntimeInteger)}

    def run(self, problem: Problem, config: Mapping[str, Any]) -> Any:
        kernel, args, named = self.kernel(problem, config)
        return kernel(*args, **named)


@record(eq=False)
class Request:
    """What the author asked for in the decorator."""

    space: Any = None
    configs: Any = None
    where: Callable[..., Any] | None = None
    key: Any = None
    dims: Mapping[str, Sequence[str]] | None = None
    estimate: Callable[..., Any] | None = None


def pose(subject: Subject, request: Request, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Problem, Space]:
    """The problem of one call and its space. Arguments that the space names are the caller's choice and not tuned."""
    overrides = {**execution.current().overrides, **_of_device((*args, *named.values()))}
    chip = str(overrides.get("arch") or _own_options(subject).arch)
    values = _bound(subject, args, named)
    sizes = _sizes(subject, request.dims or {}, values)
    known = {**_with_dtype(values), **sizes, "chip": chip}
    span = subject.span
    names = _tuned_names(request, known)
    fixed = {name: value for name, value in named.items() if name in names}
    rest = {name: value for name, value in named.items() if name not in names}
    space = list_space(request.space, request.configs, request.where, known, fixed, span)
    key = _key(subject, request, {name: value for name, value in values.items() if name not in names}, sizes)
    key |= {name: plain(value) for name, value in fixed.items()}
    return Problem(args, rest, key, chip, overrides), space


def _of_device(values: Iterable[Any]) -> dict[str, Any]:
    """Tensors on a device are worked on there: its chip and its cores count."""
    there = [value for value in values if is_tensor(value) and lives_on_device(value)]
    return execution.device_options(there) if there else {}


def tuned_names(subject: Subject, request: Request, args: tuple[Any, ...], named: Mapping[str, Any]) -> set[str]:
    """What the configurations of a call name."""
    values = _bound(subject, args, named)
    known = {**_with_dtype(values), **_sizes(subject, request.dims or {}, values), "chip": _own_options(subject).arch}
    return _tuned_names(request, known)


def known_values(subject: Subject, request: Request, problem: Problem) -> dict[str, Any]:
    """What an author's functions may name: arguments, sizes, the chip, compile options of the call."""
    values = _bound(subject, problem.args, problem.named)
    return {**problem.options, **_with_dtype(values), **_sizes(subject, request.dims or {}, values), "chip": problem.chip}


def _with_dtype(values: Mapping[str, Any]) -> dict[str, Any]:
    """``dtype`` is that of the first tensor, unless an argument has this name."""
    first = next(((name, value) for name, value in values.items() if is_tensor(value)), None)
    return dict(values) if first is None else {"dtype": describe(first[1], first[0]).dtype, **values}


def _own_options(subject: Subject) -> Options:
    return getattr(subject.target, "options", None) or Options()


def _tuned_names(request: Request, known: Mapping[str, Any]) -> set[str]:
    from tilewright.tune.space import call_with

    if request.configs is not None:
        listed = call_with(request.configs, known) if callable(request.configs) else request.configs
        mappings = [values for config in listed if is_mapping(values := getattr(config, "kwargs", config))]
        return {str(name) for values in mappings for name in values}
    given: Mapping[Any, Any] | None = call_with(request.space, known) if callable(request.space) else request.space
    return {str(name) for name in given or ()}


def _bound(subject: Subject, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by parameter. A function that makes kernels does not take the tensors; they are numbered."""
    parameters = subject.signature.parameters
    if not subject.makes_kernels:
        if hasattr(subject.target, "known_sizes"):  # an eager kernel of TileLang: sizes may be given by their own names
            return {**dict(zip(parameters, args, strict=False)), **named}
        try:
            own = {name: value for name, value in named.items() if name in parameters or name not in Options.names()}
            return dict(subject.signature.bind_partial(*args, **own).arguments)
        except TypeError as error:
            remedy = f"its parameters are {subject.signature}"
            raise fail("TW004", f"{subject.name}: {error}", caller_span(subject.name), help=remedy) from None
    tensors = {f"tensor{number}": value for number, value in enumerate(value for value in args if is_tensor(value))}
    rest = dict(zip(parameters, (value for value in args if not is_tensor(value)), strict=False))
    return {**rest, **named, **tensors}


def _sizes(subject: Subject, dims: Mapping[str, Sequence[str]], values: Mapping[str, Any]) -> dict[str, int]:
    """Sizes by name, from the tensors that ``dims`` describes; a name that has two values is an error."""
    found: dict[str, int] = {}
    for name, letters in dims.items():
        if name not in values:
            continue
        shape = tuple(int(size) for size in values[name].shape)
        words = letters.split() if isinstance(letters, str) else list(letters)
        if len(words) != len(shape):
            raise fail("TW019", f"tensor '{name}' has shape {shape}, but dims names {words}", subject.span, help="one name each")
        for word, size in zip(words, shape, strict=True):
            if found.setdefault(word, size) != size:
                message = f"size {word} is {found[word]} elsewhere and {size} in tensor '{name}' of shape {shape}"
                raise fail("TW101", message, caller_span(subject.name), help="shapes of the arguments must agree")
    return found


def _key(subject: Subject, request: Request, values: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """By the names the author gave, else every size and every argument."""
    known: dict[str, Any] = {**_with_dtype(values), **sizes}
    if callable(request.key):
        from tilewright.tune.space import call_with

        return {str(name): plain(value) for name, value in dict(call_with(request.key, known)).items()}
    names = request.key
    if names is None:
        names = [*sizes, *(name for name in values if not (sizes and is_tensor(values[name]))), "dtype"]
        names = [name for name in dict.fromkeys(names) if name in known]
    missing = [name for name in names if name not in known]
    if missing:
        remedy = f"known here: {', '.join(known)}; dims={{'a': ('M', 'K')}} names sizes of tensors"
        raise fail("TW019", f"key names '{missing[0]}', which this call does not have", subject.span, help=remedy)
    return {name: plain(known[name]) for name in names}


def plain(value: Any) -> Any:
    """A value as a JSON file holds it."""
    if is_tensor(value):
        spec = describe(value, "tensor")
        usual = (spec.memory, spec.layout, spec.sharding) == ("dram", "tile", "")
        place = [] if usual else [spec.memory, spec.layout, spec.sharding]
        return " ".join(["x".join(map(str, spec.shape)), spec.dtype, *place]).rstrip()
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]  # pyright: ignore
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def tupled(value: Any) -> Any:
    """The inverse for configurations: JSON has no tuples, grids are tuples."""
    return tuple(tupled(each) for each in value) if isinstance(value, list) else value  # pyright: ignore


def from_json(config: Mapping[str, Any], space: Space) -> Config | None:
    """A stored configuration as the space writes it; None if the space no longer has it."""
    wanted = text_of({name: plain(value) for name, value in config.items()})
    return next((each for each in space.configs if text_of({name: plain(value) for name, value in each.items()}) == wanted), None)
