"""Files in PyTorch's format of before 1.6."""



from serialization_cases import load

import flambeau


def test_legacy_file_of_pytorch():
    old = load("legacy")
    assert old["weight"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert old["weight"].stride() == (1, 3)
    assert old["bf16"].dtype is flambeau.bfloat16
    assert old["names"] == ["a"]
