"""What a compiled result depends on, as one hash: the kernel's code, all it can read, its arguments, options, and us.

The cache in memory and the one on disk share it. A value whose content cannot be told makes the kernel uncacheable: a miss
costs a compilation, a wrong hit costs an answer.

``Content`` writes values as text that tells their content: what a kernel could read of them, transitively, with types. A
function is its code, its defaults and what its code can read (`code_reads`); an object of the user's is its class and the
attributes read of it; an array is its bytes. What has no such text raises `Uncacheable`.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, EnumMeta
from functools import lru_cache
from typing import Any

from tilewright.code_reads import Path, reads_of, text_of
from tilewright.digests import sha256
from tilewright.narrowing import class_of, is_dict
from tilewright.options import Options
from tilewright.program import TensorSpec

# Libraries that are fixed while a kernel is compiled: their functions and classes are told by name.
KNOWN = frozenset(("tilewright", "numpy", "ml_dtypes", "torch", "ttnn"))
PURE = frozenset((
    "abc", "bisect", "builtins", "cmath", "collections", "contextlib", "copy", "dataclasses", "decimal", "enum", "fractions",
    "functools", "heapq", "itertools", "math", "numbers", "operator", "re", "statistics", "string", "struct", "textwrap", "types",
    "typing", "typing_extensions", "__future__", "_operator", "_functools", "_collections", "_bisect", "_heapq", "_struct",
))  # fmt: skip
OUTSIDE = frozenset(("open", "input", "eval", "exec", "compile", "globals", "locals", "vars", "__import__"))
UNSTABLE = frozenset((
    "random", "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "multinomial",
    "normal", "poisson", "seed", "initial_seed", "get_rng_state", "get_default_dtype", "geterr", "get_printoptions",
))  # fmt: skip
NOT_READ = frozenset((
    "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__abstractmethods__", "_abc_impl",
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__parameters__", "__orig_bases__", "__firstlineno__",
    "__static_attributes__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__slots__",
))  # fmt: skip
REFLECTION = frozenset(("__dict__", "__getattribute__", "getattr", "hasattr", "vars", "dir", "attrgetter", "methodcaller"))
PLAIN = (bool, int, float, complex, type(None), type(Ellipsis), type(NotImplemented), range, bytes, str)
PAYLOADS: tuple[Any, ...] = (list, tuple, deque, dict, set, frozenset, int, float, complex, str, bytes)  # a class may build on
TABLES = (dict, OrderedDict, defaultdict, Counter)
MADE_AT_RUN_TIME = 1 << 9  # a flag of classes (Py_TPFLAGS_HEAPTYPE)


class Uncacheable(Exception):
    """The result depends on something whose content cannot be told."""


def root_of(module: Any) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


def is_fixed(module: Any) -> bool:
    root = root_of(module)
    return root in KNOWN or root in PURE


def _is_fixed_function(function: Any) -> bool:
    """One that stands in such a module: code run in a bare namespace calls its module ``builtins``."""
    module = sys.modules.get(function.__module__) if is_fixed(function.__module__) else None
    return module is not None and module.__dict__ is function.__globals__ and function.__closure__ is None


@functools.lru_cache(maxsize=4096)
def is_fixed_class(kind: Any) -> bool:
    root = root_of(kind.__module__)
    if root in KNOWN:
        return True
    found: Any = sys.modules.get(kind.__module__) if root in PURE else None
    for word in kind.__qualname__.split("."):
        found = getattr(found, word, None)
    return found is kind


class Content:
    """Text of values, in `parts`. What was met before is told by its number: two names of one list are not two lists."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._numbers: dict[Any, int] = {}
        self._alive: list[Any] = []  # so that no number is that of something else
        self._names: set[str] = set()  # attributes that any code met so far takes
        self._waiting: list[tuple[str, Any]] = []  # attributes of classes, told once some code takes that name

    def text(self) -> str:
        """Of all that was given, with what classes hold under the names that were met."""
        while True:
            everything = not REFLECTION.isdisjoint(self._names)
            ready = [item for item in self._waiting if everything or item[0] in self._names]
            if not ready:
                return "\n".join(self.parts)
            self._waiting = [item for item in self._waiting if not (everything or item[0] in self._names)]
            for name, value in ready:
                self.parts.append(f".{name}")
                self.value(value)

    def _met(self, value: Any, *more: Any) -> bool:
        key = (id(value), *map(id, more))
        number = self._numbers.get(key)
        if number is not None:
            self.parts.append(f"^{number}")
            return True
        self._numbers[key] = len(self._numbers)
        self._alive += (value, *more)
        return False

    # Values -----------------------------------------------------------------------------------------------------------

    def value(self, value: Any) -> None:
        kind = class_of(value)
        if (teller := TELLERS.get(kind)) is not None:
            teller(self, value)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, Enum):
            self._class(kind)
            self.parts.append(f"member {value.name}")
            self.value(value._value_)
        elif _is_path(value) or kind.__module__ in ("fractions", "decimal"):
            self.parts.append(f"{kind.__name__}:{value}")
        elif root_of(kind.__module__) in KNOWN:
            self._of_library(value, kind)
        elif is_users(kind):
            self._instance(value, kind)
        else:
            raise Uncacheable(kind.__qualname__)

    def items(self, values: Iterable[Any]) -> None:
        for item in values:
            self.value(item)

    def told(self, text: str, *values: Any) -> None:
        self.parts.append(text)
        self.items(values)

    def _fixed_sequence(self, value: Any) -> None:
        self.parts.append(f"{type(value).__name__} of {len(value)}")
        self.items(value)

    def _sequence(self, value: Any) -> None:
        """In order, sets too: what is done with one may show the order it has."""
        if not self._met(value):
            self.parts.append(f"{type(value).__name__} of {len(value)}")
            self.items(value)

    def _table(self, value: Any) -> None:
        if not self._met(value):
            self.parts.append(f"{type(value).__name__} of {len(value)}")
            self.value(getattr(value, "default_factory", None))
            for key, item in value.items():
                self.value(key)
                self.value(item)

    def _array(self, value: Any) -> None:
        if self._met(value):
            return
        flags = value.flags
        self.parts.append(f"array {value.dtype.str} {value.dtype.name} {value.shape} {flags.c_contiguous} {flags.writeable}")
        if value.dtype.hasobject:
            self.items(value.ravel().tolist())
        else:
            self.parts.append(sha256(value.tobytes()).hexdigest())

    def _of_library(self, value: Any, kind: Any) -> None:
        """Objects of libraries we know. Their classes are told by name."""
        root = root_of(kind.__module__)
        if root == "tilewright":
            self._own(value, kind)
        elif kind.__name__ == "ndarray" and root == "numpy":
            self._array(value)
        elif root in ("numpy", "ml_dtypes") and hasattr(value, "tobytes"):  # one number
            self.parts.append(f"{value.dtype.name}:{value.tobytes().hex()}")
        elif kind.__name__ in ("Tensor", "Parameter") and root == "torch":
            self._torch_tensor(value)
        elif "dtype" in kind.__name__.lower() or kind.__name__ in ("ufunc", "DataType", "Layout", "BufferType"):
            self.parts.append(f"{kind.__qualname__}:{value!r}")
        elif kind.__name__ == "Size":
            self.parts.append(f"{kind.__qualname__}:{tuple(value)!r}")
        else:
            raise Uncacheable(f"{kind.__module__}.{kind.__qualname__}")

    def _torch_tensor(self, value: Any) -> None:
        if self._met(value):
            return
        self.parts.append(f"tensor {value.dtype} {tuple(value.shape)} {value.device} {value.is_contiguous()}")
        raw = value.detach().cpu().contiguous().reshape(-1)
        self.parts.append(sha256(raw.view(sys.modules["torch"].uint8).numpy().tobytes()).hexdigest())

    def _own(self, value: Any, kind: Any) -> None:
        """An object of ours: what it says it is made of, else all it holds."""
        if kind in TOLD_BY_FIELDS:
            self.parts.append(f"{kind.__name__}:{list(value.__dict__.values())!r}")
            return
        if self._met(value):
            return
        self.parts.append(f"{kind.__module__}.{kind.__qualname__}")
        parts: Callable[[Any], tuple[Any, ...]] | None = getattr(kind, "key_parts", None)
        if parts is not None:
            self.items(parts(value))
        else:
            self._state(value, kind)

    # Code -------------------------------------------------------------------------------------------------------------

    def function(self, function: Any) -> None:
        """Code, defaults, and what the code reads from outside."""
        if _is_fixed_function(function):
            self.parts.append(f"{function.__module__}.{function.__qualname__}")
            return
        if self._met(function):
            return
        self._code(function)
        self.value(function.__defaults__)
        self.value(function.__kwdefaults__)
        if function.__dict__:
            self._table(function.__dict__)

    def _code(self, function: Any) -> None:
        code = function.__code__
        text = text_of(code)
        if text is None:
            raise Uncacheable(f"{code.co_filename} has changed")
        reads = reads_of(code)
        self._names |= reads.names
        self.parts += (reads.digest, text)
        known = function.__globals__
        for path in reads.outer:
            self._outer(path, known)
        for name in reads.modules:
            self._imported(name)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                self.parts.append(f"{name} unset")
                continue
            self.taken(name, value, reads.variables.get(name, ()))

    def _outer(self, path: Path, known: dict[str, Any]) -> None:
        name = path[0]
        if name in known:
            self.taken(name, known[name], (path[1:],))
            return
        builtins: Any = known.get("__builtins__", __builtins__)
        table: dict[str, Any] = builtins if is_dict(builtins) else builtins.__dict__
        if name in OUTSIDE:
            raise Uncacheable(name)
        self._names.add(name)
        if name in table:
            self.taken(name, table[name], (path[1:],))
        else:
            self.parts.append(f"{name} missing")

    def _imported(self, name: str) -> None:
        module = sys.modules.get(name) or sys.modules.get(root_of(name))
        known = is_fixed(name) or getattr(module, "__tilewright_standin__", False)
        if not known or not UNSTABLE.isdisjoint((*self._names, *name.split("."))):
            raise Uncacheable(f"imports {name}")
        self.parts.append(f"import {name}")

    def taken(self, name: str, value: Any, paths: Iterable[Path]) -> None:
        """What code takes of ``value``: the attributes of each path, or, of the empty one, everything."""
        for path in sorted(paths):
            self.parts.append(f"{name}.{'.'.join(path)}")
            self._follow(value, path)

    def _follow(self, owner: Any, path: Path) -> None:
        for position, word in enumerate(path):
            if isinstance(owner, types.ModuleType):
                if root_of(owner.__name__) == "tilewright":
                    return
                if is_fixed(owner.__name__) and word in UNSTABLE:
                    raise Uncacheable(f"{owner.__name__}.{word}")
                if word in owner.__dict__:
                    owner = owner.__dict__[word]
                    continue
                if _is_known_module(owner) or "__getattr__" not in owner.__dict__:
                    self.parts.append(f"module:{owner.__name__} without {word}")
                    return
                raise Uncacheable(owner.__name__)
            found = _attribute(owner, word)
            if found is None:
                break
            raw, bound = found
            self.parts.append(f"{type(owner).__qualname__}[{position}]")
            if bound is not None:
                self._bound(raw, bound)
                return
            owner = raw
        self.value(owner)

    def _bound(self, function: Any, owner: Any) -> None:
        """A function called with its object first: of that, what the code takes of its first parameter."""
        if not isinstance(function, types.FunctionType):
            self.value(function)
            inner = getattr(function, "function", None)  # of a kernel that is a method
            (self.value if inner is None else functools.partial(self._bound, inner))(owner)
            return
        self.function(function)
        code = function.__code__
        if self._met(function, owner):
            return
        if code.co_argcount == 0:
            self.value(owner)
        else:
            first = code.co_varnames[0]
            self.taken(first, owner, reads_of(code).variables.get(first, ()))

    def bound(self, method: types.MethodType) -> None:
        self.parts.append("method")
        self._bound(method.__func__, method.__self__)

    def _builtin(self, function: Any) -> None:
        owner = getattr(function, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            name = f"{function.__module__}.{function.__qualname__}"
            if not is_fixed(function.__module__ or "builtins") and name != "_thread.get_ident":  # in the repr() of dataclasses
                raise Uncacheable(name)
            self.parts.append(name)
            return
        self.parts.append(f"method {function.__name__}")
        self.value(owner)

    def _descriptor(self, value: Any) -> None:
        self.parts.append(type(value).__name__)
        inner = ("fget", "fset") if isinstance(value, property) else ("func",) if hasattr(value, "func") else ("__func__",)
        self.items(getattr(value, name) for name in inner)

    def _module(self, module: types.ModuleType) -> None:
        if not _is_known_module(module):
            raise Uncacheable(f"module {module.__name__}")
        self.parts.append(f"module:{module.__name__}")

    # Classes and objects ----------------------------------------------------------------------------------------------

    def _class(self, kind: Any) -> None:
        if is_fixed_class(kind):
            self.parts.append(f"{kind.__module__}.{kind.__qualname__}")
            return
        if not is_users(kind):
            raise Uncacheable(f"{kind.__module__}.{kind.__qualname__}")
        if self._met(kind):
            return
        self.parts.append(f"class {kind.__module__}.{kind.__qualname__}")
        self.items((class_of(kind), *kind.__bases__))
        if isinstance(kind, EnumMeta):
            for name, member in kind.__members__.items():
                self.parts.append(name)
                self.value(member._value_)  # pyright: ignore
            self._waiting += [item for item in kind.__dict__.items() if isinstance(item[1], DESCRIBED)]
            return
        for name, item in kind.__dict__.items():
            if name in NOT_READ or isinstance(item, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                continue
            if name.startswith("__") and name.endswith("__"):  # Python itself calls those
                self.parts.append(name)
                self.value(item)
            else:
                self._waiting.append((name, item))

    def _instance(self, value: Any, kind: Any) -> None:
        if self._met(value):
            return
        self._class(kind)
        self._state(value, kind)

    def _state(self, value: Any, kind: Any) -> None:
        """All that an object holds: attributes, slots, and the items of a list or number it is."""
        base: Any = next((base for base in PAYLOADS if isinstance(value, base)), None)
        if base in (int, float, complex, str, bytes):
            self.parts.append(base.__repr__(value))
        elif base is dict:
            self.items(list(dict[Any, Any].items(value)))
        elif base is not None:
            self.items(list(base.__iter__(value)))
        held_names: dict[str, Any] = getattr(value, "__dict__", {})
        for name, item in held_names.items():
            self.parts.append(f".{name}")
            self.value(item)
        for base in kind.__mro__:
            for name, descriptor in base.__dict__.items():
                if isinstance(descriptor, types.MemberDescriptorType):
                    self.parts.append(f".{name}")
                    try:
                        self.value(descriptor.__get__(value))
                    except AttributeError:
                        self.parts.append("unset")


def _is_path(value: Any) -> bool:
    pathlib = sys.modules.get("pathlib")  # nobody has a path before somebody has loaded it
    return pathlib is not None and isinstance(value, pathlib.PurePath)


def _is_known_module(module: types.ModuleType) -> bool:
    return is_fixed(module.__name__) or bool(getattr(module, "__tilewright_standin__", False))


@functools.lru_cache(maxsize=4096)
def is_users(kind: type) -> bool:
    """Whether all an object of this class holds can be seen: classes written in Python, and containers and numbers of Python."""
    return all(base in TRANSPARENT or _is_python(base) for base in kind.__mro__)


def is_users_own(kind: Any) -> bool:
    """Whether objects of this class are read attribute by attribute."""
    return kind not in TELLERS and is_users(kind) and not is_fixed_class(kind)


@functools.lru_cache(maxsize=4096)
def _is_python(kind: type) -> bool:
    root = root_of(kind.__module__)
    if root == "builtins":  # of code that was run in a bare namespace
        return bool(kind.__flags__ & MADE_AT_RUN_TIME)
    if root in sys.stdlib_module_names and root != "__main__":
        return kind.__module__ in ("enum", "abc", "typing", "argparse")
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return root not in KNOWN and (not isinstance(file, str) or file.endswith((".py", ".pyc")) or not hasattr(module, "__spec__"))


def _attribute(owner: Any, word: str) -> tuple[Any, Any] | None:
    """What ``owner.word`` is: a value, or a function and the object it is bound to. None if reading it is not ours to say."""
    kind = class_of(owner)
    if isinstance(owner, type):
        if not is_users(owner) or is_fixed_class(owner) or kind is not type:
            return None
        lookup, instance = owner.__mro__, None
    else:
        if not is_users_own(kind):
            return None
        lookup, instance = kind.__mro__, owner
        if any("__getattribute__" in base.__dict__ or "__getattr__" in base.__dict__ for base in lookup[:-1]):
            return None
    raw: Any = next((base.__dict__[word] for base in lookup if word in base.__dict__), _MISSING)
    if isinstance(raw, types.MemberDescriptorType):
        return (getattr(owner, word, None), None) if instance is not None and hasattr(owner, word) else None
    if isinstance(raw, property):
        return (raw.fget, owner) if instance is not None else None
    own: dict[str, Any] = {} if instance is None else getattr(owner, "__dict__", {})
    if word in own:
        return own[word], None
    if raw is _MISSING:
        return None
    if issubclass(class_of(raw), staticmethod):
        return raw.__func__, None
    if issubclass(class_of(raw), classmethod):
        return raw.__func__, owner if instance is None else kind
    if isinstance(raw, types.FunctionType):
        return raw, instance
    if isinstance(raw, functools.cached_property):
        return (raw.func, owner) if instance is not None else None
    if root_of(class_of(raw).__module__) == "tilewright" and instance is not None and hasattr(class_of(raw), "__get__"):
        return raw, owner  # a kernel that is a method
    return None if hasattr(class_of(raw), "__get__") and instance is not None else (raw, None)


_MISSING: Any = object()
TOLD_BY_FIELDS = (TensorSpec, Options)
TRANSPARENT: frozenset[Any] = frozenset((object, *PAYLOADS, *TABLES, types.SimpleNamespace))
DESCRIBED = (types.FunctionType, staticmethod, classmethod, property, functools.cached_property)
TELLERS: dict[Any, Callable[[Content, Any], None]] = {
    **dict.fromkeys(PLAIN, lambda to, value: to.told(f"{type(value).__name__}:{value!r}")),
    list: Content._sequence,  # pyright: ignore[reportPrivateUsage]
    deque: Content._sequence,  # pyright: ignore[reportPrivateUsage]
    tuple: Content._fixed_sequence,  # pyright: ignore[reportPrivateUsage]
    frozenset: Content._fixed_sequence,  # pyright: ignore[reportPrivateUsage]
    **dict.fromkeys(TABLES, Content._table),  # pyright: ignore[reportPrivateUsage]
    set: Content._sequence,  # pyright: ignore[reportPrivateUsage]
    slice: lambda to, value: to.told("slice", value.start, value.stop, value.step),
    types.MappingProxyType: lambda to, value: to.told(type(value).__name__, *value),
    types.FunctionType: Content.function,
    types.MethodType: Content.bound,
    types.BuiltinFunctionType: Content._builtin,  # pyright: ignore[reportPrivateUsage]
    **dict.fromkeys(
        (types.MethodDescriptorType, types.WrapperDescriptorType),
        lambda to, value: to.told(f"{value.__objclass__.__qualname__}.{value.__name__}"),
    ),
    functools.partial: lambda to, value: to.told("partial", value.func, value.args, value.keywords, vars(value)),
    type(functools.lru_cache(len)): lambda to, value: to.told(type(value).__name__, value.__wrapped__),
    type(namedtuple("_", "field").field): lambda to, value: to.told(f"field {value.__reduce__()[1]}"),  # pyright: ignore
    property: Content._descriptor,  # pyright: ignore[reportPrivateUsage]
    staticmethod: Content._descriptor,  # pyright: ignore[reportPrivateUsage]
    classmethod: Content._descriptor,  # pyright: ignore[reportPrivateUsage]
    functools.cached_property: Content._descriptor,  # pyright: ignore[reportPrivateUsage]
}


EVERYTHING = ((),)


def key_of(kernel: Any, arguments: Mapping[str, Any], options: Options | None = None) -> str | None:
    """The hash for a kernel (or another ``key_parts``) and arguments by parameter; None if there is none.

    Tensors are what `tensors.visible` says of them by now. Of an object, only what the code takes of its parameter counts.
    """
    content = Content()
    taken = reads_of(kernel.function.__code__).variables
    try:
        content.value(kernel)
        for name, value in arguments.items():
            content.taken(name, value, taken.get(name, ()) if is_users_own(type(value)) else EVERYTHING)
        content.value(options)
        return sha256(content.text().encode(errors="backslashreplace")).hexdigest()
    except (Uncacheable, RecursionError):
        return None


def on_disk(key: str) -> str:
    """The name of an entry that this compiler may use."""
    return sha256(f"{compiler_fingerprint()} {key}".encode()).hexdigest()


@lru_cache(maxsize=1)
def compiler_fingerprint() -> str:
    """Names, sizes and times of all files of this package: any edit of the compiler is another compiler."""
    root = os.path.dirname(__file__)
    found: list[str] = [f"{sys.version_info[:2]} {root}"]
    pending = [root]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    pending += [] if entry.name == "__pycache__" else [entry.path]
                    continue
                facts = entry.stat()
                found.append(f"{entry.path} {facts.st_size} {facts.st_mtime_ns}")
    return sha256("\n".join(sorted(found)).encode()).hexdigest()
