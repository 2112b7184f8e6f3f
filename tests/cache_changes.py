"""Kernels that read their numbers and functions from everywhere Python lets them, and changes of what they read.

One `World` is a module with a kernel. A change sets, replaces or redefines one thing it reads, or something beside it. After each,
`check` asks the caches for a program and demands the text of an uncached translation.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.cache_key import key_of
from tilewright.diagnostics import KernelError

NUMBERS: tuple[Any, ...] = (
    0, 1, 2, 3, 0.0, -0.0, 1.0, 2.0, True, False, 0.5, -1.5, 1e-3, np.float32(2), np.float64(2), np.int32(2), np.int64(1),
)  # fmt: skip
FUNCTIONS = ("relu", "exp", "tanh", "abs", "sigmoid", "square", "neg")
DTYPES: tuple[Any, ...] = (np.float32, ml_dtypes.bfloat16)


def number(rng: random.Random) -> Any:
    return rng.choice(NUMBERS)


@dataclass
class Source:
    """Something a kernel reads: how the module defines it, how the kernel uses it, and ways to change it."""

    header: str
    use: str  # an expression of x
    changes: Sequence[Callable[[World, random.Random], None]]
    where: str = "thread"  # or body: evaluated before the threads are made, as `part`


def assign(target: str) -> Callable[[World, random.Random], None]:
    """``target = number``, run in the module."""
    return lambda world, rng: world.run(f"{target} = given", given=number(rng))


def redefine(template: str, choices: Sequence[Any] = FUNCTIONS) -> Callable[[World, random.Random], None]:
    """Runs ``template`` again with another word, as a notebook's cell is run again."""
    return lambda world, rng: world.run(template.replace("WORD", str(rng.choice(choices))))


def call(function: Callable[[dict[str, Any], Any], None]) -> Callable[[World, random.Random], None]:
    return lambda world, rng: function(world.names, number(rng))


def _cell(names: dict[str, Any], value: Any) -> None:
    names["captured"].__closure__[0].cell_contents = value


def _defaults(names: dict[str, Any], value: Any) -> None:
    names["defaulted"].__defaults__ = (value,)


def _named_defaults(names: dict[str, Any], value: Any) -> None:
    names["named_default"].__kwdefaults__ = {"factor": value}


def _array(names: dict[str, Any], value: Any) -> None:
    names["TABLE"][1] = value


def _attributes_of_function(names: dict[str, Any], value: Any) -> None:
    names["counted"].factor = value


def _method_of_object(names: dict[str, Any], value: Any) -> None:
    names["layer"].scaled = lambda x: x * value


