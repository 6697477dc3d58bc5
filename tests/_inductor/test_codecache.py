"""Keys of caches."""
import flambeau as torch
from flambeau._inductor import codecache


def test_hashes_are_letters():
    found = codecache.sha256_hash(b"abc")
    assert len(found) == 51 and found.isalnum() and found == found.lower()
    assert found == codecache.sha256_hash(b"abc") != codecache.sha256_hash(b"abd")
    assert codecache.code_hash("abc") == "c" + found
    assert codecache.code_hash("abc", "x") == "c" + codecache.sha256_hash(b"abc||x")


def test_what_tensors_look_like():
    make = codecache.extract_tensor_metadata_for_cache_key
    a, b = make(torch.ones(2, 3).t()), make(torch.zeros(2, 3).t())
    assert a == b and a.shape == (3, 2) and a.stride == (1, 3) and a.dtype is torch.float32
    assert make(torch.ones(2)) != make(torch.ones(3))
