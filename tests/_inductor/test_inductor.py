"""What programs ask of the compiler, which is not there."""
import pytest

from flambeau import _inductor


def test_what_modes_set():
    modes = _inductor.list_mode_options()
    assert {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"} <= set(
        modes)
    assert modes["default"] == {} and modes["reduce-overhead"] == {"triton.cudagraphs": True}
    assert _inductor.list_mode_options("max-autotune") == modes["max-autotune"]
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast, should be one of: default"):
        _inductor.list_mode_options("fast")


def test_names_of_switches():
    names = _inductor.list_options()
    assert {"max_autotune", "epilogue_fusion", "triton.cudagraphs"} <= set(names)
    assert len(set(names)) == len(names)
    assert _inductor.cudagraph_mark_step_begin() is None


@pytest.mark.skipif(not hasattr(_inductor, "COMPILER"), reason="PyTorch has a compiler")
@pytest.mark.parametrize("name", ["compile", "aot_compile", "standalone_compile",
                                  "aoti_compile_and_package", "aoti_load_package"])
def test_what_would_compile_says_that_it_cannot(name):
    with pytest.raises(NotImplementedError, match=rf"torch._inductor.{name}: there is no compiler"):
        getattr(_inductor, name)(None, [])