LAYER = """
class Base:
    bias = 1.0
    def shifted(self, x):
        return x + self.bias
class Layer(Base):
    factor = 2.0
    __slots__ = ()
class Plain(Layer):
    def __init__(self):
        self.scale = 2.0
        self.calls = 0
        self.device = open
    def scaled(self, x):
        return x * self.scale
    @property
    def doubled(self):
        return self.scale * 2
    @staticmethod
    def fixed(x):
        return ttl.math.relu(x)
    @classmethod
    def common(cls, x):
        return x * cls.factor
    def __call__(self, x):
        self.calls += 1
        return x * self.scale
layer = Plain()
"""
SOURCES: tuple[Source, ...] = (
    Source("N = 2.0", "x * N", [assign("N")]),
    Source("VALUES = [1.0, 2.0]", "x * VALUES[1]", [assign("VALUES[1]"), assign("VALUES[0]"), redefine("VALUES = [1.0, WORD]", (1, 2, 2.0))]),
    Source("PAIR = (1, 2)", "x * PAIR[1]", [redefine("PAIR = (1, WORD)", (2, 2.0, True, 3))]),
    Source("OPTIONS = {'k': {'s': 2.0}}", "x * OPTIONS['k']['s']", [assign("OPTIONS['k']['s']"), assign("OPTIONS['other']")]),
    Source("CHOSEN = {1, 2}", "x * (2.0 if 2 in CHOSEN else 3.0)", [redefine("CHOSEN = {1, WORD}", (2, 3))]),
    Source("TABLE = np.array([1.0, 2.0, 3.0])", "x * float(TABLE[1])", [call(_array), redefine("TABLE = TABLE.astype(np.WORD)", ("float32", "int32", "float64"))]),
    Source("def act(x):\n    return ttl.math.relu(x)", "act(x)", [redefine("def act(x):\n    return ttl.math.WORD(x)"), redefine("act = lambda x: ttl.math.WORD(x)")]),
    Source("flag = True\nchoice = (lambda x: ttl.math.relu(x)) if flag else (lambda x: ttl.math.exp(x))", "choice(x)",
           [redefine("choice = (lambda x: ttl.math.relu(x)) if WORD else (lambda x: ttl.math.exp(x))", (True, False))]),
    Source("G = 2.0\ndef inner(x):\n    return x * G\ndef outer(x):\n    return inner(x)", "outer(x)",
           [assign("G"), redefine("def inner(x):\n    return ttl.math.WORD(x)"), redefine("def outer(x):\n    return inner(x) * WORD", (1, 2, 2.0))]),
    Source("def maker(s):\n    def captured(x):\n        return x * s\n    return captured\ncaptured = maker(2.0)", "captured(x)",
           [call(_cell), redefine("captured = maker(WORD)", (1, 1.0, 3))]),
    Source("def defaulted(x, factor=2.0):\n    return x * factor", "defaulted(x)", [call(_defaults)]),
    Source("def named_default(x, *, factor=2.0):\n    return x * factor", "named_default(x)", [call(_named_defaults)]),
    Source("def counted(x):\n    return x * counted.factor\ncounted.factor = 2.0", "counted(x)", [call(_attributes_of_function)]),
    Source("import functools\ndef two(f, x):\n    return x * f\npart_of = functools.partial(two, 2.0)", "part_of(x)",
           [redefine("part_of = functools.partial(two, WORD)", (1, 1.0, 2.0)), redefine("def two(f, x):\n    return ttl.math.WORD(x) * f\npart_of = functools.partial(two, 2.0)")]),
    Source(LAYER, "layer.scaled(x)", [assign("layer.scale"), assign("layer.calls"), call(_method_of_object), redefine("Plain.scaled = lambda self, x: ttl.math.WORD(x)")]),
    Source(LAYER, "x * layer.doubled", [assign("layer.scale"), redefine("Plain.doubled = property(lambda self: self.scale * WORD)", (3, 4.0))]),
    Source(LAYER, "layer.fixed(x)", [redefine("Plain.fixed = staticmethod(lambda x: ttl.math.WORD(x))")]),
    Source(LAYER, "layer.common(x)", [assign("Plain.factor"), assign("Layer.factor"), assign("layer.factor")]),
    Source(LAYER, "layer.shifted(x)", [assign("Base.bias"), assign("Plain.bias"), assign("layer.bias")]),
    Source("class Below:\n    bias = 1.0\n    def moved(self, x):\n        return x + self.bias\nclass Above(Below):\n    def moved(self, x):\n        return super().moved(x) * 2.0\nabove = Above()",
           "above.moved(x)", [assign("Below.bias"), assign("above.bias"), redefine("Below.moved = lambda self, x: ttl.math.WORD(x)")]),
    Source("from types import SimpleNamespace\nsetting = SimpleNamespace(tile=SimpleNamespace(scale=2.0), other=1)", "x * setting.tile.scale",
           [assign("setting.tile.scale"), assign("setting.other"), redefine("setting.tile = SimpleNamespace(scale=WORD)", (1, 2.0))]),
    Source("from dataclasses import dataclass\n@dataclass\nclass Config:\n    scale: float = 2.0\n    other: int = 1\nconfig = Config()\ndef of_config(c, x):\n    return x * c.scale",
           "of_config(config, x)", [assign("config.scale"), assign("config.other"), redefine("config = Config(WORD)", (1, 1.0))]),
    Source("from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Frozen:\n    scale: float = 2.0\nfrozen = Frozen()",
           "x * frozen.scale", [redefine("frozen = Frozen(WORD)", (1, 1.0, True, 2.0))]),
    Source("class Slotted:\n    __slots__ = ('scale', 'rest')\nslotted = Slotted()\nslotted.scale = 2.0", "x * slotted.scale", [assign("slotted.scale"), assign("slotted.rest")]),
    Source("from collections import namedtuple\nPoint = namedtuple('Point', 'a b')\npoint = Point(1, 2.0)", "x * point.b", [redefine("point = Point(1, WORD)", (2, 2.0, 3))]),
    Source("from enum import Enum\nclass Mode(Enum):\n    A = 1.0\n    B = 2.0\nmode = Mode.A", "x * mode.value", [redefine("mode = Mode.WORD", ("A", "B")), redefine("class Mode(Enum):\n    A = WORD\n    B = 2.0\nmode = Mode.A", (1, 3.0))]),
    Source("import types\nmodule = types.ModuleType('settings_module')\nmodule.SCALE = 2.0\nmodule.UNUSED = 1", "x * module.SCALE", [assign("module.SCALE"), assign("module.UNUSED")]),
    Source("kept = []\nfor s in (1.0, 2.0):\n    kept.append(lambda x, s=s: x * s)", "kept[0](x)", [redefine("kept[0] = lambda x: x * WORD", (1, 1.0, 2.0)), redefine("kept = kept[::-1]")]),
    Source("import functools\n@functools.lru_cache\ndef factor_of():\n    return LIMIT * 2\nLIMIT = 2.0", "x * plain_factor()\n", [assign("LIMIT")]),
    Source("SCALE = 2.0\ndef host():\n    return [SCALE * i for i in range(3)]", "x * part[2]", [assign("SCALE"), redefine("def host():\n    return [SCALE * i * WORD for i in range(3)]", (1, 2.0))], "host()"),
    Source("class Named:\n    def __getattr__(self, word):\n        return self.__dict__['held'][word]\nnamed = Named()\nnamed.held = {'scale': 2.0}", "x * named.scale", [assign("named.held['scale']")]),
    Source("class Vector(list):\n    pass\nvector = Vector([1.0, 2.0])", "x * vector[1]", [assign("vector[1]"), assign("vector.note")]),
    Source("WORD_OF = 'relu'", "getattr(ttl.math, WORD_OF)(x)", [lambda world, rng: world.run("WORD_OF = given", given=rng.choice(FUNCTIONS))]),
    Source("loops = 2", "sum_of(x, loops)", [redefine("loops = WORD", (1, 2, 3))]),
)  # fmt: skip

