"""Which part of a model has which configuration."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao import quantization as Q

NAMES = ["", "object_type", "module_name_regex", "module_name", "module_name_object_type_order"]


def test_choices_can_be_chained_and_written_out():
    made = (Q.QConfigMapping().set_global(Q.default_qconfig).set_object_type(nn.Linear, None)
            .set_module_name("a", Q.default_qconfig).set_module_name_regex("b.*", None)
            .set_module_name_object_type_order("c", nn.Linear, 0, None))
    plain = made.to_dict()
    assert list(plain) == NAMES
    assert plain[""] is Q.default_qconfig and plain["object_type"] == [(nn.Linear, None)]
    assert plain["module_name_object_type_order"] == [("c", nn.Linear, 0, None)]
    assert Q.QConfigMapping.from_dict(plain).to_dict() == plain
    made.set_object_type(nn.Linear, Q.default_qconfig)          # the last word counts
    assert made.to_dict()["object_type"] == [(nn.Linear, Q.default_qconfig)]
    assert repr(Q.QConfigMapping()).startswith("QConfigMapping (\n global_qconfig\n  None")


@pytest.mark.parametrize("backend", ["fbgemm", "x86", "qnnpack", "onednn"])
def test_the_usual_choices(backend):
    mapping = Q.get_default_qconfig_mapping(backend)
    assert Q.qconfig_equals(mapping.global_qconfig, Q.get_default_qconfig(backend))
    kinds = mapping.object_type_qconfigs
    assert kinds["reshape"].activation is torch.ao.quantization.observer.ReuseInputObserver
    fixed = kinds[nn.Sigmoid].activation()
    assert (fixed.scale.item(), fixed.zero_point.item()) == (1 / 256, 0)


def test_what_is_refused():
    with pytest.raises(AssertionError, match="backend"):
        Q.get_default_qconfig("abacus")
