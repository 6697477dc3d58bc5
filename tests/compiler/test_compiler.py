"""What torch.compile says: the program runs as it stands."""
import numpy as np
import pytest

import flambeau as torch
from flambeau import compiler


def test_functions():
    def f(x, *, scale=2):
        """doc"""
        return x * scale

    x = torch.arange(3.0, requires_grad=True)
    for compiled in (torch.compile(f), torch.compile(fullgraph=True, dynamic=True)(f),
                     torch.compile(f, backend="eager", mode="max-autotune"), compiler.compile(f),
                     torch.compile(f, disable=True)):
        assert compiled.__name__ == "f" and compiled.__doc__ == "doc"
        y = compiled(x, scale=3)
        assert torch.equal(y, f(x, scale=3))
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == [3, 3, 3]

    class Holder:
        @torch.compile
        def method(self, x):
            return x + 1
    assert Holder().method(1) == 2


@pytest.mark.parametrize("call, error, text", [
    (lambda: torch.compile(3), AssertionError, "callable function"),
    (lambda: torch.compile(torch.sin, backend="nope"), RuntimeError, "Invalid backend: 'nope'"),
    (lambda: torch.compile(torch.sin, backend=lambda g, x: g), NotImplementedError, "backend"),
    (lambda: torch.compile(torch.sin, mode="xyz"), RuntimeError, "Unrecognized mode=xyz"),
    (lambda: torch.compile(torch.sin, mode="default", options={}), RuntimeError, "Either mode"),
    (lambda: compiler.set_stance("xyz"), RuntimeError, "stance"),
    (lambda: compiler.set_default_backend("xyz"), RuntimeError, "Invalid backend")])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_parts_of_programs():
    def f(x):
        return x + 1
    for mark in (compiler.disable, compiler.disable(), compiler.allow_in_graph,
                 compiler.assume_constant_result, compiler.nested_compile_region,
                 compiler.substitute_in_graph(max)):
        assert mark(f) is f
    assert compiler.wrap_numpy(np.cumsum)(torch.ones(2)).tolist() == [1, 2]
    assert not (compiler.is_compiling() or compiler.is_dynamo_compiling()
                or compiler.is_exporting())
    compiler.reset()
    compiler.cudagraph_mark_step_begin()
    assert compiler.save_cache_artifacts() is None and compiler.load_cache_artifacts(b"") is None


def test_choices():
    assert compiler.list_backends() == ["inductor"] and "eager" in compiler.list_backends(None)
    compiler.set_default_backend("eager")
    assert compiler.get_default_backend() == "eager"
    compiler.set_default_backend(None)
    assert compiler.get_default_backend() == "inductor"
    before = compiler._chosen["stance"]
    with compiler.set_stance("force_eager"):
        assert compiler._chosen["stance"] == "force_eager"
    assert compiler._chosen["stance"] == before

    @compiler.set_stance("fail_on_recompile")
    def stance():
        return compiler._chosen["stance"]
    assert stance() == "fail_on_recompile" and compiler._chosen["stance"] == before
    assert compiler.set_enable_guard_collectives(True) is False
    assert compiler.set_enable_guard_collectives(False) is True
    assert compiler.skip_all_guards_unsafe([1, 2]) == [False, False]
