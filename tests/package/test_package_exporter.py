"""Packages: what is in them, what they need, and how it is found again."""
import io
import sys
import zipfile

import pytest

import flambeau as torch
from flambeau.package import (
    EmptyMatchError,
    ObjMismatchError,
    OrderedImporter,
    PackageExporter,
    PackageImporter,
    PackagingError,
    is_from_package,
    sys_importer,
)

SOURCES = {
    "pkgdemo/__init__.py": "from . import sub\n",
    "pkgdemo/sub.py": "import flambeau as torch\nimport json\nfrom pkgdemo.other import helper\n"
                      "class Model(torch.nn.Module):\n"
                      "    def __init__(self):\n"
                      "        super().__init__()\n"
                      "        self.linear = torch.nn.Linear(2, 2)\n"
                      "    def forward(self, x):\n"
                      "        return helper(self.linear(x))\n",
    "pkgdemo/other.py": "import math\nimport thirdparty_demo\ndef helper(x):\n    return x * 2\n",
    "thirdparty_demo.py": "x = 1\n",
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    for name, source in SOURCES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(source)
    sys.path.insert(0, str(folder))
    import pkgdemo
    yield pkgdemo
    sys.path.remove(str(folder))
    for name in ("pkgdemo", "pkgdemo.sub", "pkgdemo.other", "thirdparty_demo"):
        sys.modules.pop(name, None)


def exported(demo, file):
    torch.manual_seed(0)
    model = demo.sub.Model()
    with PackageExporter(file) as exporter:
        exporter.intern("pkgdemo.**")
        exporter.mock("thirdparty_demo")
        exporter.save_pickle("model", "model.pkl", model)
        exporter.save_text("model", "a.txt", "hello")
        exporter.save_binary("model", "b.bin", b"xyz")
        exporter.save_source_string("foo.bar", "y = 3\nimport flambeau as torch\n")
    return model, exporter


def test_packages_hold_objects_and_their_code(demo, tmp_path):
    path = tmp_path / "a.pt"
    model, exporter = exported(demo, path)
    assert exporter.interned_modules() == ["foo.bar", "pkgdemo.other", "pkgdemo.sub"]
    assert exporter.mocked_modules() == ["thirdparty_demo"]
    assert {"json", "math", "torch._utils"} <= set(exporter.externed_modules())
    assert exporter.get_rdeps("thirdparty_demo") == ["pkgdemo.other"]
    assert '"pkgdemo.sub" -> "pkgdemo.other"' in exporter.all_paths("pkgdemo.sub",
                                                                    "thirdparty_demo")
    importer = PackageImporter(path)
    found = importer.load_pickle("model", "model.pkl")
    assert type(found) is not type(model)
    assert type(found).__module__ == f"{importer.id()}.pkgdemo.sub"
    x = torch.rand(3, 2)
    torch.testing.assert_close(found(x), model(x))
    assert importer.load_text("model", "a.txt") == "hello"
    assert importer.load_binary("model", "b.bin") == b"xyz"
    assert importer.import_module("foo.bar").y == 3
    assert repr(importer.import_module("pkgdemo")) == "<module 'pkgdemo' (<package_importer>)>"
    assert is_from_package(found) and not is_from_package(demo)
    with pytest.raises(NotImplementedError, match=r"'<torch_package_\d+>.thirdparty_demo.x' was "
                                                  "mocked out during packaging"):
        importer.import_module("thirdparty_demo").x()


def test_the_files_are_pytorchs(demo, tmp_path):
    path = tmp_path / "a.pt"
    exported(demo, path)
    assert str(PackageImporter(path).file_structure(exclude="**/*.storage")).split("\n", 1)[1] == (
        "    ├── .data\n    │   ├── extern_modules\n    │   ├── python_version\n"
        "    │   └── version\n    ├── foo\n    │   └── bar.py\n    ├── model\n"
        "    │   ├── a.txt\n    │   ├── b.bin\n    │   └── model.pkl\n    ├── pkgdemo\n"
        "    │   ├── other.py\n    │   └── sub.py\n    ├── _mock.py\n    ├── byteorder\n"
        "    └── thirdparty_demo.py\n")
    assert all(name.startswith("a/") for name in zipfile.ZipFile(path).namelist())


def test_packages_are_packaged_again(demo):
    first, second = io.BytesIO(), io.BytesIO()
    exported(demo, first)
    importer = PackageImporter(first)
    model = importer.load_pickle("model", "model.pkl")
    with PackageExporter(second, importer=[importer, sys_importer]) as exporter:
        exporter.intern("pkgdemo.**")
        exporter.mock("thirdparty_demo")
        exporter.save_pickle("model", "model.pkl", model)
    found = PackageImporter(second).load_pickle("model", "model.pkl")
    torch.testing.assert_close(found(torch.ones(1, 2)), model(torch.ones(1, 2)))
    with pytest.raises(ObjMismatchError, match="lists the importer for <torch_package_"):
        sys_importer.get_name(type(model))
    assert OrderedImporter(importer, sys_importer).get_name(demo.sub.Model) == (
        "pkgdemo.sub", "Model")


@pytest.mark.parametrize(("rules", "error", "message"), [
    ((), PackagingError, r"did not match against any action pattern.*\n    pkgdemo.sub"),
    ((("intern", "pkgdemo.**"), ("deny", "thirdparty_demo")), PackagingError,
     r"Module was denied by a pattern.\n    thirdparty_demo"),
])
def test_what_is_missing_is_named(demo, rules, error, message):
    with pytest.raises(error, match=message), PackageExporter(io.BytesIO()) as exporter:
        for action, pattern in rules:
            getattr(exporter, action)(pattern)
        exporter.save_pickle("model", "model.pkl", demo.sub.Model())


def test_patterns_that_have_to_match():
    with pytest.raises(EmptyMatchError, match=r"GlobGroup\(include=nothing.\*\*, exclude=\(\)\)"), \
            PackageExporter(io.BytesIO()) as exporter:
        exporter.intern("nothing.**", allow_empty=False)


def test_importers_refuse(demo):
    file = io.BytesIO()
    exported(demo, file)
    with pytest.raises(ImportError, match="'json' but that module has been disallowed"):
        PackageImporter(file, lambda name: name != "json")
    importer = PackageImporter(file)
    with pytest.raises(ModuleNotFoundError, match='No module named "nope" in self-contained'):
        importer.import_module("nope")
    with pytest.raises(RuntimeError, match="failed locating file model/zz: file not found"):
        importer.load_text("model", "zz")
