"""Hooks that PyTorch leaves to its maker's own builds."""
import os

import pytest

from flambeau import _utils_internal as internal


def test_paths(tmp_path):
    inside = internal.get_file_path("a", "b.txt")
    assert inside == os.path.join(internal.torch_parent, "a", "b.txt")
    assert internal.get_file_path_2(str(tmp_path), "c") == str(tmp_path / "c")
    assert internal.get_writable_path(str(tmp_path)) == str(tmp_path)
    other = internal.get_writable_path(str(tmp_path / "missing"))
    assert os.path.isdir(other) and other.endswith("missing")
    os.rmdir(other)


def test_libraries_are_found_through_links(tmp_path):
    (tmp_path / "lib.so").touch()
    (tmp_path / "link.so").symlink_to("lib.so")
    found = internal.resolve_library_path(str(tmp_path / "link.so"))
    assert found == os.path.realpath(tmp_path / "lib.so")


def test_there_is_no_service_to_ask():
    assert internal.justknobs_check("any") is True
    assert internal.justknobs_check("any", default=False) is False
    assert internal.justknobs_getval_int("any") == 0
    assert internal.is_fb_unit_test() is False
    assert internal.signpost_event("category", "name", {}) is None


def test_a_missing_fake_implementation_names_the_module_that_has_it():
    with pytest.raises(NotImplementedError, match=r"my::op: We could not find the fake impl for "
                       r"this operator\. .*'no_such_module' Python module to load the fake impl\. "
                       r"Context\."):
        internal.throw_abstract_impl_not_imported_error("my::op", "no_such_module", "Context.")


def test_decorators_keep_what_a_function_gives():
    assert internal.compile_time_strobelight_meta("phase")(lambda x: x + 1)(2) == 3
