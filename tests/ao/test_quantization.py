"""Observers and fake-quantising modules; numbers are PyTorch's."""
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau.ao import quantization as Q

X = torch.tensor([[-1.0, 0.5, 2.0], [0.25, 3.0, 1.0]])


def test_storages_of_quantised_numbers():
    q = torch.quantize_per_tensor(X, 0.1, 10, torch.quint8)
    assert q.storage().tolist() == q.int_repr().flatten().tolist()
    assert (q.storage().dtype, q.element_size()) == (torch.quint8, 1)
    for name in ("QUInt8", "QInt8", "QInt32", "QUInt4x2", "QUInt2x4"):
        storage = getattr(torch, f"{name}Storage")([1, 2])
        assert storage.tolist() == [1, 2] and isinstance(storage, torch.storage.TypedStorage)


def test_four_bits_share_bytes():
    q = torch.quantize_per_channel(torch.arange(12.0).reshape(3, 4), torch.ones(3), torch.zeros(3),
                                   0, torch.quint4x2)
    assert q.int_repr().tolist() == [16, 50, 84, 118, 152, 186]
    assert q.dequantize().flatten().tolist() == list(range(12))
    packed = torch.ops.quantized.embedding_bag_prepack(q)
    assert torch.ops.quantized.embedding_4bit(packed, torch.tensor([1])).tolist() == [[4, 5, 6, 7]]


def test_engines():
    engines = torch.backends.quantized
    assert (engines.engine, "fbgemm" in engines.supported_engines) == ("x86", True)
    with pytest.raises(RuntimeError, match="not a valid value"):
        engines.engine = "abacus"


def test_former_names():
    from flambeau.nn.quantized.dynamic import Linear
    from flambeau.quantization.quantize import convert

    from flambeau.nn.intrinsic import qat
    assert Linear is torch.ao.nn.quantized.dynamic.Linear and convert is Q.convert
    assert qat is torch.ao.nn.intrinsic.qat and torch.nn.qat is torch.ao.nn.qat
    assert torch.quantization is Q and torch.nn.quantizable is torch.ao.nn.quantizable


def test_each_package_of_modules_can_be_imported_first():
    for package in ("quantizable", "quantized", "intrinsic", "qat", "quantized.dynamic"):
        subprocess.run([sys.executable, "-c", f"import flambeau.ao.nn.{package}"], check=True)
