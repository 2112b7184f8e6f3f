"""A TVM function, as TileLang builds it, written back as TileLang source: what the reader then reads, and errors point into.

TIR statements know no place in the user's file, so this text is the only source such a kernel has.
Nodes are known by the names of their classes: TVM is never imported.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable
from typing import Any

from tilewright.records import record

BINARY = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "FloorDiv": "//", "FloorMod": "%",
    "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!=", "And": "and", "Or": "or",
}  # fmt: skip
FUNCTION = {"Max": "max", "Min": "min", "Mod": "truncmod", "Select": "if_then_else"}
FIELDS = {"Select": ("condition", "true_value", "false_value")}
JOINED = {"bitwise_and": "and", "bitwise_or": "or"}  # of truths
VARIABLE = "local.var"  # the scope of T.alloc_var
HALVES = ("float16", "bfloat16")
THREADS = "T.get_thread_binding()"


def kind(node: Any) -> str:
    return type(node).__name__


def called(node: Any) -> str:
    """The last part of the name of what a Call calls: ``copy`` of ``tl.tileop.copy``."""
    name = getattr(node.op, "name", None) or getattr(node.op, "name_hint", None) or str(node.op)
    return str(name).rpartition(".")[2]


def constant(node: Any) -> int | None:
    """The value of an integer that is known."""
    if isinstance(node, (int, bool)):
        return int(node)
    return int(node.value) if kind(node) in ("IntImm", "Bool") else None


def widened(node: Any) -> bool:
    """A 16-bit float as 32 bits."""
    return kind(node) == "Cast" and str(node.dtype) == "float32" and str(node.value.dtype) in HALVES


def variables(node: Any) -> list[Any]:
    """Variables an expression mentions."""
    if kind(node) in ("Var", "SizeVar"):
        return [node]
    fields = [getattr(node, name, None) for name in ("a", "b", "value", "condition", "true_value", "false_value")]
    inner = [*fields, *(getattr(node, "args", None) or ()), *(getattr(node, "indices", None) or ())]
    return [found for each in inner if each is not None and not isinstance(each, (int, float, str)) for found in variables(each)]


class Names:
    """Python names of variables and buffers, each its own while it is in scope."""

    def __init__(self) -> None:
        self._texts: dict[Any, str] = {}
        self._taken: set[str] = {"T"}

    def new(self, thing: Any, hint: str) -> str:
        plain = re.sub(r"\W", "_", hint) or "value"
        if plain[0].isdigit() or keyword.iskeyword(plain):
            plain = f"_{plain}"
        name, number = plain, 1
        while name in self._taken:
            name, number = f"{plain}_{number}", number + 1
        self._taken.add(name)
        self._texts[thing] = name
        return name

    def drop(self, thing: Any) -> None:
        """Its scope has ended: another may have the name."""
        self._taken.discard(self._texts.pop(thing))

    def means(self, thing: Any, text: str) -> None:
        """``thing`` is written as ``text`` wherever it stands."""
        self._texts[thing] = text

    def knows(self, thing: Any) -> bool:
        return thing in self._texts

    def of(self, thing: Any, hint: str) -> str:
        return self._texts[thing] if thing in self._texts else self.new(thing, hint)


class ExpressionText:
    def __init__(self, names: Names, declare: Callable[[Any], None]) -> None:
        """``declare`` is told of a buffer that nothing has declared, before it is used."""
        self.names, self.declare = names, declare

    def __call__(self, node: Any) -> str:
        name = kind(node)
        if isinstance(node, (bool, int, float, str)):
            return repr(node)
        if name in BINARY:
            return self._binary(node, name)
        if name in FUNCTION:
            if name not in FIELDS:
                return f"T.{FUNCTION[name]}({self._beside(node.a, node.b)}, {self._beside(node.b, node.a)})"
            return f"T.{FUNCTION[name]}({', '.join(self(getattr(node, field)) for field in FIELDS[name])})"
        writer = getattr(self, f"_{name.lower()}", None)
        return f"T.{name.lower()}()" if writer is None else writer(node)

    def _binary(self, node: Any, name: str) -> str:
        left, right = self._beside(node.a, node.b), self._beside(node.b, node.a)
        if name == "Div" and "int" in str(node.a.dtype):
            return f"T.truncdiv({left}, {right})"
        return f"({left} {BINARY[name]} {right})"

    def _beside(self, node: Any, other: Any) -> str:
        """An operand, without a widening that only its company asks for: operators widen by themselves, and a Python float,
        which is 32 bits wide for TVM, takes the type of its company here."""
        return self(node.value if widened(node) and not widened(other) else node)

    def _intimm(self, node: Any) -> str:
        return str(bool(node.value)) if str(node.dtype) == "bool" else str(int(node.value))

    def _floatimm(self, node: Any) -> str:
        value = float(node.value)
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"

    def _stringimm(self, node: Any) -> str:
        return repr(str(node.value))

    def _var(self, node: Any) -> str:
        return self.names.of(node, str(node.name))

    _sizevar = _var

    def _cast(self, node: Any) -> str:
        return f'T.cast({self(node.value)}, "{node.dtype}")'

    def _not(self, node: Any) -> str:
        return f"(not {self(node.a)})"

    def _let(self, node: Any) -> str:
        self.names.means(node.var, self(node.value))
        return self(node.body)

    def _bufferload(self, node: Any) -> str:
        return self.element(node.buffer, node.indices)

    def _bufferregion(self, node: Any) -> str:
        return self.window(node.buffer, [each.min for each in node.region], [each.extent for each in node.region])

    def _call(self, node: Any) -> str:
        name = called(node)
        if name == "region":
            load = node.args[0]
            return self.window(load.buffer, load.indices, node.args[2:])
        if name == "infinity":
            return f'T.infinity("{node.dtype}")'
        if name in JOINED and str(node.dtype) == "bool":
            return f"({self(node.args[0])} {JOINED[name]} {self(node.args[1])})"
        return f"T.{name}({', '.join(self(argument) for argument in node.args)})"

    def buffer(self, buffer: Any) -> str:
        if not self.names.knows(buffer):
            self.declare(buffer)
        return self.names.of(buffer, str(buffer.name))

    def element(self, buffer: Any, indices: Any) -> str:
        if str(buffer.scope()) == VARIABLE:
            return self.buffer(buffer)
        return f"{self.buffer(buffer)}[{', '.join(self(index) for index in indices)}]"

    def window(self, buffer: Any, starts: Any, extents: Any) -> str:
        """A rectangle: the whole buffer by its name, else slices; dimensions of one entry are indices."""
        sizes = [constant(extent) for extent in extents]
        whole = all(
            constant(start) == 0 and size is not None and size == constant(full)
            for start, size, full in zip(starts, sizes, buffer.shape, strict=True)
        )
        if whole and str(buffer.scope()) != "global":
            return self.buffer(buffer)
        parts: list[str] = []
        for start, extent, size, full in zip(starts, extents, sizes, buffer.shape, strict=True):
            first = self(start)
            is_index = size == 1 and constant(full) != 1 and len(sizes) > 1
            end = self(extent) if constant(start) == 0 else f"{first} + {self(extent)}"
            parts.append(first if is_index else f"{first} : {end}")
        return f"{self.buffer(buffer)}[{', '.join(parts)}]"


ALLOCATIONS = {"shared": "shared", "local": "fragment", "local.fragment": "fragment"}
LAUNCH = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
# Settings of another machine: they change how fast a kernel is there, never what it computes.
HINT_ATTRIBUTES = (
    "threadblock_swizzle_pattern", "layout_map", "l2_hit_ratio_map", "pragma_", "tl.", "buffer_bind_scope", "storage_",
    "lexical_alloc_scope", "device_scope", "target",
)  # fmt: skip


@record
class PrimFuncText:
    """``dimensions`` are the names of sizes that the arguments of a call decide."""

    name: str
    text: str
    dimensions: tuple[str, ...]


def _get(mapping: Any, key: Any) -> Any:
    """TVM's maps have no ``get`` that takes any key in every release."""
    return next((mapping[each] for each in (key,) if mapping and each in mapping), None)


