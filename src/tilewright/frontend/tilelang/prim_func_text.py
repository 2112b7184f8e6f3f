"""A TVM function, as TileLang builds it, written back as TileLang source: what the reader then reads, and errors point into.

TIR statements know no place in the user's file, so this text is the only source such a kernel has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.frontend.tilelang.prim_func_expressions import (
    THREADS,
    VARIABLE,
    ExpressionText,
    Names,
    called,
    constant,
    kind,
    variables,
)
from tilewright.records import record

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
