"""Misspelled words of declarations are errors where the declaration is made."""
import pytest

import flambeau
from flambeau.core.op import public, table
from flambeau.dispatch.declaration import op
from flambeau.dispatch.factory import factory
from flambeau.dispatch.pointwise import pointwise

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
    assert "misspelled" not in table and not hasattr(flambeau.Tensor, "misspelled")


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
        assert made(flambeau.ones(2), -1).tolist() == [1, 1]
    finally:
        del table["misspelled"], public["torch"]["misspelled"]
        del flambeau.Tensor.misspelled
