"""What is in a package, read again."""
import io

import pytest

import flambeau as torch
from flambeau.package import PackageExporter, PackageImporter, is_from_package

SOURCE = "import math\ndef area(r):\n    return math.pi * r * r\nNAME = __name__\n"


@pytest.fixture
def importer():
    file = io.BytesIO()
    with PackageExporter(file) as exporter:
        exporter.save_source_string("shapes.circle", SOURCE)
        exporter.save_text("notes", "readme.txt", "hé")
        exporter.save_binary("notes", "data.bin", b"\x00\xff")
        exporter.save_pickle("values", "weights.pkl", {"w": torch.ones(2)})
    file.seek(0)
    return PackageImporter(file)


def test_modules_are_those_of_the_package(importer):
    circle = importer.import_module("shapes.circle")
    assert circle.area(1.0) == pytest.approx(3.14159265)
    assert circle.NAME.endswith("shapes.circle") and circle.NAME.startswith("<torch_package_")
    assert is_from_package(circle) and not is_from_package(io)
    assert importer.import_module("shapes.circle") is circle
    with pytest.raises(ModuleNotFoundError):
        importer.import_module("shapes.square")


def test_resources(importer):
    assert importer.load_text("notes", "readme.txt") == "hé"
    assert importer.load_binary("notes", "data.bin") == b"\x00\xff"
    assert importer.load_pickle("values", "weights.pkl")["w"].tolist() == [1.0, 1.0]
    with pytest.raises((OSError, RuntimeError, KeyError)):
        importer.load_binary("notes", "none.bin")


def test_the_tree_of_files(importer):
    tree = importer.file_structure()
    assert tree.has_file("notes/readme.txt") and tree.has_file("shapes/circle.py")
    some = importer.file_structure(include="notes/**", exclude="**/*.bin")
    assert some.has_file("notes/readme.txt") and not some.has_file("notes/data.bin")
    assert importer.python_version().startswith("3.")


def test_two_importers_have_modules_of_their_own():
    file = io.BytesIO()
    with PackageExporter(file) as exporter:
        exporter.save_source_string("state", "values = []\n")
    modules = []
    for _ in range(2):
        file.seek(0)
        modules.append(PackageImporter(file).import_module("state"))
    modules[0].values.append(1)
    assert modules[1].values == [] and modules[0].__name__ != modules[1].__name__
