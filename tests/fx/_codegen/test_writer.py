"""The steps of a graph as lines of Python."""
import enum
import typing as t
from collections import namedtuple

import pytest

import flambeau as torch
from flambeau import fx

Pair = namedtuple("Pair", "a b")


class Kind(enum.Enum):
    ONE = 1


def code_of(value):
    graph = fx.Graph()
    graph.output(value)
    return fx.GraphModule(torch.nn.Module(), graph).code.strip().splitlines()[-1].strip()


@pytest.mark.parametrize(("value", "shown"), [
    ((), "()"), ((1,), "(1,)"), ([1, (2.5, None)], "[1, (2.5, None)]"),
    ({"a": [True]}, "{'a': [True]}"), (slice(1, None, 2), "slice(1, None, 2)"),
    (float("inf"), "inf"), (1 + 2j, "(1+2j)"), ("it's", '"it\'s"'), (..., "Ellipsis"),
    (torch.float32, "torch.float32"), (torch.device("cpu"), "device(type='cpu')"),
    (torch.strided, "torch.strided"), (torch.channels_last, "torch.channels_last"),
    (torch.ops.aten.add.Tensor, "torch.ops.aten.add.Tensor"),
])
def test_constants(value, shown):
    assert code_of(value) == f"return {shown}"


def test_classes_of_the_program_are_named_by_their_modules():
    name = __name__.replace(".", "_")
    assert code_of(Pair(1, [2])) == f"return {name}_Pair(1, [2])"
    assert code_of(Kind.ONE).endswith("Kind.ONE")


@pytest.mark.parametrize(("annotation", "shown"), [
    (int, "int"), (torch.Tensor, "torch.Tensor"),
    (t.List[int], "typing_List[int]"),                                            # noqa: UP006
    (t.Dict[str, torch.Tensor], "typing_Dict[str,torch.Tensor]"),                 # noqa: UP006
    (t.Union[t.List[int], None], "typing_Union[typing_List[int],NoneType]"),      # noqa: UP006, UP007
])
def test_annotations(annotation, shown):
    graph = fx.Graph()
    graph.output(graph.placeholder("x", annotation))
    module = fx.GraphModule(torch.nn.Module(), graph)
    assert f"def forward(self, x : {shown}):" in module.code
    assert module(3) == 3


def test_the_result_has_its_type():
    def program(x: torch.Tensor) -> t.Tuple[torch.Tensor, int]:              # noqa: UP006
        return x, 1
    traced = fx.symbolic_trace(program)
    assert "(self, x : torch.Tensor) -> typing_Tuple[torch.Tensor,int]:" in traced.code
    assert str(traced.graph).startswith("graph():\n    %x : torch.Tensor [num_users=1]")


def test_values_are_dropped_after_their_last_use():
    def program(x):
        y = x.sin()
        y.cos()
        return y + x
    assert fx.symbolic_trace(program).code.strip().splitlines()[1:] == [
        "    sin = x.sin()", "    cos = sin.cos();  cos = None",
        "    add = sin + x;  sin = x = None", "    return add"]
