"""Keys, sets of keys and guards: numbers and texts as recorded from PyTorch 2.13."""

import pytest

import flambeau as torch
from flambeau import _C

K, S = torch.DispatchKey, torch.DispatchKeySet

NUMBERS = {"Undefined": 0, "Python": 13, "CPU": 49, "Meta": 64, "QuantizedCPU": 66,
           "SparseCPU": 83, "SparseCsrCPU": 100, "AutogradCPU": 134, "Autograd": 150,
           "CompositeExplicitAutogradNonFunctional": 155, "PythonDispatcher": 46}
BITS = {"CPU": 65537, "CUDA": 65538, "Dense": 65536, "AutogradCPU": 68719476737,
        "Python": 268435456, "Autograd": 0, "SparseCPU": 8388609, "Meta": 98304,
        "PythonTLSSnapshot": 72057594037927936, "Undefined": 0}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    assert int(K[name]) == NUMBERS[name] and K(NUMBERS[name]) is K[name]
    assert str(K[name]) == f"DispatchKey.{name}"


@pytest.mark.parametrize("name", BITS)
def test_bits(name):
    assert S(K[name]).raw_repr() == BITS[name]
    assert S.from_raw_repr(BITS[name]) == S(K[name])


def test_sets():
    cpu = S(K.CPU)
    assert repr(cpu) == "DispatchKeySet(CPU)" and cpu.has(K.Dense) and not cpu.has(K.CUDA)
    both = cpu | S(K.Python)
    assert str(both) == "DispatchKeySet(CPU, Python)" and both.highestPriorityTypeId() == K.Python
    assert str(cpu.add(K.AutogradCPU)) == "DispatchKeySet(CPU, AutogradCPU)"
    assert str(cpu.remove(K.CPU)) == str(cpu - cpu) == "DispatchKeySet()"
    with pytest.raises(TypeError, match=r"expected a torch\._C\.DispatchKey"):
        S(3)


def test_keys_of_tensors():
    assert str(_C._dispatch_keys(torch.ones(1))) == (
        "DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)")
    assert str(_C._dispatch_keys(torch.ones(1, device="meta"))) == (
        "DispatchKeySet(Meta, ADInplaceOrView, AutogradMeta)")
    assert _C._dispatch_key_for_device("cpu") == "CPU"
    assert _C._dispatch_key_parse("CPU") is K.CPU
    with pytest.raises(RuntimeError, match="could not parse dispatch key: ZZ"):
        _C._dispatch_key_parse("ZZ")


def test_guards_set_autograd_and_autocast_aside():
    x = torch.ones(2, 2, requires_grad=True)
    before = _C._dispatch_tls_local_exclude_set()
    with _C._ExcludeDispatchKeyGuard(S(K.AutogradCPU)):
        assert not (x * 2).requires_grad
        assert _C._dispatch_tls_is_dispatch_key_excluded(K.AutogradCPU)
    assert (x * 2).requires_grad
    guard = _C._AutoDispatchBelowAutograd()
    assert not (x * 2).requires_grad
    del guard
    assert (x * 2).requires_grad and _C._dispatch_tls_local_exclude_set() == before
    with torch.autocast("cpu"):
        assert (x @ x).dtype is torch.bfloat16
        with _C._DisableAutocast():
            assert (x @ x).dtype is torch.float32
        assert (x @ x).dtype is torch.bfloat16