TEXT = """
import numpy as np
from tilewright import ttl
def sum_of(x, count):
    total = x
    for _ in range(count):
        total = total + x
    return total
def plain_factor():
    return LIMIT * 2
{headers}

@ttl.kernel(grid=(1, 1))
def kernel(a, out, scale, options):
{body}
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, out_cb.reserve() as o:
{uses}
            o.store(x * scale * options["s"])

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as block:
            ttl.copy(a[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()
"""


@dataclass
class World:
    """One module with one kernel, its arguments, and how often the caches answered."""

    seed: int
    hits: int = 0
    checks: int = 0
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    sources: list[Source] = field(default_factory=list[Source])
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    cells: int = 0

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.sources = rng.sample(SOURCES, rng.randint(1, 4))
        self.names.update(__name__=f"world_{self.seed}")
        headers = "\n".join(source.header for source in self.sources)
        body = "\n".join(f"    part = {source.where}" for source in self.sources if source.where != "thread") or "    pass"
        uses = "\n".join(f"            x = {source.use.strip()}" for source in self.sources)
        self.text = TEXT.format(headers=headers, body=body, uses=uses)
        self.arguments = {"a": np.zeros((32, 32), np.float32), "out": np.zeros((32, 32), np.float32), "scale": 2.0}
        self.arguments["options"] = {"s": 1.5}
        self.run(self.text)

    def run(self, text: str, **given: Any) -> None:
        """As a cell of a notebook: text of its own, known to linecache."""
        self.cells += 1
        file = f"<world {self.seed} cell {self.cells}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        self.names.update(given)
        exec(compile(text, file, "exec", dont_inherit=True), self.names)
        for name in given:
            self.names.pop(name)

    def change(self, rng: random.Random) -> None:
        which = rng.random()
        if which < 0.7:
            rng.choice(rng.choice(self.sources).changes)(self, rng)
        elif which < 0.8:
            self.arguments["scale"] = number(rng)
        elif which < 0.87:
            self.arguments["options"] = {"s": number(rng)}
        elif which < 0.92:
            dtype = rng.choice(DTYPES)
            self.arguments.update(a=np.zeros((32, 32), dtype), out=np.zeros((32, 32), dtype))
        elif which < 0.96:
            self.run(self.text.replace("x * scale", f"x * scale + {number(rng)!r}".replace("np.", "np.")))
        # else nothing changes

    def check(self, programs: dict[str, Any], seen: dict[str, str]) -> str | None:
        """What is wrong, if anything: the kept text, and the text of an earlier world with the same key, must be the new one."""
        kernel = self.names["kernel"]
        values = kernel.bind(tuple(self.arguments.values()), {})
        fresh = translated(kernel, values)
        key = key_of(kernel, kernel._visible(values), kernel.options)  # what `Kernel._program` asks
        self.checks += 1
        if key is None:
            return None
        known = seen.setdefault(key, fresh)
        self.hits += key in programs
        if programs.setdefault(key, fresh) != fresh or known != fresh:
            return f"world {self.seed}: the kept program is not the one an uncached compilation gives\n{self.text}"
        return None


def translated(kernel: Any, values: Any) -> str:
    """The module of the front end, or what is wrong with the kernel."""
    try:
        return str(kernel._build(values, kernel.options).module)
    except KernelError as error:
        return "\n".join(f"{found.code} {found.message} {found.span}" for found in error.diagnostics)


def run_changes(count: int, seed: int, per_world: int = 20) -> tuple[int, int, list[str]]:
    """Checks done, how many of them found their key, and what went wrong."""
    seen: dict[str, str] = {}
    wrong: list[str] = []
    checks = hits = 0
    while checks < count:
        world = World(seed)
        rng = random.Random(seed)
        programs: dict[str, Any] = {}
        for _ in range(min(per_world, count - checks)):
            found = world.check(programs, seen)
            wrong += [found] if found else []
            world.change(rng)
        checks, hits = checks + world.checks, hits + world.hits
        seed += 1
    return checks, hits, wrong


