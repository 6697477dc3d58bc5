"""No op of the table is without samples, and the examples of their documentation run.

The samples stand in the test files of the modules, which test them by `SampleTests`. Here the ops
that they run are noted: an op of the table that none reaches fails `test_no_op_is_untested`.
"""
from __future__ import annotations

import warnings

import pytest
import untested
from sample_tests import SampleTests, call_of, gradients, resolve
from samples import Samples, families

import flambeau
from flambeau.core import op as core_op
from flambeau.core.modes import Level
from flambeau.dispatch.declaration import op


class Noting(Level):
    """Notes which ops are called."""

    def __init__(self):
        super().__init__()
        self.reached = set()

    def __call__(self, called, args):
        self.reached.add(key_of(called.functional if called.inplace else called))
        return called.call(*args)


def key_of(called):
    if called.key:
        return called.key
    spaces = (called.namespace,) if isinstance(called.namespace, str) else called.namespace or ()
    return f"{spaces[0]}.{called.name}" if spaces and spaces[0] != "torch" else called.name


@pytest.mark.filterwarnings("ignore")
def test_no_op_is_untested():
    """Each op of the table has samples that reach it, or a reason."""
    found, noting = families(), Noting()
    for family in found.values():
        for name in family:
            for sample in family.calls(name):
                try:
                    with noting:            # the ops of reverse rules too, also of second order
                        results, inputs = call_of(name, sample)
                        results = [t for t in results if t.requires_grad]
                        first = gradients(results, inputs, create_graph=True) if results else ()
                        live = [g for g in first if g is not None and g.requires_grad]
                        if live:
                            gradients(live, inputs)
                except Exception:           # reported by the test of values
                    continue
            function = resolve(name)
            if hasattr(function, "op"):
                noting.reached.add(key_of(function.op))
            declared = core_op.table.get(name)          # a Python function may stand in front
            for each in (function, getattr(declared, "published", None)):   # of overloads that are
                twin = getattr(each, "twin", None)                      # made of other ops
                noting.reached |= {key_of(o.op) for o in getattr(twin, "overloads", ())
                                   if o.op.composite}
    reasons = untested.reasons() | {name for f in found.values() for name in f.untested}
    missing = sorted(set(core_op.table) - noting.reached - reasons)
    assert not missing, f"{len(missing)} ops without samples: {', '.join(missing)}"


@pytest.mark.parametrize("facts", [{}, {"differentiable": False}, {"d_self": lambda grad: grad}])
def test_an_op_without_a_derivative_has_to_say_so(facts):
    family = Samples()
    family.own = ("undescribed",)
    family.unary("undescribed")
    tests = type("TestSamples", (SampleTests,), {"family": family})()
    op("undescribed(Tensor self) -> Tensor", kernel=lambda x: x.copy(), **facts)
    try:
        if facts:
            tests.test_a_derivative_is_declared("undescribed")
        else:
            with pytest.raises(AssertionError, match="undescribed, call 0: the results do not "
                                                     "require grad; declare a derivative, or "):
                tests.test_a_derivative_is_declared("undescribed")
    finally:
        del core_op.table["undescribed"], core_op.public["torch"]["undescribed"]
        del flambeau.Tensor.undescribed
        vars(flambeau).pop("undescribed", None)         # remembered since it was looked up


def examples():
    seen = {}
    for each in core_op.table.values():
        if each.doc and ">>>" in each.doc:
            seen[each.name] = each.doc
    return sorted(seen.items())


@pytest.mark.parametrize("name,doc", examples(), ids=[n for n, _ in examples()])
def test_examples(name, doc):
    """The examples in the documentation of ops."""
    import doctest
    test = doctest.DocTestParser().get_doctest(doc, {"flambeau": flambeau}, name, None, 0)
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False)
    report = []
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_warnings_do_not_leak():
    """Where NumPy would warn, ops keep silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zero = flambeau.tensor([0.0, -1.0])
        flambeau.log(zero), zero / 0, flambeau.pow(zero, -1), flambeau.sqrt(zero)


