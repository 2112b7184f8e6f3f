"""A TileLang function with its arguments, read into a tile program."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

from tilewright.diagnostics import KernelError, fail
from tilewright.frontend.syntax import function_node
from tilewright.frontend.tilelang.dtypes import tile_dtype
from tilewright.frontend.tilelang.reader import OPERATIONS, Reader
from tilewright.frontend.tilelang.reading import bound, unbound
from tilewright.frontend.tilelang.statements import Returned, counted_range
from tilewright.frontend.tilelang.symbols import Tensor, TensorData, Trouble
from tilewright.frontend.tilelang.tile_program import TileProgram
from tilewright.lang.tensors import is_tensor
from tilewright.lang.tilelang_tensors import VIEW, View
from tilewright.lang.tilelang_types import UNDECLARED, Dimension, TensorType, TileLangFunction, element_name, outer_scope


class KernelReader(Reader):
    def __init__(self, file: str, node: ast.AST) -> None:
        super().__init__(file, node)
        self.outputs: list[Tensor] = []
        self.known_sizes: dict[str, int] = {}  # of T.const and T.dynamic, by name

    def parameter(self, name: str, value: Any) -> Tensor:
        """A tensor argument; the reader knows its shape and type, not its values."""
        shape = value.known_shape() if isinstance(value, TensorType) else tuple(int(size) for size in value.shape)
        if shape is None:
            raise fail(
                "TW104", f"the shape of '{name}' is not known", self.span(), help="compile with arguments: kernel.compile(a, b)"
            )
        element = element_name(value.dtype)
        element = {"bf16": "bfloat16", "f32": "float32", "i32": "int32"}.get(element, element)
        tensor = Tensor(name, shape, element, tile_dtype(element, self), len(self.tensors))
        self.tensors.append(tensor)
        return tensor

    def declare(self, name: str, kind: Any) -> None:
        """``A: T.Tensor[[M, K], T.float16]`` in the body: sizes named by T.const get their values."""
        tensor = self.names.get(name)
        if not isinstance(kind, TensorType):
            raise Trouble("TW001", f"the annotation of '{name}'", help="annotate tensor parameters with T.Tensor")
        if not isinstance(tensor, Tensor):
            raise Trouble("TW004", f"'{name}' is {tensor!r}, the kernel declares a tensor", help="pass a tensor")
        kind.match(tensor.shape, name, self.span())
        self.resolve_sizes()

    def resolve_sizes(self) -> None:
        for name, value in list(self.names.items()):
            if not isinstance(value, Dimension):
                continue
            size = self.known_sizes.get(value.name) if value.size is None else value.size
            if size is not None:
                self.names[name] = size

    def create_output(self, shape: tuple[Any, ...], dtype: Any) -> Tensor:
        tensor = self.parameter(f"output{len(self.outputs) or ''}", TensorType(shape, dtype))
        self.outputs.append(tensor)
        return tensor

    def learn(self, definition: ast.FunctionDef, values: dict[str, Any]) -> dict[str, TensorType]:
        """Types that the body declares before the launch; tensors among ``values`` decide the sizes they name."""
        found: dict[str, TensorType] = {}
        self.scopes.append({**self.names, **values})
        for statement in definition.body:
            if isinstance(statement, ast.With):
                break
            try:
                if isinstance(statement, ast.Assign):
                    value = self.evaluate(statement.value)
                    for target in statement.targets:
                        self.bind(target, value)
                elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    kind = self.evaluate(statement.annotation)
                    if isinstance(kind, TensorType):
                        found[statement.target.id] = kind
                        self._learn_sizes(kind, values.get(statement.target.id))
            except (KernelError, Trouble, TypeError, ValueError, LookupError):
                continue  # the statement is read again, then with what is known by then, and is an error only there
        self.scopes.pop()
        self.tensors.clear()
        self.outputs.clear()
        return found

    def declared(self, name: str, types: dict[str, TensorType]) -> TensorType:
        """The type of a tensor that was not given, with the sizes that were."""
        if name not in types:
            raise fail("TW004", f"argument '{name}' is missing", self.span(), help="the kernel does not declare its type")
        shape = tuple(self.known_sizes.get(s.name, s) if isinstance(s, Dimension) else s for s in types[name].shape)
        return TensorType(shape, types[name].dtype)

    def _learn_sizes(self, kind: TensorType, value: Any) -> None:
        if not is_tensor(value) or len(kind.shape) != len(value.shape):
            return
        for wanted, size in zip(kind.shape, value.shape, strict=True):
            if isinstance(wanted, Dimension) and wanted.name:
                self.known_sizes.setdefault(wanted.name, int(size))
        self.resolve_sizes()

    def _bind_name(self, name: str, value: Any) -> None:
        if isinstance(value, TensorType) and isinstance(value.data, TensorData):
            value = self._view(name, value, value.data.tensor)
        if isinstance(value, Dimension) and value.name in self.known_sizes:
            value = self.known_sizes[value.name]
        for output in self.outputs:
            if value is output and output.name.startswith("output"):
                output.name = name
        super()._bind_name(name, value)

    def _view(self, name: str, kind: TensorType, tensor: Tensor) -> Tensor:
        """``T.Tensor(shape, dtype, A.data)``: the launcher passes the same memory in that shape."""
        shape = kind.known_shape()
        if shape is None or math.prod(shape) != math.prod(tensor.shape) or element_name(kind.dtype) != tensor.dtype:
            raise Trouble(
                "TW001",
                f"tensor '{tensor.name}' {tensor.shape} of {tensor.dtype} as {kind.shape} of {kind.dtype}",
                help="another shape must have the same type and as many elements",
            )
        view = Tensor(name, shape, tensor.dtype, tensor.format, len(self.tensors), VIEW, View(tensor.index))
        self.tensors.append(view)
        return view


def read_kernel(kernel: TileLangFunction, values: Sequence[Any]) -> tuple[TileProgram, tuple[int, ...]]:
    """The program, and the numbers of the tensors that the kernel creates itself."""
    definition = function_node(kernel.function)
    if not isinstance(definition, ast.FunctionDef):
        raise fail("TW004", "only a function can be a kernel", kernel.span)
    reader = KernelReader(kernel.function.__code__.co_filename, definition)
    token = bound(reader)
    try:
        _run(reader, kernel, definition, values)
    except Trouble as trouble:
        raise reader.located(trouble) from None
    finally:
        unbound(token)
    if reader.launch is None:
        raise fail(
            "TW010", f"kernel '{kernel.name}' has no T.Kernel", kernel.span, help="with T.Kernel(grid_x, grid_y) as (bx, by):"
        )
    program = TileProgram(
        kernel.name, reader.launch.grid, reader.launch.variables, reader.launch.body, reader.tensors, reader.place, reader.notes
    )
    return program, tuple(output.index for output in reader.outputs)


def _run(reader: KernelReader, kernel: TileLangFunction, definition: ast.FunctionDef, values: Sequence[Any]) -> None:
    scope = outer_scope(kernel.function)
    scope.update(OPERATIONS)
    if "range" not in scope:
        scope["range"] = counted_range
    reader.scopes.append(scope)
    sizes = dict(kernel.sizes(values))
    for name, value in list(scope.items()):
        if isinstance(value, Dimension):
            scope[name] = sizes.get(value.name, value)
    given = dict(zip(kernel.signature.parameters, values, strict=True))
    declared: dict[str, TensorType] = {}
    if kernel.is_eager:
        reader.known_sizes.update(kernel.known_sizes)
        declared = reader.learn(definition, given)
    for name, value in given.items():
        if value is UNDECLARED:
            value = reader.declared(name, declared)
        scope[name] = reader.parameter(name, value) if is_tensor(value) else value
    try:
        reader.execute(definition.body)
    except Returned:
        return
