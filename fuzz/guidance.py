"""Tell atheris which Python functions guide it.

Its own hook on imports finds nothing where a package is installed to be edited, so functions are
instrumented one by one, after the import.  The compiled core guides nobody: see README.md.
"""

import inspect


def instrument(*things) -> None:
    """These functions, and every function and method that these modules define."""
    import atheris

    for thing in things:
        for function in _functions(thing):
            atheris.instrument_func(function)


def _functions(thing) -> list:
    if inspect.isfunction(thing):
        return [thing]
    own = [v for v in vars(thing).values() if getattr(v, "__module__", "") == thing.__name__]
    members = [m for v in own for m in (vars(v).values() if inspect.isclass(v) else [v])]
    return [f for m in members if inspect.isfunction(f := getattr(m, "__wrapped__", m))]
