"""Marks, names and annotations, as TorchScript reads them."""

import warnings

import pytest

import flambeau as torch
from flambeau import _jit_internal as J


def identity(x):
    return x


def test_marks():
    ignored, unused, exported = (mark(lambda x: x) for mark in (
        torch.jit.ignore, torch.jit.unused, torch.jit.export))
    assert [J.is_ignored_fn(f) for f in (identity, ignored, unused, exported)] == [
        False, True, True, False]
    assert [J.should_drop(f) for f in (identity, ignored, unused, exported)] == [
        False, False, True, False]
    assert J.get_torchscript_modifier(exported) == J.FunctionModifiers.EXPORT
    assert J._is_drop_fn(torch.jit._drop(lambda: 0))
    with pytest.warns(FutureWarning, match="deprecated"):
        assert J.should_drop(torch.jit.ignore(drop=True)(lambda x: x))
    with pytest.raises(RuntimeError, match="must be a bool or a function"):
        torch.jit.ignore("no")


def test_properties_can_be_unused():
    class Layer:
        @property
        def size(self):
            return 1
    marked = torch.jit.unused(Layer.size)
    assert J.should_drop(marked.fget)


def test_boolean_dispatch():
    def with_flag(x, flag=False):
        """Both."""
        return "with"

    def without(x, flag=False):
        return "without"
    choose = J.boolean_dispatch("flag", 1, False, with_flag, without, "module", "choose")
    assert (choose(1), choose(1, True), choose(1, flag=True)) == ("without", "with", "with")
    assert (choose.__name__, choose.__module__, choose.__doc__) == ("choose", "module", "Both.")
    assert J.boolean_dispatched[choose]["if_true"] is with_flag
    assert J._try_get_dispatched_fn(choose)["arg_name"] == "flag"
    without.__doc__ = "One too many."
    with pytest.raises(RuntimeError, match="only one function can have a docstring"):
        J.boolean_dispatch("flag", 1, False, with_flag, without, "module", "choose")


def test_names():
    assert J._qualified_name(torch.nn.Linear) == "__torch__.torch.nn.modules.linear.Linear"
    assert J._qualified_name(lambda: 0).endswith("._lambda")
    outside = 5
    look_up = J.createResolutionCallbackFromClosure(lambda: outside)
    assert (look_up("outside"), look_up("int"), look_up("nothing")) == (5, int, None)
    assert J.createResolutionCallbackFromFrame()("outside") == 5
    assert J.get_callable_argument_names(identity) == ["x"]
    assert J.get_callable_argument_names(lambda *a: 0) == []
    assert J.can_compile_class(TestClass) and not J.can_compile_class(ValueError)


class TestClass:
    __test__ = False

    def method(self):
        pass


def test_overloads_are_kept():
    @torch.jit._overload
    def first(x: int) -> int: ...
    name = J._qualified_name(first)
    assert J._get_fn_overloads(name) == [first]
    J._clear_fn_overloads(name)
    assert J._get_fn_overloads(name) is None


def test_tensors_are_found_anywhere():
    a, b = torch.ones(1), torch.zeros(2)
    assert J._extract_tensors({"a": [a], "b": (3, b)}) == [a, b]


def test_functions_that_are_ops():
    from flambeau.jit._builtins import _find_builtin, _register_builtin
    F = torch.nn.functional
    assert [_find_builtin(f) for f in (torch.add, F.linear, F.conv2d, torch.linalg.det,
                                       torch.special.bessel_j0, torch.fft.fft)] == [
        "aten::add", "aten::linear", "aten::conv2d", "aten::linalg_det",
        "aten::special_bessel_j0", "aten::fft_fft"]
    assert [_find_builtin(f) for f in (torch.stft, F.softmax, int, identity)] == [None] * 4
    _register_builtin(identity, "aten::identity")
    assert _find_builtin(identity) == "aten::identity"


def test_switches_are_remembered():
    C = torch._C
    assert C._jit_set_profiling_executor(False) is True
    assert C._jit_set_profiling_executor(True) is False
    C._jit_override_can_fuse_on_cpu(False)
    assert C._jit_can_fuse_on_cpu() is False
    C._jit_override_can_fuse_on_cpu(True)
    with torch.jit.fuser("fuser2"):
        assert not C._jit_can_fuse_on_cpu()
    assert C._jit_can_fuse_on_cpu()
    with pytest.raises(Exception, match="unrecognized fuser option"), torch.jit.fuser("no"):
        pass
    with pytest.raises(ValueError, match="FusionBehavior only supported"):
        torch.jit.set_fusion_strategy([("SOMETIMES", 2)])
    with pytest.warns(UserWarning, match="nvfuser is no longer supported"):
        C._jit_set_nvfuser_enabled(True)


def test_script_can_be_switched_off():
    from flambeau.jit import _state
    _state.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert torch.jit.script(identity) is identity
            assert torch.jit.trace(identity, torch.ones(1)) is identity
    finally:
        _state.enable()
    assert bool(_state._enabled)
