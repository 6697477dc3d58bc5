"""Names of storages in files."""



from serialization_cases import saved

import flambeau


def test_storages_can_be_saved():
    x = flambeau.arange(3.0)
    loaded = flambeau.load(saved({"typed": x.storage(), "tensor": x}))
    assert loaded["typed"].tolist() == [0.0, 1.0, 2.0]
    assert loaded["typed"].untyped() is loaded["tensor"].untyped_storage()
