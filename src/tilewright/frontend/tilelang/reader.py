"""Reads a TileLang function with its arguments into a tile program: statements are walked, expressions are evaluated by Python
on symbols.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any

from tilewright.diagnostics import KernelError, caller_span, fail
from tilewright.frontend.syntax import function_node
from tilewright.frontend.tilelang.dtypes import tile_dtype
from tilewright.frontend.tilelang.elements import Predication, assign_whole, store_element
from tilewright.frontend.tilelang.reading import Launch, Reading, bound, current, is_scalar, unbound
from tilewright.frontend.tilelang.statements import HANDLERS, HELP, KernelDomain, Returned, counted_range
from tilewright.frontend.tilelang.symbols import (
    Arithmetic,
    Expression,
    Fragment,
    Position,
    Tensor,
    TensorData,
    Trouble,
    combine,
    expression,
    if_then_else,
    is_dynamic_truth,
    is_symbolic,
    negated,
    plain,
    raw,
)
from tilewright.frontend.tilelang.tile_program import Branch, Place, Statement, TileProgram, read_by
from tilewright.lang.kernel import outer_names
from tilewright.lang.tensors import is_tensor
from tilewright.lang.tilelang_tensors import (
    UNDECLARED,
    VIEW,
    Dimension,
    TensorType,
    TileLangFunction,
    View,
    element_name,
)
from tilewright.narrowing import is_slice, is_tuple

REWRITTEN = (ast.BoolOp, ast.Not, ast.IfExp, ast.Compare)
CODE = "tilewright_code"


class _Rewriter(ast.NodeTransformer):
    """Python's ``and``, ``or``, ``not`` and ``a if c else b`` need truth values; they become calls that also take symbols."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        symbol = "and" if isinstance(node.op, ast.And) else "or"
        return _call(node, "__tw_join", ast.Constant(symbol), *(_later(value) for value in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call(node, "__tw_not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return _call(node, "__tw_choose", node.test, _later(node.body), _later(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """``a < b < c`` is ``a < b and b < c``."""
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        sides = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.copy_location(ast.Compare(left, [op], [right]), node)
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return _call(node, "__tw_join", ast.Constant("and"), *(_later(pair) for pair in pairs))


def _later(value: ast.expr) -> ast.expr:
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(arguments, value), value)


def _call(node: ast.expr, name: str, *arguments: ast.expr) -> ast.expr:
    call = ast.copy_location(ast.Call(ast.Name(name, ast.Load()), list(arguments), []), node)
    return ast.fix_missing_locations(call)


def code_of(node: ast.expr, file: str) -> CodeType:
    """The expression, compiled; kept at its node, since a file is parsed once and its kernels are read many times."""
    known = getattr(node, CODE, None)
    if known is None:
        written = node
        if any(isinstance(inner, REWRITTEN) for inner in ast.walk(node)):
            written = ast.fix_missing_locations(_Rewriter().visit(copy.deepcopy(node)))
        known = compile(ast.Expression(written), file, "eval")
        setattr(node, CODE, known)
    return known


class Reader(Reading):
    def __init__(self, file: str, node: ast.AST) -> None:
        super().__init__(file, node)
        self.scopes: list[dict[str, Any]] = []

    @property
    def names(self) -> dict[str, Any]:
        return self.scopes[-1]

    # Expressions ------------------------------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Any:
        try:
            code = code_of(node, self.place.file)
        except SyntaxError as error:  # yield and await, which an expression alone cannot have
            raise fail("TW001", str(error.msg), self.span(), help="kernels are straight code, loops and ifs") from None
        scope = self.names
        scope.setdefault("__builtins__", builtins)
        try:
            return eval(code, scope)
        except (KernelError, Trouble, Returned):
            raise
        except NameError as error:
            remedy = "names of the kernel, its factory and its module are visible"
            raise fail("TW002", str(error), self.span(), help=remedy) from None
        except AttributeError as error:
            raise fail("TW003", str(error), self.span(), help="docs/tilelang.md says what T has here") from None
        except Exception as error:
            remedy = "this runs when the kernel is compiled"
            raise fail("TW017", f"{type(error).__name__}: {error}", self.span(), help=remedy) from error

    # Statements -------------------------------------------------------------------------------------------------------

    def execute(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            handler = HANDLERS.get(type(statement))
            before = self.place
            self.place = Place(self.place.file, statement)
            try:
                if handler is None:
                    word = type(statement).__name__.lower()
                    remedy = HELP.get(type(statement), "compute it before the kernel")
                    raise Trouble("TW001", f"'{word}' in a kernel", help=remedy)
                handler(self, statement)
            except Trouble as trouble:
                raise self.located(trouble) from None
            except (TypeError, ValueError, LookupError) as error:
                message = f"{type(error).__name__}: {error}"
                raise fail("TW017", message, self.span(), help="this runs when the kernel is compiled") from error
            self.place = before

    def bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = list(value)
            if len(parts) != len(target.elts):
                raise Trouble("TW004", f"{len(target.elts)} names for {len(parts)} values")
            for part, item in zip(target.elts, parts, strict=True):
                self.bind(part, item)
        elif isinstance(target, ast.Subscript):
            self._assign_element(target, value)
        elif isinstance(target, ast.Name):
            self._bind_name(target.id, value)
        else:
            raise Trouble("TW001", "this kind of assignment", help="assign to names and to elements of fragments")

    def _bind_name(self, name: str, value: Any) -> None:
        known = self.names.get(name)
        if isinstance(value, Fragment) and not value.name:
            value.name = name
        scalar = isinstance(value, Expression) and not read_by(value)  # of block and loop variables alone
        if not self.parallel and isinstance(value, Expression) and (isinstance(known, Fragment) or not scalar):
            if not isinstance(known, Fragment):
                known = self._like(name, value)
            assign_whole(self, known, value)
            self.names[name] = known
            return
        if isinstance(known, Fragment) and is_scalar(known):
            self.scalars[known] = value
            return
        if isinstance(known, Fragment) and isinstance(value, (int, float)) and not isinstance(value, bool):
            raise Trouble("TW004", f"fragment '{name}' is replaced by a number", help=f"fill it: T.fill({name}, {value})")
        self.names[name] = value

    def _like(self, name: str, value: Expression) -> Fragment:
        """A fragment for a new name, as large as what the expression reads."""
        for inner in read_by(value):
            return self.fragment(inner.shape, inner.dtype, "fragment", name)
        raise Trouble("TW004", f"'{name}' has no shape", help=f"allocate it first: {name} = T.alloc_fragment(shape, dtype)")

    def _assign_element(self, target: ast.Subscript, value: Any) -> None:
        holder, key = self.evaluate(target.value), self.evaluate(_key(target.slice))
        single = all(extent == 1 for extent in self.parallel.values()) and not self.conditions  # also T.Parallel(1)
        if isinstance(holder, Fragment) and is_scalar(holder) and single and not _is_whole(key):
            self.scalars[holder] = value
            return
        if self.parallel:
            store_element(self, holder, key, value)
            return
        if isinstance(holder, Fragment) and _is_whole(key):
            self.read_fragment(holder, key)
            assign_whole(self, holder, value)
            return
        if not isinstance(holder, Arithmetic):
            holder[key] = value
            return
        remedy = "threads are not visible here: loop with T.Parallel, or use T.copy, T.fill and whole-fragment operations"
        raise Trouble("TW001", "an element is written outside T.Parallel", help=remedy)

    # Branches ---------------------------------------------------------------------------------------------------------

    def nested(self, statements: list[ast.stmt]) -> list[Statement]:
        body: list[Statement] = []
        self.bodies.append(body)
        self.execute(statements)
        self.bodies.pop()
        return body

    def branch(self, node: ast.If) -> None:
        condition = self.evaluate(node.test)
        if not is_symbolic(condition):
            self.execute(node.body if condition else node.orelse)
            return
        if self.parallel:
            self._masked(expression(condition), node)
            return
        if not is_dynamic_truth(condition):
            self._predicated(expression(condition), node)
            return
        before, scalars = dict(self.names), dict(self.scalars)
        then = self.nested(node.body)
        after, given = dict(self.names), self.scalars
        self.scalars = dict(scalars)
        self.names.clear()
        self.names.update(before)
        otherwise = self.nested(node.orelse)
        for name in {*after, *self.names}:
            if after.get(name) is not self.names.get(name):  # its value depends on the way taken
                self.names.pop(name, None)
        self.scalars = {each: v for each, v in self.scalars.items() if given.get(each) is v}
        self.emit(Branch(raw(condition), then, otherwise, self.place))

    def _predicated(self, condition: Expression, node: ast.If) -> None:
        if read_by(condition):
            raise Trouble("TW007", "an if on data", help="choose with T.if_then_else inside T.Parallel")
        place, known = self.place, set(self.valued)
        for body, holds in ((node.body, condition), (node.orelse, expression(negated(condition)))):
            statements = self.nested(body)
            self.place = place
            Predication(self, holds, known).emit(statements)
        self.place = place

    def _masked(self, condition: Expression, node: ast.If) -> None:
        for body, mask in ((node.body, condition), (node.orelse, expression(negated(_as_value(condition))))):
            if body:
                self.conditions.append(mask)
                self.execute(body)
                self.conditions.pop()

    def launch_kernel(self, node: ast.With, domain: KernelDomain) -> None:
        if self.launch is not None:
            raise Trouble("TW008", "a second T.Kernel in one function", help="write one function per launch")
        item = node.items[0]
        names = [f"b{letter}" for letter in "xyzw"]
        targets: list[ast.expr] = []
        if item.optional_vars is not None:
            targets = item.optional_vars.elts if isinstance(item.optional_vars, ast.Tuple) else [item.optional_vars]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        if item.optional_vars is not None and len(targets) != len(domain.grid):
            message = f"T.Kernel has {len(domain.grid)} dimensions, {len(targets)} names are given"
            raise Trouble("TW004", message, help="with T.Kernel(x, y) as (bx, by):", word="Kernel")
        leaves = tuple(self.leaf(name, 0, size - 1) for name, size in zip(names, domain.grid, strict=False))
        self.launch = Launch(domain.grid, leaves)
        for target, leaf, size in zip(targets, leaves, domain.grid, strict=False):
            self.bind(target, plain(leaf) if size > 1 else 0)
        self.bodies.append(self.launch.body)
        self.execute(node.body)
        self.bodies.pop()

    # Macros -----------------------------------------------------------------------------------------------------------

    def inline(self, definition: ast.FunctionDef, file: str, scope: dict[str, Any], arguments: dict[str, Any]) -> Any:
        if self.depth > 32:
            raise Trouble("TW005", f"macro '{definition.name}' calls itself", help="write a loop")
        place = self.place
        self.place = Place(file, definition)
        self.scopes.append({"range": counted_range, **scope, **OPERATIONS, **arguments})
        self.depth += 1
        try:
            self.execute(definition.body)
        except Returned as result:
            return result.args[0]
        finally:
            self.depth -= 1
            self.scopes.pop()
            self.place = place
        return None


def _as_value(condition: Expression) -> Any:
    return plain(condition.value) if isinstance(condition, Position) else condition


def _key(node: ast.expr) -> ast.expr:
    """An index as an expression: slices become calls of ``slice``."""
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.Tuple([_key(one) for one in node.elts], ast.Load()), node)
    if not isinstance(node, ast.Slice):
        return node
    parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
    call = ast.Call(ast.Name("slice", ast.Load()), parts, [])
    return ast.fix_missing_locations(ast.copy_location(call, node.lower or node.upper or ast.Constant(0, lineno=1, col_offset=0)))


def _is_whole(key: Any) -> bool:
    return all(is_slice(one) for one in (key if is_tuple(key) else (key,)))


def _chosen(condition: Any, when_true: Callable[[], Any], when_false: Callable[[], Any]) -> Any:
    """``a if condition else b``: both sides exist when only the device knows."""
    if not is_symbolic(condition):
        return when_true() if condition else when_false()
    return if_then_else(condition, when_true(), when_false())


def _joined(symbol: str, *values: Callable[[], Any]) -> Any:
    result = values[0]()
    for value in values[1:]:
        if not is_symbolic(result):
            if bool(result) is (symbol == "or"):
                return result
            result = value()
            continue
        result = combine(symbol, result, value())
    return result


def _not(value: Any) -> Any:
    return negated(value) if is_symbolic(value) else not value


OPERATIONS: dict[str, Any] = {"__tw_choose": _chosen, "__tw_join": _joined, "__tw_not": _not}


class Macro:
    """``@T.macro``: a function whose statements stand where it is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.signature = inspect.signature(function)
        functools.update_wrapper(self, function)

    def key_parts(self) -> tuple[Any, ...]:
        return (self.function,)

    def __call__(self, *args: Any, **named: Any) -> Any:
        reader: Any = current(f"macro '{self.function.__name__}'")
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as error:
            raise fail("TW004", f"{self.function.__name__}: {error}", caller_span()) from None
        bound.apply_defaults()
        definition = function_node(self.function)
        assert isinstance(definition, ast.FunctionDef)
        outer = dict(outer_names(self.function))
        return reader.inline(definition, self.function.__code__.co_filename, outer, dict(bound.arguments))


def macro(function: Callable[..., Any] | None = None, **_hints: Any) -> Any:
    return Macro(function) if function is not None else Macro


class LocalMacro:
    """A macro (or plain function) defined inside the kernel itself."""

    def __init__(self, definition: ast.FunctionDef, file: str, scope: dict[str, Any]) -> None:
        self.definition, self.file, self.scope = definition, file, scope

    def __call__(self, *args: Any, **named: Any) -> Any:
        reader: Any = current(f"macro '{self.definition.name}'")
        words = [argument.arg for argument in self.definition.args.args]
        if len(args) > len(words) or set(named) - set(words):
            raise fail("TW004", f"macro '{self.definition.name}' takes {', '.join(words)}", reader.span())
        given = {**dict(zip(words, args, strict=False)), **named}
        missing = [word for word in words if word not in given]
        defaults = self.definition.args.defaults
        for word, default in zip(words[len(words) - len(defaults) :], defaults, strict=True):
            if word in missing:
                given[word] = reader.evaluate(default)
                missing.remove(word)
        if missing:
            raise fail("TW004", f"macro '{self.definition.name}' needs '{missing[0]}'", reader.span())
        return reader.inline(self.definition, self.file, self.scope, given)


class KernelReader(Reader):
    def __init__(self, file: str, node: ast.AST) -> None:
        super().__init__(file, node)
        self.outputs: list[Tensor] = []
        self.known_sizes: dict[str, int] = {}  # of T.const and T.dynamic, by name

    def parameter(self, name: str, value: Any) -> Tensor:
        """A tensor argument; the reader knows its shape and type, not its values."""
        shape = value.known_shape() if isinstance(value, TensorType) else tuple(int(size) for size in value.shape)
        if shape is None:
            remedy = "compile with arguments: kernel.compile(a, b)"
            raise fail("TW104", f"the shape of '{name}' is not known", self.span(), help=remedy)
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
            message = f"tensor '{tensor.name}' {tensor.shape} of {tensor.dtype} as {kind.shape} of {kind.dtype}"
            raise Trouble("TW001", message, help="another shape must have the same type and as many elements")
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
        remedy = "with T.Kernel(grid_x, grid_y) as (bx, by):"
        raise fail("TW010", f"kernel '{kernel.name}' has no T.Kernel", kernel.span, help=remedy)
    program = TileProgram(
        kernel.name, reader.launch.grid, reader.launch.variables, reader.launch.body, reader.tensors, reader.place, reader.notes
    )
    return program, tuple(output.index for output in reader.outputs)


def _run(reader: KernelReader, kernel: TileLangFunction, definition: ast.FunctionDef, values: Sequence[Any]) -> None:
    scope = dict(outer_names(kernel.function))
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
