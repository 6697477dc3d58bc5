"""Names that only GPUs give a meaning: what the CPU answers."""
import pytest

import flambeau as torch


def test_semi_structured_matrices_need_a_gpu():
    message = "Error original_tensor.device= cpu is not supported! Only CUDA tensors"
    for call in (torch.sparse.to_sparse_semi_structured,
                 torch.sparse.SparseSemiStructuredTensorCUTLASS.from_dense,
                 torch.sparse.SparseSemiStructuredTensorCUSPARSELT.from_dense):
        with pytest.raises(RuntimeError, match=message):
            call(torch.ones(32, 64))
    with pytest.raises(TypeError, match="missing 6 required positional arguments"):
        torch.sparse.SparseSemiStructuredTensor()


def test_methods_that_the_cpu_does_not_have():
    with pytest.raises(NotImplementedError, match="Could not run 'aten::to_padded_tensor' with "
                                                  "arguments from the 'CPU' backend"):
        torch.ones(2).to_padded_tensor(0.0)
    with pytest.raises(RuntimeError, match="unknown parameter type"):       # no stream at all
        torch.ones(2).record_stream(0.0)


def test_nested_tensors_are_padded():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert nested.to_padded_tensor(0.0, (3, 4)).tolist() == [
        [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]]


def test_portable_guards():
    class Guard:
        def __init__(self, kind):
            self.guard_type = kind

    kinds = ("TENSOR_MATCH", "SHAPE_ENV", "GLOBAL_STATE", "GRAD_MODE", "ID_MATCH")
    assert torch.compiler.keep_portable_guards_unsafe(map(Guard, kinds)) == [
        True, True, True, False, False]
    with pytest.raises(NotImplementedError, match="load_compiled_function"):
        torch.compiler.load_compiled_function(None)
