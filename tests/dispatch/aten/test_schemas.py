"""The recorded schemas of the dispatcher."""
import flambeau as torch
import flambeau.nn.functional as F
from flambeau.dispatch.aten.schemas import name_of, recorded, recorded_overload
from flambeau.schema.parser import parse


def test_every_line_is_a_schema():
    for name, overloads in recorded().items():
        for key, found in overloads.items():
            schema = parse(found.schema)
            assert (schema.name, schema.overload or "default") == (name, key)


def test_abbreviations_are_written_out():
    assert recorded_overload("zeros", "default").schema == (
        "zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor")
    assert recorded_overload("exp", "out").schema == "exp.out(Tensor self, *, Tensor(a!) out) -> " \
        "Tensor(a!)"
    assert recorded_overload("exp", "none") is None and recorded_overload("none", "none") is None


def test_facts():
    assert "pointwise" in recorded_overload("exp", "default").facts
    assert "nondeterministic_seeded" in recorded_overload("rand", "default").facts


def test_names_of_functions():
    assert [name_of(f) for f in (torch.add, torch.linalg.svd, F.logsigmoid, torch.relu_)] == [
        "add", "linalg_svd", "log_sigmoid", "relu_"]
    assert name_of(F.relu) is None and name_of(len) is None and name_of(3) is None
