"""The paths of files."""
import pytest

from flambeau.utils.data.datapipes.iter import FileLister, IterableWrapper


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.txt").write_text("hi")
    (tmp_path / "inner" / "b.txt").write_text("yo")
    return tmp_path


def test_files_are_listed(folder):
    assert list(FileLister(str(folder))) == [str(folder / "a.txt")]
    inner = FileLister(str(folder), masks="b*", recursive=True)
    assert list(inner) == [str(folder / "inner" / "b.txt")]
    both = IterableWrapper([str(folder), str(folder / "inner")]).list_files()
    assert list(both) == [str(folder / "a.txt"), str(folder / "inner" / "b.txt")]
    assert list(FileLister(str(folder), masks=["*.py", "*.rst"], recursive=True)) == []


def test_length_is_what_one_says(folder):
    with pytest.raises(TypeError, match="FileListerIterDataPipe instance doesn't have val"):
        len(FileLister(str(folder)))
    assert len(FileLister(str(folder), length=1)) == 1


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.warns(UserWarning, match="none : No such file"), \
            pytest.raises(FileNotFoundError):
        list(FileLister(str(tmp_path / "none")))
