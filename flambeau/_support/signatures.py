"""Signatures that are said in full where a function passes on whatever it is given."""
from __future__ import annotations

from inspect import Parameter, Signature, signature
from typing import Any

ANY_ARGUMENTS = Signature([Parameter("args", Parameter.VAR_POSITIONAL),
                           Parameter("kwargs", Parameter.VAR_KEYWORD)])


def extended(call: Any, *, without: tuple[str, ...] = (), renamed: dict[str, str] | None = None,
             defaults: dict[str, Any] | None = None, **more: Any) -> Signature:
    """The signature of `call`, less the parameters `without`, with other names and defaults, and
    with `more` behind.

    >>> from flambeau._support.signatures import extended
    >>> extended(lambda a, b=1, *, c: a, without=("b",), d=None)
    <Signature (a, d=None, *, c)>
    """
    names, values = renamed or {}, defaults or {}
    kept = [p.replace(name=names.get(p.name, p.name), default=values.get(p.name, p.default))
            for p in signature(call).parameters.values() if p.name not in without]
    kept += [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=value)
             for name, value in more.items()]
    return Signature(sorted(kept, key=lambda p: p.kind))


def refusing(signature: Signature, name: str) -> Any:
    """A function that takes what the signature says, and does nothing; Python refuses other calls
    of it, as calls of the function `name`."""
    stars: dict[Any, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
    written: list[str] = []
    for p in signature.parameters.values():
        if p.kind is Parameter.KEYWORD_ONLY and not any(w[0] == "*" for w in written):
            written.append("*")
        written.append(stars.get(p.kind, "") + p.name
                       + ("" if p.default is Parameter.empty else "=None"))
    function = eval(f"lambda {', '.join(written)}: None")
    function.__qualname__ = name
    return function


def signed(signature: Signature) -> Any:
    """A decorator: the function shows this signature."""
    def decorate(function: Any) -> Any:
        function.__signature__ = signature
        return function
    return decorate
