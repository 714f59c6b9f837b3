"""Option groups: a command asks for a dataclass, the command line for its fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from inspect import Parameter
from typing import Annotated, Any, get_origin, get_type_hints


def grouped(command: Callable) -> Callable:
    """The command as typer may see it: each parameter that is a dataclass is its fields instead."""
    signature = inspect.signature(command, eval_str=True)
    given = signature.parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in given if is_dataclass(p.annotation)}
    options: list[Parameter] = []
    for parameter in given:
        options += _options(groups[parameter.name]) if parameter.name in groups else [parameter]

    @functools.wraps(command)
    def spread(**values):
        for name, group in groups.items():
            values[name] = group(**{o.name: values.pop(o.name) for o in _options(group)})
        command(**values)

    # By keyword only: an option with a default may come before an argument without one.
    options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]
    spread.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    spread.__annotations__ = {option.name: option.annotation for option in options}
    return spread


def _options(group: type) -> list[Parameter]:
    """The fields that say how they are written on the command line; others keep their default."""
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(group)
        if get_origin(hints[f.name]) is Annotated
    ]
