"""One signature, its canonical arguments, and the quick binding of calls that fit plainly."""
import flambeau as torch


def twin_of(function):
    return getattr(function, "twin", function)


def test_instances_of_subclasses_are_bound_at_once():
    """Also of those that are defined after the function was first called."""
    twin = twin_of(torch.add)
    quick, *_ = twin.quick[0]
    one = torch.ones(2)
    assert quick((one, one), {}) is not None

    class Own(torch.Tensor):
        pass
    own = one.as_subclass(Own)
    assert quick((own, 2.0), {})[:2] == [own, 2.0] and quick((own, own), {})[1] is own
    assert quick((own, "2"), {}) is None


def test_overloads_that_cannot_take_as_many_arguments_are_not_tried():
    """Python's binding of a call that can't fit costs an exception."""
    twin = twin_of(torch.add)
    two = [takes for _, takes, _ in twin.quick if 2 in takes]
    assert two and all(1 not in takes for _, takes, _ in twin.quick)
    reduced = twin_of(torch.sparse.mm).quick
    assert sorted(min(takes) for _, takes, _ in reduced) == [2, 3]


def test_arguments_that_need_no_canonical_form_are_passed_on_as_they_are():
    short, whole = twin_of(torch.sparse.mm).overloads
    values = [object(), object(), "sum"]
    assert whole.unchanged and whole.canonical(values) == tuple(values)
    assert not short.unchanged and short.canonical(values[:2]) == (*values[:2], None)
    assert not twin_of(torch.cumsum).overloads[0].unchanged        # a dimension counts from the end
