"""Messages that get lost, or are late."""
import pytest

import flambeau as torch
from flambeau.distributed import rpc
from flambeau.distributed.elastic.utils.distributed import get_free_port


def double(x):
    return x * 2


def of_reference(reference):
    return reference.to_here() + 1


def start(rank, port, lost=(), late=None, attempts=3):
    from flambeau.distributed.rpc import _testing, backend_registry
    assert _testing.is_available()
    rpc._init_counter = 0
    backend = backend_registry.BackendType["FAULTY_TENSORPIPE"]
    rpc.init_rpc(f"w{rank}", backend, rank=rank, world_size=2,
                 rpc_backend_options=rpc.construct_rpc_backend_options(
                     backend, init_method=f"tcp://localhost:{port}", num_worker_threads=4,
                     messages_to_fail=list(lost), messages_to_delay=late or {},
                     num_fail_sends=attempts))


def lost_messages(rank, port):
    start(rank, port, ["PYTHON_REMOTE_CALL", "RREF_FORK_REQUEST", "RREF_USER_DELETE"])
    if rank == 0:
        for to in ("w0", "w1"):
            reference = rpc.remote(to, double, args=(3,))
            with pytest.raises(RuntimeError, match=r"RRef creation via rpc\.remote"):
                reference.to_here()
            with pytest.raises(RuntimeError, match="RRef creation"):
                rpc.rpc_sync("w1", of_reference, args=(reference,))
        assert rpc.rpc_sync("w1", double, args=(4,)) == 8
        assert rpc.rpc_sync("w1", of_reference, args=(rpc.RRef(5),)) == 6     # sent again
    rpc.shutdown()


def late_messages(rank, port):
    start(rank, port, late={"PYTHON_CALL": 3.0})
    if rank == 0:
        with pytest.raises(RuntimeError, match="RPC ran for more than set timeout"):
            rpc.rpc_sync("w1", double, args=(4,), timeout=0.5)
        assert rpc.rpc_sync("w1", torch.add, args=(torch.ones(1), 1), timeout=2.5).item() == 2
        assert rpc.rpc_sync("w1", double, args=(4,), timeout=40) == 8
    rpc.shutdown()


@pytest.mark.parametrize("check", [lost_messages, late_messages])
def test_two_workers(processes, check):
    processes(check, get_free_port(), group=False)
