"""The algebra of layouts: values from PyTorch, and what defines them."""
import json
from pathlib import Path

import pytest

from flambeau.distributed import _pycute as p

from .layout_cases import results

L = p.Layout


def test_values():
    recorded = json.loads((Path(__file__).parents[2] / "data/pycute.json").read_text())
    assert results(p) == recorded


@pytest.mark.parametrize("layout", [L((2, 4), (4, 1)), L((4, 2), (1, 8)), L((3, (2, 2)))])
def test_definitions(layout):
    count = p.size(layout)
    flat = p.coalesce(layout)
    assert [flat(i) for i in range(count)] == [layout(i) for i in range(count)]
    back = p.left_inverse(layout)
    assert [back(layout(i)) for i in range(count)] == list(range(count))
    right = p.right_inverse(layout)
    assert [layout(right(i)) for i in range(p.size(right))] == list(range(p.size(right)))
    both = p.make_layout(layout, p.complement(layout, 24))
    assert sorted(both(i) for i in range(p.size(both))) == list(range(p.size(both)))
    taken = p.composition(L(24), layout)
    assert [taken(i) for i in range(count)] == [layout(i) for i in range(count)]


def test_parts():
    one = L(6, 2)
    assert len(one) == 1 and one[0] is one and {one: 1}[L(6, 2)] == 1
    with pytest.raises(IndexError):
        one[1]
    assert isinstance(3, p.Integer) and not isinstance("a", p.Integer)
    assert str(L((2, (3, 4)))) == "(2, (3, 4)):(12, (4, 1))"
