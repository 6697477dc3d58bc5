"""Switches of the compiler: they can be read, set, and put back."""
import pytest

from flambeau._inductor import config


@pytest.mark.parametrize("name, value", [
    ("debug", False), ("epilogue_fusion", True), ("max_autotune", False),
    ("fallback_random", False), ("size_asserts", True), ("triton.cudagraphs", False),
    ("triton.unique_kernel_names", True),
    ("cpp.threads", -1), ("cpp.simdlen", None), ("max_autotune_gemm_backends", "ATEN,TRITON,CPP"),
    ("coordinate_descent_search_radius", 1), ("realize_opcount_threshold", None),
    ("realize_reads_threshold", 4), ("aot_inductor.output_path", ""), ("shape_padding", True),
    ("group_fusion", False), ("batch_fusion", True), ("trace.enabled", False)])
def test_defaults(name, value):
    found = config
    for part in name.split("."):
        found = getattr(found, part)
    assert found == value and config.get_config_copy()[name] == value


def test_a_switch_for_a_while():
    with config.patch(max_autotune=True):
        assert config.max_autotune
        with config.patch({"triton.cudagraphs": True}):
            assert config.triton.cudagraphs
        assert not config.triton.cudagraphs
    assert not config.max_autotune


def test_unknown_switches():
    with pytest.raises(AttributeError, match="no_such_switch"):
        config.no_such_switch
    with pytest.raises(AttributeError, match="no_such_switch"):
        config.no_such_switch = 1


def test_saved_and_loaded():
    saved = config.save_config()
    config.debug = True
    config.load_config(saved)
    assert config.debug is False
