"""Arguments that are given by name: blocks by the names of their places, numbers by any name the generations have for them."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.dialects.tile_op import Composite, TileOp
from tilewright.dialects.tile_ops import BY_PYTHON, COMPOSITE_BY_PYTHON
from tilewright.frontend.thread import Thread
from tilewright.lang.names import ANY_OPERAND_NAMES, BLOCK_FUNCTIONS, OPERAND_NAMES, PARAMETER_NAMES


def by_position(name: str, args: list[Any], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Blocks that are given by name, ``where(condition=…, true_value=…, false_value=…)``, as arguments in their order."""
    if not named:
        return args, named
    op = None if name in BLOCK_FUNCTIONS else BY_PYTHON.get(name) or COMPOSITE_BY_PYTHON[name]
    count = op.arity if op is not None else 2 if name.endswith("matmul") else 1
    places = OPERAND_NAMES.get(name.partition(".")[2], ANY_OPERAND_NAMES[:count])
    taken = {param.name for param in op.params} if op is not None else set[str]()
    found, rest = list(args), dict(named)
    for spellings in places[len(args) :]:
        given = next((word for word in spellings if word in rest and word not in taken), None)
        if given is None:
            break
        found.append(rest.pop(given))
    return found, rest


def parameters(thread: Thread, op: TileOp | Composite, rest: list[Any], named: dict[str, Any], node: ast.Call) -> dict[str, Any]:
    visible = [param for param in op.params if not param.hidden]
    names = [param.name for param in visible]
    known = f"its parameters are {', '.join(names)}" if names else "it has no parameters"
    if len(rest) > len(names):
        raise thread.error("TW004", f"{op.name} takes {op.arity + len(names)} arguments at most", node, help=known)
    params = dict(zip(names, rest, strict=False))
    spellings = PARAMETER_NAMES.get(op.name, {})
    for word, value in named.items():
        key = word if word in names else spellings.get(word, word)
        if key not in names or key in params:
            raise thread.error("TW004", f"{op.name} has no free argument '{word}'", node, help=known)
        params[key] = value
    missing = [param.name for param in visible if param.default is None and param.name not in params]
    if missing:
        raise thread.error("TW004", f"{op.name} needs '{missing[0]}'", node, help=op.summary)
    return params
