"""Which rule a call with nested tensors finds."""
import pytest

import flambeau as torch
from flambeau import nested
from flambeau.nested import rules

PARTS = [torch.ones(2, 3), torch.zeros(1, 3)]


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_facts_are_those_of_the_elements(layout):
    x = nested.nested_tensor(PARTS, layout=layout)
    assert x.is_floating_point() and not x.is_complex() and x.element_size() == 4


def test_rules_of_programs_come_first(monkeypatch):
    x = nested.nested_tensor(PARTS, layout=torch.jagged)
    monkeypatch.setitem(rules.registered, "sin", lambda func, args, kwargs: (func, args, kwargs))
    func, args, kwargs = torch.sin(x)
    assert func is torch.sin and args[0] is x and kwargs == {}


def test_what_has_no_rule_is_refused():
    with pytest.raises(NotImplementedError, match=r"aten\.sort\.default"):
        nested.nested_tensor(PARTS, layout=torch.jagged).sort()
