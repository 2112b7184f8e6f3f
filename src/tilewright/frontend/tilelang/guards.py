"""``if row < M:`` around a store to a tensor of M rows: such conditions only keep the store inside, which it is in any case."""

from __future__ import annotations

from tilewright.frontend.tilelang.symbols import Apply, Expression, Position, Tensor
from tilewright.integers import COMPARISONS, Node, Value, is_truth, linear, make

OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def beyond_bounds(conditions: list[Expression], tensor: Tensor, indices: tuple[Value, ...]) -> list[Expression]:
    """Conditions that say more than that the element lies inside the tensor."""
    return [condition for condition in conditions if not _only_bounds(condition, tensor, indices)]


def _only_bounds(condition: Expression, tensor: Tensor, indices: tuple[Value, ...]) -> bool:
    if isinstance(condition, Position) and is_truth(condition.value):
        return _holds(condition.value, tensor, indices)
    if not isinstance(condition, Apply) or condition.op != "*":  # no conditions joined by `and`
        return False
    return all(_only_bounds(part, tensor, indices) for part in condition.arguments)


def _holds(value: Value, tensor: Tensor, indices: tuple[Value, ...]) -> bool:
    """Whether the condition is true for every element inside the tensor."""
    if not isinstance(value, Node):
        return bool(value)
    if value.op == "and":
        return all(_holds(argument, tensor, indices) for argument in value.args)
    if value.op == "or":
        return any(_holds(argument, tensor, indices) for argument in value.args)
    if value.op == "not" and isinstance(inner := value.args[0], Node) and inner.op in OPPOSITE:
        return _holds(make(OPPOSITE[inner.op], *inner.args), tensor, indices)
    if value.op not in COMPARISONS:
        return False
    left, right = value.args
    return any(_compared(value.op, left, right, index, size) for index, size in zip(indices, tensor.shape, strict=True))


def _compared(symbol: str, left: Value, right: Value, index: Value, size: int) -> bool:
    """``left ? right`` for all values of an index from 0 to ``size - 1``, if their difference is that index and a number."""
    terms, constant = linear(make("-", left, right))
    own, offset = linear(index)
    if terms == own:
        low, high = constant - offset, constant - offset + size - 1
    elif terms == frozenset((term, -factor) for term, factor in own):
        low, high = constant + offset - size + 1, constant + offset
    else:
        return False
    holds = {"<": high < 0, "<=": high <= 0, ">": low > 0, ">=": low >= 0, "!=": low > 0 or high < 0, "==": low == high == 0}
    return holds[symbol]
