"""Archives, read."""

import zipfile

import pytest
from serialization_cases import compressed_archive

import flambeau


def test_single_records_of_a_checkpoint(tmp_path):
    path = tmp_path / "x.pt"
    flambeau.save({"a": flambeau.arange(3.0)}, path)
    reader = flambeau.PyTorchFileReader(path)
    assert reader.has_record("data/0") and not reader.has_record("data/1")
    assert reader.get_record_size("data/0") == 12 and "data.pkl" in reader.get_all_records()
    assert flambeau.equal(reader.get_storage_from_record("data/0", 3, flambeau.float32),
                       flambeau.arange(3.0))
    with pytest.raises(RuntimeError, match="file not found"):
        reader.get_record("nothing")


def test_a_record_that_inflates_is_refused():
    file = compressed_archive(b"\x80\x04(" + b"N" * (260 << 20) + b"t.", zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="bytes inflate to"):
        flambeau.load(file)
