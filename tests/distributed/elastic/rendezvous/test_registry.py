"""The backends that are there."""
import pytest

from flambeau.distributed.elastic.rendezvous import RendezvousConnectionError, RendezvousParameters
from flambeau.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from flambeau.distributed.elastic.utils.distributed import get_free_port


@pytest.mark.parametrize(("backend", "options", "error", "words"), [
    ("static", {}, ValueError, "rank is absent in RendezvousParameters"),
    ("static", {"rank": 0}, ValueError, "endpoint is absent in RendezvousParameters"),
    ("c10d", {"store_type": "x"}, ValueError, "Invalid store type given"),
    ("nothing", {}, ValueError, "backend 'nothing' is not registered")])
def test_what_is_refused(backend, options, error, words):
    with pytest.raises(error, match=words):
        get_rendezvous_handler(RendezvousParameters(backend, "", "r", 1, 1, **options))


def test_nobody_answers():
    with pytest.raises(RendezvousConnectionError, match="The connection to the C10d store has"):
        get_rendezvous_handler(RendezvousParameters(
            "c10d", f"localhost:{get_free_port()}", "r", 1, 1, is_host=False, read_timeout=1))


def test_backends(tmp_path):
    static = get_rendezvous_handler(RendezvousParameters("static", "localhost:1", "r", 1, 2,
                                                         rank=1))
    assert static.get_backend() == "static" and (static.rank, static.world_size) == (1, 2)
    c10d = get_rendezvous_handler(RendezvousParameters(
        "c10d", str(tmp_path / "store"), "r", 1, 2, store_type="file", join_timeout=7))
    assert c10d.get_backend() == "c10d" and c10d.settings.timeout.join.total_seconds() == 7
    assert (c10d.settings.min_nodes, c10d.settings.max_nodes) == (1, 2)
