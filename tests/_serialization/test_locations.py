"""Where loaded storages go."""

import io
import zipfile

import pytest
from serialization_cases import saved

import flambeau
from flambeau import serialization
from flambeau._serialization import locations


def test_map_location():
    x = flambeau.arange(3.0)
    seen = []

    def mapping(storage, location):
        seen.append((len(storage), location))
        return storage

    for choice in (None, "cpu", flambeau.device("cpu"), {"cpu": "cpu"}, {}, mapping,
                   lambda storage, location: None):
        assert flambeau.load(saved(x), map_location=choice).tolist() == [0.0, 1.0, 2.0]
    assert seen == [(12, "cpu")]
    for choice in ("meta", flambeau.device("meta"), {"cpu": "meta"}):
        loaded = flambeau.load(saved(x), map_location=choice)
        assert loaded.is_meta
        assert loaded.shape == (3,)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        flambeau.load(saved(x), map_location="cuda")


def test_registered_locations(monkeypatch):
    monkeypatch.setattr(locations, "_packages", list(locations._packages))
    serialization.register_package(
        1, lambda storage: "shelf" if len(storage) == 12 else None,
        lambda storage, location: storage if location == "shelf" else None)
    file = saved([flambeau.arange(3.0), flambeau.arange(2.0)])
    with zipfile.ZipFile(file) as archive:
        assert b"shelf" in archive.read("archive/data.pkl")
    file.seek(0)
    assert flambeau.load(file)[0].tolist() == [0.0, 1.0, 2.0]


def test_an_error_of_map_location_reaches_the_user():
    def fail(storage, place):
        raise KeyError("mine")
    for weights_only in (True, False):
        file = io.BytesIO()
        flambeau.save({"a": flambeau.ones(2)}, file)
        file.seek(0)
        with pytest.raises(KeyError, match="mine"):
            flambeau.load(file, map_location=fail, weights_only=weights_only)
