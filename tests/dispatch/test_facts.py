"""Records of facts; ops that modes below autograd see as another overload than their own schema;
misspelled words of declarations, which are errors where the declaration is made."""
import pytest

import flambeau as torch
from flambeau.core.op import public, table
from flambeau.dispatch.declaration import op
from flambeau.dispatch.factory import factory
from flambeau.dispatch.facts import Record
from flambeau.dispatch.pointwise import pointwise
from flambeau.ops import load
from flambeau.schema.parser import parse
from flambeau.utils._python_dispatch import TorchDispatchMode

SCHEMA = "misspelled(Tensor self, int dim, Tensor? weight=None) -> Tensor"


def declare(**facts):
    return op(SCHEMA, kernel=lambda *arguments: arguments[0], **facts)


@pytest.mark.parametrize("facts, said", [
    ({"kind": "liner"}, "kind='liner' is none of 'general', 'linear', 'multilinear', 'creation'"),
    ({"dims": "dmi"}, "dims='dmi' names no parameter of its schemas, which have 'self', 'dim', "
                      "'weight'"),
    ({"dims": "dim weigth"}, "dims='dim weigth' names no parameter"),
    ({"new_dims": "dm"}, "new_dims='dm' names no parameter"),
    ({"some_dims": "dm"}, "some_dims='dm' names no parameter"),
    ({"all_dims": "dm"}, "all_dims='dm' names no parameter"),
    ({"sizes": "dm"}, "sizes='dm' names no parameter"),
    ({"unused": "dm"}, "unused='dm' names no parameter"),
    ({"order": "dm"}, "order='dm' names no parameter"),
    ({"nondiff": "wight"}, "nondiff='wight' names no parameter"),
    ({"parameter_names": "a=dm"}, "parameter_names='a=dm' names no parameter"),
    ({"d_slef": lambda grad: grad}, "d_slef='…' names no parameter"),
    ({"shape": "sefl"}, "shape='sefl' is none of 'self'"),
    ({"overlap": "index anywere"}, "overlap='index anywere' has words that are none of 'index', "
                                   "'element', 'anywhere', 'fill'"),
    ({"autocast": "fulll"}, "autocast='fulll' is none of '', 'lower', 'full', 'widest', "
                            "'untouched', 'opened'"),
    ({"out_first": "boll"}, "out_first='boll' is none of 'bool'"),
    ({"out": "dim"}, "out='dim' names overloads that are none of ''"),
    ({"hidden": "dim"}, "hidden='dim' names overloads that are none of ''"),
    ({"refuses": ("misspelled_cpu", "bq")}, "refuses='bq' has letters that are none of 'b', 'B'"),
])
def test_words_are_looked_up(facts, said):
    with pytest.raises(ValueError) as caught:
        declare(**facts)
    assert str(caught.value).startswith(f"misspelled: {said}")
    assert "misspelled" not in table and not hasattr(torch.Tensor, "misspelled")


def test_pointwise_ops():
    with pytest.raises(ValueError, match="misspelled: d_othr='…' names no parameter of its "
                                         "schemas, which have 'self', 'other'"):
        pointwise("misspelled(Tensor self, Tensor other)", kernel=lambda x, y: x, d_othr=1)
    with pytest.raises(ValueError, match="conditions='mask' names no parameter"):
        pointwise("misspelled(Tensor self, Tensor other)", kernel=lambda x, y: x, conditions="mask")


def test_factories():
    with pytest.raises(ValueError, match="misspelled: type='hole' is none of 'default', "
                                         "'floating', 'value', 'whole'"):
        factory("misspelled(SymInt[] size) -> Tensor", kernel=None, type="hole")


def test_words_that_are_right():
    made = declare(kind="general", dims="dim", overlap="index anywhere", shape=lambda x, *_: x,
                   nondiff="weight", d_self=lambda grad: grad, refuses=("misspelled_cpu", "bc"))
    try:
        assert made(torch.ones(2), -1).tolist() == [1, 1]
    finally:
        del table["misspelled"], public["torch"]["misspelled"]
        del torch.Tensor.misspelled


class Shape(Record):
    corners: int = 0
    name: str = ""


class Solid(Shape):
    faces: int = 0
    name: str = "solid"

    def describe(self):
        return f"{self.name} of {self.faces} faces"


def test_facts_that_are_not_given_are_those_of_the_class():
    cube = Solid(faces=6, corners=8)
    assert (cube.corners, cube.faces, cube.name) == (8, 6, "solid")
    assert cube.describe() == "solid of 6 faces"
    assert Shape().name == ""


def test_what_is_given_is_told_apart():
    cube = Solid(faces=6)
    cube.name = "cube"
    cube.note = "no fact"
    assert cube.given() == {"faces": 6, "name": "cube"}


@pytest.mark.parametrize("name", ["faces", "describe"])
def test_other_facts_are_errors(name):
    with pytest.raises(TypeError, match=f"^Shape has no fact '{name}'$"):
        Shape(corners=3, **{name: 1})


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_schemas_are_overloads_of_pytorch():
    load()
    for one in table.values():
        if one.declaration is not None:
            for shown in one.declaration.aten:
                schema = parse(shown.schema)
                packet = getattr(torch.ops.aten, schema.name)
                assert schema.overload in ("", *packet.overloads()), shown.schema


@pytest.mark.parametrize("call, names", [
    (lambda x: x[1], ["aten.select.int"]),
    (lambda x: x[:, 1:2], ["aten.slice.Tensor"]),
    (lambda x: x[None], ["aten.unsqueeze.default"]),
    (lambda x: x.sigmoid(), ["aten.sigmoid.default"]),
    (lambda x: x.T, ["aten.permute.default"]),
])
def test_what_modes_see(call, names):
    x = torch.arange(6.0).view(2, 3)
    with Seen() as mode:
        found = call(x)
    assert mode.names == names and torch.equal(found, call(x))
