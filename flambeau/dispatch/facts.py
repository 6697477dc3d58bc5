"""What declarations state: records of facts, how an op is shown, and the words of facts.

Many facts of a declaration are words out of a set, or names of what its own schemas have. One that
is misspelled would say nothing, and nobody would notice: an op of the kind "liner" has no tangents,
and `dims="dmi"` leaves a negative dimension to the kernel. So they are looked up when the statement
is made, in the text of the schemas, which are not parsed for it.

>>> check_words({"texts": ("scan(Tensor self, int dim) -> Tensor",), "kind": "liner"})
Traceback (most recent call last):
ValueError: scan: kind='liner' is none of 'general', 'linear', 'multilinear', 'creation'
>>> check_words({"texts": ("scan(Tensor self, int dim) -> Tensor",), "dims": "dmi"})
Traceback (most recent call last):
ValueError: scan: dims='dmi' names no parameter of its schemas, which have 'self', 'dim'
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from flambeau.kernels.refused import CHARACTERS
from flambeau.schema.parser import check_types


class Record:
    """Many facts by name, of which an instance states few.

    A class annotates the names of its facts, and says with each what holds where an instance does
    not say it. A dataclass of sixty fields would do, too; but it compiles a constructor, which
    sets all of them in each instance, and hundreds are made while flambeau is imported.

    >>> class Animal(Record):
    ...     legs: int = 4
    ...     sound: str = ""
    >>> dog = Animal(sound="woof")
    >>> dog.legs, dog.sound, dog.given()
    (4, 'woof', {'sound': 'woof'})
    """

    _names: frozenset[str] = frozenset()

    def __init_subclass__(cls) -> None:
        cls._names = cls._names.union(vars(cls).get("__annotations__", ()))

    def __init__(self, **facts: Any) -> None:
        if not facts.keys() <= self._names:
            unknown = next(name for name in facts if name not in self._names)
            raise TypeError(f"{type(self).__name__} has no fact '{unknown}'")
        self.__dict__.update(facts)

    def given(self) -> dict[str, Any]:
        """The facts that this instance states, those that were set later included."""
        return {name: fact for name, fact in vars(self).items() if name in self._names}


class AtenForm(NamedTuple):
    """How modes and subclasses that look below autograd see an op, where that is not its own
    schema: as another overload of PyTorch's.

    schema      that overload's
    arguments   a formula of the op's own arguments, which gives those of the overload, or None
                where it is not that; nothing, if they have the same names
    run         what computes the overload, if not the public function of that name
    grads       the gradients of its tensors by PyTorch's ops: a formula of `grad`, `needs`,
                arguments by the schema's names, `result`
    """
    schema: str
    arguments: Any = None
    run: Any = None
    grads: Any = None


# ---- words ---------------------------------------------------------------------------------------

_FROM = re.compile(r"_from\d+$")
_NAMES = re.compile(r"(\w+)(?:=[^,]*)?[,)]")     # of the parameters in the text of a schema


def one_of(*choices: str) -> Callable[..., None]:
    """The check of a fact that, if it is a word, is one of these."""
    def check(fact: str, said: Any, texts: tuple[str, ...]) -> None:
        if isinstance(said, str) and said not in choices:
            raise _fact_error(texts, fact, said, "is none of", choices)
    return check


def some_of(*choices: str) -> Callable[..., None]:
    """… that is some words of these."""
    def check(fact: str, said: str, texts: tuple[str, ...]) -> None:
        if not set(said.split()).issubset(choices):
            raise _fact_error(texts, fact, said, "has words that are none of", choices)
    return check


def _check_parameters(fact: str, said: str, texts: tuple[str, ...]) -> None:
    """… that names parameters; of a list of tensors, "tensors_from1" are all but the first."""
    for name in said.split():
        if not _is_parameter(_FROM.sub("", name), texts):
            raise _names_none(texts, fact, said)


def _is_parameter(name: str, texts: tuple[str, ...]) -> bool:
    return any(f" {name}{end}" in text for text in texts for end in ",)=")


def _names_none(texts: tuple[str, ...], fact: str, said: str) -> ValueError:
    known = [name for text in texts for name in _NAMES.findall(text.partition("(")[2]
                                                               .rpartition("->")[0])]
    return _fact_error(texts, fact, said, "names no parameter of its schemas, which have",
                       dict.fromkeys(known))


def _check_rules(fact: str, rules: dict[str, Any], texts: tuple[str, ...]) -> None:
    """… that has gradients of tensors, by name; of a pointwise op, `d` is that of the only one."""
    for name in rules:
        if name != "d" and not _is_parameter(name, texts):
            raise _names_none(texts, f"d_{name}", "…")


def _check_overloads(fact: str, said: Any, texts: tuple[str, ...]) -> None:
    """… that names overloads, or is true or false of all."""
    if isinstance(said, str):
        known = {text.partition("(")[0].partition(".")[2]: None for text in texts}
        if not set(said.split(" ")).issubset(known):
            raise _fact_error(texts, fact, said, "names overloads that are none of", known)


def _check_refused(fact: str, said: Any, texts: tuple[str, ...]) -> None:
    """… that is a name, and letters for kinds of dtypes."""
    if said and not set(said[1]).issubset(CHARACTERS):
        raise _fact_error(texts, fact, said[1], "has letters that are none of", CHARACTERS)


def _check_spellings(fact: str, said: str, texts: tuple[str, ...]) -> None:
    """… that says whose value other parameters are: "unbiased=correction"."""
    for pair in said.split():
        if not _is_parameter(pair.partition("=")[2], texts):
            raise _names_none(texts, fact, said)


_CHECKS: dict[str, Callable[..., None]] = {
    "kind": one_of("general", "linear", "multilinear", "creation"),
    "shape": one_of("self"),
    "out_first": one_of("bool"),
    "overlap": some_of("index", "element", "anywhere", "fill", "whole"),
    "autocast": one_of("", "lower", "full", "widest", "untouched", "opened"),
    "out": _check_overloads, "hidden": _check_overloads, "refuses": _check_refused,
    "parameter_names": _check_spellings, "rules": _check_rules,
    "type": one_of("default", "floating", "value", "whole"),    # of a factory
    **dict.fromkeys(("dims", "new_dims", "all_dims", "some_dims", "sizes", "unused", "order",
                     "nondiff", "conditions"), _check_parameters)}
_CHECKED = _CHECKS.keys()
_SCHEMAS = ("texts", "same_as", "aliases", "deprecated")


def check_words(facts: dict[str, Any]) -> None:
    """Raise for facts of a declaration that say what nothing can mean."""
    texts = facts["texts"]
    for fact in _SCHEMAS:
        for text in facts.get(fact, ()):
            check_types(text)
    for fact in facts.keys() & _CHECKED:
        of_others = fact in ("out", "hidden")       # they may be overloads of aliases
        _CHECKS[fact](fact, facts[fact], texts if not of_others else
                      (*texts, *facts.get("aliases", ()), *facts.get("same_as", ())))


def _fact_error(texts: tuple[str, ...], fact: str, said: Any, what: str, choices: Iterable[Any]
                ) -> ValueError:
    return ValueError(f"{texts[0].partition('(')[0]}: {fact}={said!r} {what} "
                      + ", ".join([repr(choice) for choice in choices]))
