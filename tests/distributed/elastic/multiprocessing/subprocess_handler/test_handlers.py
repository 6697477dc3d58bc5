"""Which handler starts programs."""
import sys

from flambeau.distributed.elastic.multiprocessing.subprocess_handler import (
    SubprocessHandler,
    get_subprocess_handler,
)


def test_a_program_is_started(tmp_path):
    out = tmp_path / "out"
    handler = get_subprocess_handler(sys.executable, ("-Sc", "print(5)"), {}, str(out), "", 1)
    assert type(handler) is SubprocessHandler and handler.local_rank_id == 1
    assert handler.proc.wait(30) == 0 and out.read_text() == "5\n"
