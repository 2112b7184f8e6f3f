"""xDSL loaded quickly is the xDSL that an import gives."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LOADED = "from tilewright.dialects.loading import load_xdsl; load_xdsl()"
IMPORTED = "import xdsl.dialects.builtin, xdsl.dialects.func, xdsl.dialects.scf, xdsl.dialects.arith, xdsl.dialects.tensor"

# Ops with a declarative assembly format, and without.
TEXT = """
func.func @body(%tile: tensor<2x3xf32>, %n: index) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %f = arith.constant 1.5 : f32
  %less = arith.cmpi slt, %zero, %n : index
  %sum = scf.for %i = %zero to %n step %one iter_args(%acc = %f) -> (f32) {
    %at = arith.addi %i, %one : index
    %value = tensor.extract %tile[%zero, %at] : tensor<2x3xf32>
    %next = arith.addf %acc, %value fastmath<fast> : f32
    scf.yield %next : f32
  }
  %chosen = arith.select %less, %sum, %f : f32
  %empty = tensor.empty(%n) : tensor<?xf32>
  func.return %chosen : f32
}
"""

# What every dataclass and op is, and how some attributes behave. A class made later derives from one made before.
DESCRIBE = """
import dataclasses, inspect, json, sys
from dataclasses import FrozenInstanceError, MISSING, dataclass
import xdsl.irdl.declarative_assembly_format_parser  # loaded late
from xdsl.dialects import builtin
from xdsl.ir import ParametrizedAttribute
from xdsl.irdl import AnyAttr, irdl_attr_definition, param_def

facts = {}
for module in [module for name, module in sorted(sys.modules.items()) if name.split(".")[0] == "xdsl"]:
    for kind in [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]:
        if "__dataclass_fields__" not in kind.__dict__:
            continue
        fields = [(f.name, f.init, f.repr, f.compare, f.kw_only, f.default is MISSING, f.default_factory is MISSING)
                  for f in dataclasses.fields(kind)]
        arguments = [(each.name, str(each.kind), each.default is each.empty)
                     for each in inspect.signature(kind.__init__).parameters.values()]
        methods = {name: name in kind.__dict__ for name in ("__init__", "__eq__", "__repr__", "__setattr__", "__delattr__")}
        hashed = {True: "none", False: "own"}[kind.__dict__["__hash__"] is None] if "__hash__" in kind.__dict__ else ""
        facts[f"{kind.__module__}.{kind.__qualname__}"] = [
            fields, arguments, methods, hashed, kind.__dataclass_params__.frozen, list(kind.__match_args__)]

from xdsl.ir import Operation
for module in [module for name, module in sorted(sys.modules.items()) if name.startswith("xdsl.dialects.")]:
    for kind in [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]:
        if issubclass(kind, Operation) and "get_irdl_definition" in kind.__dict__:
            definition = kind.get_irdl_definition()
            facts[f"op {definition.name}"] = [definition.assembly_format, sorted(name for name in kind.__dict__ if name[0] != "_")]

from xdsl.context import Context
from xdsl.dialects import arith, func, scf, tensor
from xdsl.parser import Parser
context = Context()
for dialect in (builtin.Builtin, arith.Arith, func.Func, scf.Scf, tensor.Tensor):
    context.load_dialect(dialect)
facts["text"] = str(Parser(context, TEXT).parse_module())
assert "arith.addi %" in facts["text"] and "tensor.extract %" in facts["text"]

@irdl_attr_definition
class Later(ParametrizedAttribute):
    name = "test.later"
    value: builtin.IntAttr = param_def()

@dataclass(frozen=True)
class Derived(AnyAttr):
    more: int = 3

def refused(work):
    try:
        work()
    except FrozenInstanceError as error:
        return str(error)

one, nan = builtin.IntAttr(1), float("nan")
tile = builtin.TensorType(builtin.f32, [2, 3])
facts["behaviour"] = [
    repr(one), str(tile), one == builtin.IntAttr(1), one == builtin.IntAttr(2), one == 1, hash(one) == hash(builtin.IntAttr(1)),
    len({tile, builtin.TensorType(builtin.f32, [2, 3]), builtin.TensorType(builtin.f32, [3, 2])}),
    repr(Later(one)), Later(one) == Later(builtin.IntAttr(1)), repr(Derived()), Derived(3) == Derived(), Derived() == AnyAttr(), repr(AnyAttr()),
    refused(lambda: setattr(one, "data", 2)), refused(lambda: delattr(one, "data")), refused(lambda: setattr(tile, "other", 2)),
    refused(lambda: setattr(Derived(), "more", 2)), refused(lambda: setattr(Derived(), "other", 2)), builtin.FloatData(nan) == builtin.FloatData(nan),
    str(builtin.IntegerAttr(3, 32)), builtin.IntegerAttr(3, 32) == builtin.IntegerAttr(3, 64),
    dataclasses.dataclass is dataclass, dataclass.__module__,
]
print(json.dumps(facts))
"""


def described(how):
    found = subprocess.run([sys.executable, "-c", f"{how}\nTEXT = {TEXT!r}\n{DESCRIBE}"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.fixture(scope="module")
def both():
    return described(LOADED), described(IMPORTED)


def test_every_class_is_the_same(both):
    loaded, imported = both
    assert len(loaded) > 150
    assert loaded.keys() == imported.keys()
    for name in imported:
        assert loaded[name] == imported[name], name


def test_what_was_loaded_is_old_and_nothing_stays_frozen():
    script = """
import gc
from tilewright.dialects.loading import collection_paused, load_xdsl
with collection_paused():
    load_xdsl()
    assert not gc.isenabled()
assert gc.isenabled() and not gc.get_freeze_count() and gc.get_count()[0] < 2000
gc.freeze()
count = gc.get_freeze_count()
with collection_paused():
    load_xdsl()
assert gc.get_freeze_count() >= count - 100
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_other_packages_are_left_alone():
    script = """
import dataclasses, sys
from tilewright.records import defined_quickly
with defined_quickly("nobody"):
    made = dataclasses.dataclass(frozen=True)(type("Made", (), {"__annotations__": {"a": int}, "__module__": "somebody"}))
assert made.__repr__.__module__ != "tilewright.records" and made.__dataclass_params__.frozen
assert made(1) == made(1) and repr(made(1)) == "Made(a=1)"
"""
    subprocess.run([sys.executable, "-c", script], check=True)
