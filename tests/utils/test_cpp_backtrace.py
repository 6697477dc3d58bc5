"""The stack of C++ code is not kept."""
from flambeau.utils.cpp_backtrace import get_cpp_backtrace


def test_it_is_text():
    assert isinstance(get_cpp_backtrace(), str)
    assert get_cpp_backtrace(frames_to_skip=10, maximum_number_of_frames=0) == ""
