"""Programs in files."""
import pytest
from export_cases import Stateful

import flambeau as torch
from flambeau.export import Dim, ExportedProgram, export, load, save


def test_saved_programs_are_the_same(tmp_path):
    program = export(Stateful(), (torch.ones(2, 4),), {"z": 3.0},
                     dynamic_shapes={"x": {0: Dim("n", min=2, max=9)}, "z": None})
    save(program, tmp_path / "program.pt2", extra_files={"note": "hello"})
    extra = {"note": ""}
    found = load(tmp_path / "program.pt2", extra_files=extra)
    assert isinstance(found, ExportedProgram) and extra == {"note": "hello"}
    assert str(found) == str(program)
    x = torch.rand(7, 4)
    torch.testing.assert_close(found.module()(x, z=3.0)[1], program.module()(x, z=3.0)[1])
    assert str(found.run_decompositions().range_constraints) == "{s77: VR[2, 9]}"


def test_what_no_archive_holds_is_an_error(tmp_path):
    import zipfile
    with zipfile.ZipFile(tmp_path / "x.pt2", "w") as archive:
        archive.writestr("x/other", b"")
    with pytest.raises(RuntimeError, match="holds no exported program"):
        load(tmp_path / "x.pt2")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.pt2")
