"""The files of a package, as a tree."""
from flambeau.package.file_structure_representation import Directory


def tree():
    folder = Directory("package", True)
    for path in ("models/net.py", "models/deep/b.pt", "a.py", "models/deep/a.pt"):
        folder._add_file(path)
    return folder


def test_files_and_folders():
    assert all(tree().has_file(path) for path in ("a.py", "models", "models/deep/a.pt"))
    assert not any(tree().has_file(path) for path in ("b.py", "models/a.py", "a.py/x"))


def test_text():
    assert str(tree()) == ("─── package\n"
                           "    ├── models\n"
                           "    │   ├── deep\n"
                           "    │   │   ├── a.pt\n"
                           "    │   │   └── b.pt\n"
                           "    │   └── net.py\n"
                           "    └── a.py\n")
