"""The old names of the hub."""

import flambeau as torch


def test_model_zoo_is_the_hub():
    from flambeau.utils import model_zoo
    assert model_zoo.load_url is torch.hub.load_state_dict_from_url
    assert callable(model_zoo.tqdm) and model_zoo.tqdm is torch.hub.tqdm


def test_files_are_loaded(tmp_path):
    from flambeau.utils import model_zoo
    path = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(2)}, path)
    found = model_zoo.load_url(path.as_uri(), model_dir=str(tmp_path / "kept"), progress=False)
    assert found["w"].tolist() == [1.0, 1.0] and (tmp_path / "kept" / "weights.pt").exists()