def text_of(function: Any) -> PrimFuncText:
    return _Writer(function).write()


class _Writer:
    def __init__(self, function: Any) -> None:
        self.function = function
        self.names = Names()
        self.expression = ExpressionText(self.names, self._declared)
        self.lines: list[str] = []
        self.early: list[Any] = []  # bindings that stand before the loop whose variable they use, as T.Persistent has them
        self.depth = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def write(self) -> PrimFuncText:
        attributes = self.function.attrs
        name = str(_get(attributes, "global_symbol") or "main")
        dimensions: dict[Any, str] = {}
        parameters: list[str] = []
        for parameter in self.function.params:
            buffer = _get(self.function.buffer_map, parameter)
            if buffer is None:
                parameters.append(self.names.new(parameter, str(parameter.name)))
                continue
            for size in buffer.shape:
                if kind(size) in ("Var", "SizeVar") and size not in dimensions:
                    dimensions[size] = self.names.of(size, str(size.name))
            shape = "".join(f"{self.expression(size)}, " for size in buffer.shape)
            parameters.append(f'{self.names.new(buffer, str(buffer.name))}: T.Tensor(({shape}), "{buffer.dtype}")')
        self.line("@T.prim_func")
        self.line(f"def {name}({', '.join(parameters)}):")
        self.nested(self.function.body)
        return PrimFuncText(name, "\n".join(self.lines) + "\n", tuple(dimensions.values()))

    def nested(self, *bodies: Any) -> None:
        self.depth += 1
        before = len(self.lines)
        early, self.early = self.early, []
        for binding in early:
            self._bind(binding)
        for body in bodies:
            self.statement(body)
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def statement(self, node: Any) -> None:
        writer: Callable[[Any], None] | None = getattr(self, f"_{kind(node).lower()}", None)
        if writer is None:
            self.line(f"T.{kind(node).lower()}()  # a statement that has no TileLang source")
            return
        writer(node)

    # Structure --------------------------------------------------------------------------------------------------------

    def _seqstmt(self, node: Any) -> None:
        for each in node.seq:
            self.statement(each)

    def _sblockrealize(self, node: Any) -> None:
        self.statement(node.block)

    _blockrealize = _sblockrealize

    def _sblock(self, node: Any) -> None:
        for buffer in node.alloc_buffers:
            self._allocated(buffer)
        if getattr(node, "init", None) is not None:
            self.statement(node.init)
        self.statement(node.body)

    _block = _sblock

    def _allocated(self, buffer: Any) -> None:
        name, scope = self.names.of(buffer, str(buffer.name)), str(buffer.scope())
        if scope == VARIABLE:
            self.line(f'{name} = T.alloc_var("{buffer.dtype}")')
            return
        where = ALLOCATIONS.get(scope, ALLOCATIONS.get(scope.partition(".")[0], "fragment"))
        shape = "".join(f"{self.expression(size)}, " for size in buffer.shape)
        self.line(f'{name} = T.alloc_{where}(({shape}), "{buffer.dtype}")')

    def _declared(self, buffer: Any) -> None:
        """Another shape of a parameter's memory has no statement of its own: ``flat = T.Tensor(shape, dtype, A.data)``."""
        memory = getattr(buffer, "data", None)
        owners = [each for each in dict(self.function.buffer_map).values() if memory is not None and each.data.same_as(memory)]
        if owners:
            shape = "".join(f"{self.expression(size)}, " for size in buffer.shape)
            name = self.names.new(buffer, str(buffer.name))
            self.line(f'{name} = T.Tensor(({shape}), "{buffer.dtype}", {self.expression.buffer(owners[0])}.data)')

    def _declbuffer(self, node: Any) -> None:
        self._allocated(node.buffer)
        if hasattr(node, "body"):
            self.statement(node.body)

    _allocbuffer = _declbuffer

    def _letstmt(self, node: Any) -> None:
        self._bind(node)
        self.statement(node.body)

    def _bind(self, node: Any) -> None:
        if kind(node.value) == "Call" and called(node.value) == "launch_thread_idx":
            self.names.means(node.var, THREADS)
            return
        if not all(self.names.knows(variable) for variable in variables(node.value)):
            self.early.append(node)
            return
        value = self.expression(node.value)
        self.line(f"{self.names.new(node.var, str(node.var.name))} = {value}")

    def _attrstmt(self, node: Any) -> None:
        key = str(node.attr_key)
        if key in ("thread_extent", "virtual_thread"):
            self._launch([(str(node.node.thread_tag), node.node.var, node.value)], node.body)
            return
        if not key.startswith(HINT_ATTRIBUTES):
            self.line(f"T.{'ws' if 'warp_special' in key else key}()")
        self.statement(node.body)

    def _for(self, node: Any) -> None:
        if node.thread_binding is not None:
            self._launch([(str(node.thread_binding.thread_tag), node.loop_var, node.extent)], node.body)
            return
        if int(node.kind) == 1:
            self._parallel(node)
            return
        variable = self.names.new(node.loop_var, str(node.loop_var.name))
        start, extent = self.expression(node.min), self.expression(node.extent)
        bounds = extent if constant(node.min) == 0 else f"{start}, {start} + {extent}"
        stages = _get(node.annotations, "num_stages")
        loop = f"T.serial({bounds})" if stages is None else f"T.Pipelined({bounds}, num_stages={self.expression(stages)})"
        loop = f"T.vectorized({bounds})" if int(node.kind) == 2 else loop
        self.line(f"for {variable} in {loop}:")
        self.nested(node.body)
        self.names.drop(node.loop_var)

    def _parallel(self, node: Any) -> None:
        variables: list[Any] = []
        extents: list[str] = []
        body = node
        while kind(body) == "For" and int(body.kind) == 1 and constant(body.min) == 0:
            variables.append(body.loop_var)
            extents.append(self.expression(body.extent))
            body = body.body
        names = [self.names.new(variable, str(variable.name)) for variable in variables]
        self.line(f"for {', '.join(names)} in T.Parallel({', '.join(extents)}):")
        self.nested(body)
        for variable in variables:
            self.names.drop(variable)

    def _launch(self, found: list[tuple[str, Any, Any]], body: Any) -> None:
        """The block indices of a launch are its grid; thread indices have no meaning here."""
        while True:
            if kind(body) == "For" and body.thread_binding is not None:
                found.append((str(body.thread_binding.thread_tag), body.loop_var, body.extent))
            elif kind(body) == "AttrStmt" and str(body.attr_key) == "thread_extent":
                found.append((str(body.node.thread_tag), body.node.var, body.value))
            else:
                break
            body = body.body
        grid = [each for tag in LAUNCH for each in found if each[0] == tag]
        for tag, variable, _ in found:
            if tag not in LAUNCH:
                self.names.means(variable, THREADS)
        sizes = ", ".join(self.expression(extent) for _, _, extent in grid)
        names = [self.names.new(variable, str(variable.name)) for _, variable, _ in grid]
        joined = ", ".join(names)
        self.line(f"with T.Kernel({sizes}) as {f'({joined})' if len(names) > 1 else joined}:")
        self.nested(body)

    def _ifthenelse(self, node: Any) -> None:
        self.line(f"if {self.expression(node.condition)}:")
        self.nested(node.then_case)
        if node.else_case is not None:
            self.line("else:")
            self.nested(node.else_case)

    def _while(self, node: Any) -> None:
        self.line(f"while {self.expression(node.condition)}:")
        self.nested(node.body)

    def _assertstmt(self, node: Any) -> None:
        if hasattr(node, "body"):
            self.statement(node.body)

    # Actions ----------------------------------------------------------------------------------------------------------

    def _bufferstore(self, node: Any) -> None:
        self.line(f"{self.expression.element(node.buffer, node.indices)} = {self.expression(node.value)}")

    def _evaluate(self, node: Any) -> None:
        call = node.value
        if kind(call) != "Call":
            return
        name, arguments = called(call), [self.expression(argument) for argument in call.args]
        if name in ("gemm", "gemm_py", "gemm_v2"):
            turned = f"transpose_A={arguments[3]}, transpose_B={arguments[4]}, clear_accum={arguments[9]}"
            self.line(f"T.gemm({', '.join(arguments[:3])}, {turned})")
        elif name == "reduce":
            word = str(getattr(call.args[2], "value", call.args[2]))
            self.line(f"T.reduce_{word}({arguments[0]}, {arguments[1]}, dim={arguments[3]}, clear={arguments[4]})")
        elif name in ("copy", "async_copy", "fill"):
            self.line(f"T.{name}({', '.join(arguments[:2])})")
        elif name == "atomicadd":  # of regions: what is added comes first
            self.line(f"T.atomic_add({arguments[1]}, {arguments[0]})")
        elif name == "atomic_add_elem_op" and kind(call.args[0]) == "Call":  # of elements, by pointer
            self.line(f"T.atomic_add({self.expression(call.args[0].args[0])}, {arguments[1]})")
        else:
            self.line(f"T.{name}({', '.join(arguments)})")
