"""Schemas of ops, read from annotations."""
import typing
from collections.abc import Sequence

import pytest

import flambeau as torch
from flambeau import Tensor
from flambeau.library import infer_schema


def plain(x: Tensor, n: int, f: float, b: bool, s: str) -> Tensor: ...
def maybe(x: Tensor | None, y: typing.Optional[int] = None) -> Tensor: ...   # noqa: UP045
def lists(xs: list[Tensor], n: Sequence[int], f: typing.List[float]) -> list[Tensor]: ...  # noqa: UP006
def defaults(x: Tensor, n: int = 3, f: float = 1e-5, b: bool = True, s: str = "a",
             d: torch.dtype = torch.float32, e: torch.device = torch.device("cpu:0")) -> None: ...
def keywords(x: Tensor, *, n: int, f: float = 2.0) -> tuple[Tensor, Tensor]: ...
def numbers(x: Tensor, n: torch.types.Number, m: int | float | bool) -> int: ...
def none(): ...
none.__annotations__["return"] = None


@pytest.mark.parametrize(("function", "schema"), [
    (plain, "(Tensor x, SymInt n, float f, bool b, str s) -> Tensor"),
    (maybe, "(Tensor? x, SymInt? y=None) -> Tensor"),
    (lists, "(Tensor[] xs, SymInt[] n, float[] f) -> Tensor[]"),
    (defaults, '(Tensor x, SymInt n=3, float f=1e-05, bool b=True, str s="a", '
               'ScalarType d=float32, Device e="cpu:0") -> ()'),
    (keywords, "(Tensor x, *, SymInt n, float f=2.0) -> (Tensor, Tensor)"),
    (numbers, "(Tensor x, Scalar n, Scalar m) -> SymInt"),
    (none, "() -> ()"),
])
def test_schemas(function, schema):
    assert infer_schema(function, mutates_args=()) == schema
    assert infer_schema(function, mutates_args=(), op_name="ns::f") == f"ns::f{schema}"


def test_arguments_that_are_written_to():
    def f(x: Tensor, y: Tensor | None, zs: list[Tensor], n: int) -> None: ...
    assert infer_schema(f, mutates_args={"x"}) == \
        "(Tensor(a0!) x, Tensor? y, Tensor[] zs, SymInt n) -> ()"
    assert infer_schema(f, mutates_args=("y", "zs")) == \
        "(Tensor x, Tensor(a1!)? y, Tensor(a2!)[] zs, SymInt n) -> ()"
    assert infer_schema(plain, mutates_args="unknown") == \
        "(Tensor(a0!) x, SymInt n, float f, bool b, str s) -> Tensor"


def bad_tuple(x: tuple[int, int]) -> Tensor: ...
def bad_star(*x: Tensor) -> Tensor: ...
def bad_missing(x) -> Tensor: ...
def bad_type(x: dict) -> Tensor: ...
def bad_return(x: Tensor): ...
def bad_default(x: Tensor, n: list[int] = [1]) -> Tensor: ...
def bad_result(x: Tensor) -> dict: ...
def bad_optional(x: Tensor) -> Tensor | None: ...


@pytest.mark.parametrize(("function", "writes", "message"), [
    (bad_tuple, (), "We do not support Tuple inputs in schema"),
    (bad_star, (), "We do not support positional-only args, varargs, or varkwargs"),
    (bad_missing, (), "Parameter x must have a type annotation"),
    (bad_type, (), "Parameter x has unsupported type <class 'dict'>. The valid types are: "),
    (bad_return, (), "No return type annotation was provided. Please add one"),
    (bad_default, (), "Parameter n has an unsupported default value type <class 'list'>"),
    (bad_result, (), "Return has unsupported type <class 'dict'>. The valid types are: "),
    (bad_optional, (), "Return has unsupported type torch.Tensor | None"),
    (plain, {"n"}, "Parameter n is in mutable_args but only Tensors or collections of Tensors"),
    (plain, {"q"}, "{'q'} in mutates_args were not found in the custom op's signature"),
])
def test_what_is_refused(function, writes, message):
    with pytest.raises(ValueError, match=r"infer_schema\(func\): ") as error:
        infer_schema(function, mutates_args=writes)
    assert message in str(error.value)
