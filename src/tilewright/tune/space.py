"""What may be tried: every configuration of a space, in an order that does not depend on who asks, and who is next to whom."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilewright.diagnostics import Span, fail
from tilewright.records import record

Config = dict[str, Any]
MOST_CONFIGS = 200_000  # that a space is listed to


@record(eq=False)
class Space:
    """``axes`` are the values of each parameter in the order of the author; ``configs`` those combinations that are allowed."""

    axes: dict[str, list[Any]]
    configs: list[Config]

    def neighbours(self, config: Mapping[str, Any]) -> list[Config]:
        """Configurations that differ in one parameter, by one step."""
        known = {text_of(each): each for each in self.configs}
        found: list[Config] = []
        for name, values in self.axes.items():
            if name not in config:  # a listed configuration may leave one to its default
                continue
            place = values.index(config[name])
            for other in values[max(0, place - 1) : place] + values[place + 1 : place + 2]:
                neighbour = known.get(text_of({**config, name: other}))
                if neighbour is not None:
                    found.append(neighbour)
        return found


def text_of(config: Mapping[str, Any]) -> str:
    """The same text for the same configuration, whatever order and kind of sequence it was written with."""
    return json.dumps(config, sort_keys=True, default=str)


def call_with(function: Callable[..., Any], known: Mapping[str, Any]) -> Any:
    """Calls an author's function with those of the known values that its parameters name."""
    names, needed = _named_by(function)
    if names is None:
        return function(**known)
    missing = [name for name in needed if name not in known]
    if missing:
        found = f"'{getattr(function, '__name__', 'a function')}' of autotune names '{missing[0]}', which this call does not have"
        raise fail("TW019", found, help=f"known here: {', '.join(known)}")
    return function(**{name: known[name] for name in names if name in known})


@functools.lru_cache(maxsize=256)
def _named_by(function: Callable[..., Any]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Names of the parameters, and of those without a default; None if it takes whatever there is."""
    parameters = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None, ()
    return tuple(parameters), tuple(name for name, each in parameters.items() if each.default is each.empty)


def list_space(
    given: Any, configs: Any, where: Callable[..., Any] | None, known: Mapping[str, Any], fixed: Mapping[str, Any], span: Span
) -> Space:
    """The space for one problem. ``known`` are values that ``where`` may name, ``fixed`` parameters the caller has chosen."""
    listed = call_with(configs, known) if callable(configs) else configs
    axes_given: Mapping[str, Any] | None = call_with(given, known) if callable(given) else given
    candidates = _product(axes_given or {}, fixed, span) if listed is None else _listed(listed, fixed, span)
    chosen = len(candidates) == 1 and set(candidates[0]) == set(fixed)  # all of it by the caller: nobody is asked
    allowed = [config for config in candidates if chosen or where is None or call_with(where, {**known, **config})]
    unique = list({text_of(config): config for config in allowed}.values())
    if not unique:
        reason = "every configuration is refused by 'where'" if candidates else "the space is empty"
        raise fail("TW019", f"there is nothing to tune: {reason}", span, help=_remedy(candidates, fixed))
    names = list(dict.fromkeys(name for config in unique for name in config))
    order = {name: list(values) for name, values in (axes_given or {}).items()} if listed is None else {}
    return Space({name: _axis(order.get(name), [config[name] for config in unique if name in config]) for name in names}, unique)


def _remedy(candidates: Sequence[Config], fixed: Mapping[str, Any]) -> str:
    left = sorted({name for config in candidates for name in config} - set(fixed))
    if not (candidates and fixed and left):
        return "give every parameter at least one value"
    given = ", ".join(f"{name}={value!r}" for name, value in fixed.items())
    return f"with {given} nothing is left; give {', '.join(left)} too: what a call chooses in full is not asked about"


def _product(axes: Mapping[str, Iterable[Any]], fixed: Mapping[str, Any], span: Span) -> list[Config]:
    values = {name: [fixed[name]] if name in fixed else list(choices) for name, choices in axes.items()}
    count = 1
    for choices in values.values():
        count *= len(choices)
    if count > MOST_CONFIGS:
        remedy = "leave out values, or tune some parameters first and fix them in the call"
        raise fail("TW019", f"the space has {count:,} configurations; {MOST_CONFIGS:,} are the most", span, help=remedy)
    return [dict(zip(values, choice, strict=True)) for choice in itertools.product(*values.values())] if values else []


def _listed(configs: Iterable[Any], fixed: Mapping[str, Any], span: Span) -> list[Config]:
    """``configs=[…]``: dictionaries, or objects that hold one in ``kwargs`` as Triton's do."""
    found: list[Config] = []
    for config in configs:
        values = getattr(config, "kwargs", config)
        if not isinstance(values, Mapping):
            raise fail("TW019", f"a configuration is a dictionary, not {config!r}", span, help='configs=[{"block": 2}, …]')
        found.append({str(name): value for name, value in values.items() if name not in fixed})  # pyright: ignore
    return [{**fixed, **config} for config in found]


def _axis(given: Sequence[Any] | None, present: Sequence[Any]) -> list[Any]:
    """Values in the order that steps are counted in: the author's, else by size."""
    unique: list[Any] = []
    for value in [*(given or ()), *present]:
        if value not in unique and value in present:
            unique.append(value)
    if given is None:
        try:
            return sorted(unique)
        except TypeError:
            return unique
    return unique
