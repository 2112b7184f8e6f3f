"""Kernels as operators of PyTorch: ``gelu = tilewright.torch.op(kernel)``, also under ``torch.compile`` and ``torch.export``.

A kernel writes its results into tensors it is given; an operator returns them. `op` closes that gap: it registers a custom
operator with `torch.library` whose schema follows the kernel's signature, says without running it which shapes come out
(the "fake" implementation that ``torch.compile`` traces with), and allocates the outputs. On CPU tensors the operator
simulates or runs natively; on ttnn tensors, which are not torch's, the same object launches the kernel directly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright import execution
from tilewright.diagnostics import fail
from tilewright.jit.kernel import empty_like
from tilewright.lang.kernel import annotation_of
from tilewright.lang.tensors import lives_on_device
from tilewright.narrowing import as_tuple, is_list, is_tuple

if TYPE_CHECKING:
    from tilewright.jit.kernel import Kernel

NAMESPACE = "tilewright"
SCALARS = {int: "int", float: "float", bool: "bool", str: "str"}

# How an output is made: like a named input, or by a function of the inputs that gives a shape or a tensor.
Recipe = str | Callable[..., Any]
Outputs = str | Sequence[str] | Mapping[str, Recipe] | None


def op(
    kernel: Kernel,
    *,
    outputs: Outputs = None,
    in_place: str | Sequence[str] = (),
    name: str | None = None,
    mode: str = execution.AUTO,
    backward: Op | Callable[..., Any] | None = None,
    saves: str = "inputs",
) -> Op:
    """A `torch.library` operator that runs ``kernel``.

    ``outputs``: the parameters that the kernel writes and the operator returns. A mapping says how each is made: like
    another parameter (its name), or by a function of the inputs that returns a shape (dtype and device of the first
    tensor) or a tensor. Without it the last parameter is the output and is made like the first tensor.

    ``in_place``: parameters that the kernel writes and the caller passes. Such an operator returns only ``outputs``,
    nothing if there are none, and has no derivative.

    ``backward``: called with the gradients of the outputs, then what ``saves`` names (``"inputs"``, ``"outputs"`` or
    ``"both"``: all tensors and numbers of the call, the results, or these in this order). It returns one gradient per
    input tensor, None for one that has none. Usually another operator made from a second kernel.

    ``mode``: ``"auto"`` and ``"sim"`` simulate, ``"native"`` runs the C++ on this machine, ``"fast"`` rounds less.
    """
    return Op(kernel, outputs=outputs, in_place=in_place, name=name, mode=mode, backward=backward, saves=saves)


class Op:
    """What `op` makes. Call it; ``torch_op`` is the registered operator, for `torch.library.opcheck` and graphs."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        outputs: Outputs,
        in_place: str | Sequence[str],
        name: str | None,
        mode: str,
        backward: Op | Callable[..., Any] | None,
        saves: str,
    ) -> None:
        import torch  # pyright: ignore

        if mode not in (execution.AUTO, execution.SIM, execution.FAST, execution.NATIVE):
            raise fail("TW004", f"mode={mode!r} of an operator", kernel.span, help="one of auto, sim, fast, native")
        if saves not in ("inputs", "outputs", "both"):
            raise fail("TW004", f"saves={saves!r} of an operator", kernel.span, help="one of inputs, outputs, both")
        self.kernel = kernel
        self.mode = mode
        self.in_place = _names(in_place)
        self.recipes = _recipes(kernel, outputs, self.in_place)
        self.parameters = {
            each.name: each for each in kernel.signature.parameters.values() if each.name not in self.recipes
        }
        self.tensors = [each for each in self.parameters if self._kind(each) == "Tensor"]
        self._check_names()
        if backward is not None and self.in_place:
            raise fail("TW004", f"operator '{kernel.name}' works in place and has a backward", kernel.span,
                       help="autograd needs the values from before: make it return a new tensor (outputs=)")  # fmt: skip
        self.qualified = name if name and "::" in name else f"{NAMESPACE}::{name or kernel.name}"
        self.backward = backward
        self._torch = torch
        register: Any = torch.library.custom_op(  # pyright: ignore
            self.qualified, self._run, mutates_args=self.in_place, schema=self.schema()
        )
        register.register_fake(self._fake)
        if backward is not None:
            register.register_autograd(self._gradients, setup_context=self._saver(saves))
        self.torch_op = register

    def __call__(self, *args: Any, **named: Any) -> Any:
        if any(lives_on_device(value) for value in (*args, *named.values())):
            return self._launch(*args, **named)
        return self.torch_op(*args, **named)

    def __repr__(self) -> str:
        return f"<operator {self.qualified}{self.schema()}>"

    def schema(self) -> str:
        """As PyTorch writes it: ``(Tensor x, Tensor(a1!) y, float scale=2.0) -> Tensor``."""
        parts: list[str] = []
        for number, (each, parameter) in enumerate(self.parameters.items()):
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in parts:
                parts.append("*")
            kind = f"Tensor(a{number}!)" if each in self.in_place else self._kind(each)
            default = "" if parameter.default is inspect.Parameter.empty else f"={_default(parameter.default)}"
            parts.append(f"{kind} {each}{default}")
        results = ["Tensor"] * len(self.recipes)
        return f"({', '.join(parts)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"

    # What the operator does -------------------------------------------------------------------------------------------------

    def _run(self, *args: Any, **named: Any) -> Any:
        given = self._bound(args, named)
        made = {each: self._made(recipe, given, zero=True) for each, recipe in self.recipes.items()}
        # A kernel reads whole tiles in order: a transposed or strided view becomes a tensor of its own, except one it writes.
        values = {
            each: value.contiguous() if self._is_tensor(value) and each not in self.in_place else value
            for each, value in given.items()
        }
        with execution.session(mode=self.mode):
            self._check_written(values | made)
            self.kernel(**values, **made)
        return self._returned(made)

    def _fake(self, *args: Any, **named: Any) -> Any:
        given = self._bound(args, named)
        return self._returned({each: self._made(recipe, given, zero=False) for each, recipe in self.recipes.items()})

    def _launch(self, *args: Any, **named: Any) -> Any:
        """Tensors of ttnn: outputs are made there, and the kernel is launched."""
        given = self._bound(args, named)
        made: dict[str, Any] = {}
        for each, recipe in self.recipes.items():
            source = given[recipe] if isinstance(recipe, str) else recipe(*given.values())
            if is_list(source):
                remedy = "make the output a like= of an input, or pass a function that returns a ttnn tensor"
                raise fail("TW004", f"output '{each}' of '{self.kernel.name}' has a shape but no place on the device",
                           self.kernel.span, help=remedy)  # fmt: skip
            made[each] = empty_like(source) if isinstance(recipe, str) else source
        self.kernel(**given, **made)
        return self._returned(made)

    def _gradients(self, context: Any, *gradients: Any) -> Any:
        assert self.backward is not None
        found = self.backward(*(each.contiguous() for each in gradients), *_restored(context))
        found = as_tuple(found)
        if len(found) != len(self.tensors):
            wanted = f"{len(self.tensors)}: {', '.join(self.tensors)}"
            raise fail("TW004", f"the backward of '{self.kernel.name}' returned {len(found)} gradients", self.kernel.span,
                       help=f"one per input tensor, None for one that has none; the inputs are {wanted}")  # fmt: skip
        by_name = dict(zip(self.tensors, found, strict=True))
        return tuple(by_name.get(each) for each in self.parameters)

    def _saver(self, saves: str) -> Callable[..., None]:
        def save(ctx: Any, inputs: tuple[Any, ...], output: Any, keyword_only_inputs: Any = None) -> None:
            results = output if is_tuple(output) else (output,)
            kept: list[Any] = [*inputs, *(keyword_only_inputs or {}).values()] if saves in ("inputs", "both") else []
            kept += results if saves in ("outputs", "both") else ()
            ctx.save_for_backward(*(value for value in kept if self._is_tensor(value)))
            ctx.others = [None if self._is_tensor(value) else (value,) for value in kept]

        return save

    # Arguments --------------------------------------------------------------------------------------------------------------

    def _is_tensor(self, value: Any) -> bool:
        return isinstance(value, self._torch.Tensor)  # pyright: ignore

    def _kind(self, name: str) -> str:
        """The schema's type of a parameter; what has no scalar annotation and no scalar default is a tensor."""
        parameter = self.parameters[name]
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise fail("TW004", f"parameter '{name}' of '{self.kernel.name}' gathers arguments", self.kernel.span,
                       help="an operator of torch has a fixed list of parameters")  # fmt: skip
        if annotation_of(parameter.annotation) is not None:
            return "int"
        for kind, word in SCALARS.items():
            if parameter.annotation in (kind, kind.__name__):
                return word
        if parameter.default is not inspect.Parameter.empty:
            if type(parameter.default) not in SCALARS:
                raise fail("TW004", f"the default of '{name}' is {parameter.default!r}", self.kernel.span,
                           help="torch passes tensors, int, float, bool and str; close over anything else")  # fmt: skip
            return SCALARS[type(parameter.default)]
        return "Tensor"

    def _bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        signature = self.kernel.signature.replace(parameters=list(self.parameters.values()))
        try:
            bound = signature.bind(*args, **named)
        except TypeError as error:
            raise fail("TW004", f"{self.kernel.name}: {error}", self.kernel.span, help=f"it is {self!r}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _made(self, recipe: Recipe, given: Mapping[str, Any], *, zero: bool) -> Any:
        first = given[self.tensors[0]]
        made = given[recipe] if isinstance(recipe, str) else recipe(*given.values())
        shape, like = (made.shape, made) if self._is_tensor(made) else (tuple(made), first)
        return like.new_zeros(shape) if zero else like.new_empty(shape)

    def _returned(self, made: Mapping[str, Any]) -> Any:
        values = tuple(made.values())
        return values[0] if len(values) == 1 else values or None

    def _check_names(self) -> None:
        known = list(self.kernel.signature.parameters)
        wanted = [*self.in_place, *self.recipes, *(each for each in self.recipes.values() if isinstance(each, str))]
        for each in wanted:
            if each not in known:
                raise fail("TW004", f"'{self.kernel.name}' has no parameter '{each}'", self.kernel.span,
                           help=f"its parameters are {', '.join(known)}")  # fmt: skip
        if not self.tensors:
            raise fail("TW004", f"'{self.kernel.name}' has no input tensor", self.kernel.span,
                       help="an operator needs one: its outputs are made where it is")  # fmt: skip

    def _check_written(self, values: Mapping[str, Any]) -> None:
        """The schema told torch what the kernel writes. A wrong one gives wrong graphs later, so it is checked at every call."""
        ordered = [values[each] for each in self.kernel.signature.parameters]
        program = self.kernel.compile(*ordered)
        written = set(program.written)
        promised = {*self.recipes, *self.in_place}
        for each in sorted(written - promised):
            raise fail("TW004", f"'{self.kernel.name}' writes '{each}', which the operator calls an input", self.kernel.span,
                       help=f"add it to outputs= or in_place=: in_place=({each!r},)")  # fmt: skip
        for each in sorted(promised - written):
            raise fail("TW004", f"'{self.kernel.name}' does not write '{each}'", self.kernel.span,
                       help="take it out of outputs= and in_place=")  # fmt: skip


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _recipes(kernel: Kernel, outputs: Outputs, in_place: Sequence[str]) -> dict[str, Recipe]:
    """How every output is made. Outputs without a recipe are like the first parameter that is not one."""
    names = list(kernel.signature.parameters)
    if outputs is None:
        outputs = () if in_place else (names[-1],)
    if isinstance(outputs, Mapping):
        return dict(outputs)
    wanted = _names(outputs)
    first = next((each for each in names if each not in wanted), "")
    return dict.fromkeys(wanted, first)


def _default(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _restored(context: Any) -> list[Any]:
    """What `_saver` kept, in its order."""
    tensors = iter(context.saved_tensors)
    return [next(tensors) if other is None else other[0] for other in context.others]

