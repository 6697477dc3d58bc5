"""Launching an agent from a program."""
from __future__ import annotations

import os
import sys

import pytest

from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs
from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError
from flambeau.distributed.elastic.rendezvous import RendezvousParameters
from flambeau.distributed.launcher import LaunchConfig, api, elastic_launch


def config(tmp_path, **options):
    return LaunchConfig(1, 1, 2, rdzv_backend="c10d", run_id="run", max_restarts=0,
                        rdzv_endpoint=str(tmp_path / "store"), start_method="fork",
                        rdzv_configs={"store_type": "file", "last_call_timeout": 1},
                        monitor_interval=0.02, local_addr="localhost", **options)


def who(value):
    return int(os.environ["RANK"]) + value


def fails():
    raise ValueError("bad")


def test_a_function(tmp_path):
    assert elastic_launch(config(tmp_path), who)(5) == {0: 5, 1: 6}


def test_failures(tmp_path):
    with pytest.raises(ChildFailedError, match="fails FAILED") as error:
        elastic_launch(config(tmp_path), fails)()
    assert error.value.get_first_failure()[1].exitcode == 1


@pytest.mark.parametrize(("entrypoint", "args", "name"), [
    (who, [], "who"), (None, [], ""), ("/bin/echo", ["x"], "/bin/echo"),
    (sys.executable, ["-u", "script.py", "x"], "script.py"), (sys.executable, ["-u"], "")])
def test_names(entrypoint, args, name):
    assert api._get_entrypoint_name(entrypoint, args) == name


@pytest.mark.parametrize(("backend", "endpoint", "found"), [
    ("static", "host:7", ("host", 7)), ("c10d", "host:7", (None, None)),
    ("static", " [::1]:7 ", ("::1", 7))])
def test_addresses(backend, endpoint, found):
    assert api._get_addr_and_port(RendezvousParameters(backend, endpoint, "run", 1, 1)) == found


@pytest.mark.parametrize(("endpoint", "words"), [
    ("", "Endpoint is missing in endpoint. Try to add --master-addr and --master-port"),
    ("host", "[pP]ort is missing in endpoint: host. Try to specify --master-port")])
def test_addresses_that_are_missing(endpoint, words):
    with pytest.raises(ValueError, match=words):
        api._get_addr_and_port(RendezvousParameters("static", endpoint, "run", 1, 1))


def test_defaults(monkeypatch):
    monkeypatch.delenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", raising=False)
    found = LaunchConfig(1, 2, 3)
    assert found.rdzv_configs == {"timeout": 900} and isinstance(found.logs_specs, DefaultLogsSpecs)
    assert (found.max_restarts, found.rdzv_backend, found.start_method) == (3, "etcd", "spawn")
    assert found.shutdown_timeout == 30 and found.role == "default_role"
    assert LaunchConfig(1, 2, 3, rdzv_timeout=5).rdzv_configs == {"timeout": 5}
    monkeypatch.setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7")
    assert LaunchConfig(1, 2, 3).shutdown_timeout == 7
