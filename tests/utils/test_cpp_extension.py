"""Extensions in C++ are refused."""

import pytest

from flambeau.utils import cpp_extension


def test_extensions_in_cpp_are_refused(tmp_path):
    for call in (lambda: cpp_extension.load("x", []), lambda: cpp_extension.CppExtension("x", []),
                 cpp_extension.BuildExtension, cpp_extension.include_paths):
        with pytest.raises(NotImplementedError, match="flambeau has none of PyTorch's C"):
            call()
    with pytest.raises(OSError, match="CUDA_HOME environment variable is not set"):
        cpp_extension.CUDAExtension("x", ["x.cu"])
    assert cpp_extension.CUDA_HOME is None
    assert not cpp_extension.check_compiler_ok_for_platform("no-such-compiler")
