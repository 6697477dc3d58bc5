"""What `torch.__config__` says of the build."""
import flambeau as torch
from flambeau import __config__ as config


def test_show_names_the_build_line_by_line():
    first, *rest = config.show().splitlines()
    assert first.split()[1:] == ["built", "with:"]
    assert rest and all(line.startswith("  - ") for line in rest)


def test_parallel_info_follows_the_number_of_threads():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = config.parallel_info()
        torch.set_num_threads(2)
        two = config.parallel_info()
    finally:
        torch.set_num_threads(before)
    assert one != two and one.endswith("\n") and "1" in one and "2" in two


def test_flags_of_the_compiler_are_text():
    assert isinstance(config._cxx_flags(), str)
