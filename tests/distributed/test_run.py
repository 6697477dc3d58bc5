"""`torchrun`: its options, and jobs that end well, fail, are started again, grow; from PyTorch."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import warnings

import pytest

from flambeau.distributed import launch, run
from flambeau.distributed.elastic.multiprocessing import Std
from flambeau.distributed.elastic.utils.distributed import get_free_port
from flambeau.numa.binding import AffinityMode

ENVIRONMENT = {
    "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
    "RANK": "1", "ROLE_NAME": "default", "ROLE_RANK": "1", "ROLE_WORLD_SIZE": "2",
    "TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
    "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def config(*arguments):
    return run.config_from_args(run.parse_args(list(arguments)))


def test_numbers_of_nodes_and_processes():
    assert run.parse_min_max_nnodes("1:2") == (1, 2) and run.parse_min_max_nnodes("3") == (3, 3)
    with pytest.raises(RuntimeError, match='nnodes=1:2:3 is not in "MIN:MAX" format'):
        run.parse_min_max_nnodes("1:2:3")
    assert run.determine_local_world_size("2") == 2
    assert run.determine_local_world_size("auto") == os.cpu_count()
    for name, words in (("gpu", "Cuda is not available."), ("xpu", "Xpu is not available."),
                        ("1.5", "Unsupported nproc_per_node value: 1.5")):
        with pytest.raises(ValueError, match=words):
            run.determine_local_world_size(name)


def test_options_say_how_to_run():
    found, program, arguments = config(
        "--nnodes", "1:2", "--nproc_per_node=2", "-r", "3", "-t", "0:1,1:2", "--rdzv-backend",
        "c10d", "--rdzv-endpoint", "h:1", "--rdzv-conf", "join_timeout=3", "--max-restarts", "4",
        "--local-ranks-filter", "0,1", "--duplicate-stdout-filters", "a,b,,c,",
        "--numa-binding", "node", "--shutdown-timeout", "3", "s.py", "--x", "y")
    assert (found.min_nodes, found.max_nodes, found.nproc_per_node) == (1, 2, 2)
    assert found.rdzv_configs == {"join_timeout": "3", "timeout": 900}
    assert found.max_restarts == 4 and found.shutdown_timeout == 3
    assert found.numa_options.affinity_mode is AffinityMode.NODE
    assert found.duplicate_stdout_filters == ["a", "b,c", ""]
    logs = found.logs_specs
    assert (logs._redirects, logs._tee) == (Std.ALL, {0: Std.OUT, 1: Std.ERR})
    assert (program, arguments) == (sys.executable, ["-u", "s.py", "--x", "y"])


@pytest.mark.parametrize(("options", "command"), [
    (["-m"], (sys.executable, ["-u", "-m", "s", "x"])), (["--no-python"], ("s", ["x"])),
    (["--run-path"], (run.run_script_path, ["s", "x"]))])
def test_what_is_run(options, command):
    assert config(*options, "s", "x")[1:] == command


@pytest.mark.parametrize(("options", "error", "words"), [
    (["-m", "--no-python"], ValueError, "Don't use both the '--no-python' flag and the"),
    (["--max-restarts", "-1"], AssertionError, "max_restarts must be >= 0"),
    (["-r", "4"], ValueError, "4 does not match"),
    (["--rdzv-conf", "a"], ValueError, "option 'a' must have a value specified"),
    (["--local-ranks-filter", "a"], ValueError, "must be a comma-separated list of integers"),
    (["--logs-specs", "a"], ValueError, r"Could not find entrypoint under 'torchrun.logs_specs"),
    (["--monitor-interval", "a"], SystemExit, "2")])
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        config(*options, "s.py")


def test_where_the_machines_meet(monkeypatch):
    seen = []
    monkeypatch.setattr(run, "elastic_launch", lambda config, entrypoint: (
        lambda *arguments: seen.append(config)))
    for options in ([], ["--standalone", "--rdzv-id", "x"], ["--nnodes", "2"],
                    ["--master-port", "12"], ["--rdzv-endpoint", "h:1"],
                    ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "h"]):
        run.main([*options, "s.py"])
    assert [(c.rdzv_backend, c.rdzv_endpoint) for c in seen] == [
        ("c10d", "localhost:0"), ("c10d", "localhost:0"), ("static", "127.0.0.1:29500"),
        ("static", "127.0.0.1:12"), ("static", "h:1"), ("c10d", "h")]
    assert seen[1].run_id not in ("x", "none") and seen[2].run_id == "none"


def test_variables_set_options(monkeypatch):
    monkeypatch.setenv("PET_NPROC_PER_NODE", "3")
    monkeypatch.setenv("PET_STANDALONE", "1")
    found = run.parse_args(["s.py"])
    assert found.nproc_per_node == "3" and found.standalone is True
    for name in ("--nproc-per-node", "--nproc_per_node", "--nproc"):
        found = run.parse_args([name, "2", "s.py", "--nproc", "4"])
        assert found.nproc_per_node == "2" and found.training_script_args == ["--nproc", "4"]


def test_the_older_command(monkeypatch):
    seen = []
    monkeypatch.setattr(launch, "run", lambda args: seen.append(run._command(args)[1]))
    with pytest.warns(FutureWarning, match="torch.distributed.launch is deprecated"):
        launch.main(["s.py", "a"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        launch.main(["--use-env", "s.py"])
    assert seen == [["-u", "s.py", "--local-rank=${local_rank}", "a"], ["-u", "s.py"]]


# Jobs ---------------------------------------------------------------------------------------


@pytest.fixture
def torchrun(tmp_path):
    """`torchrun(script, *options)`: a job that has been started."""
    jobs = []

    def start(script, *options, arguments=()):
        path = tmp_path / "job.py"
        path.write_text("import os, signal, sys, time\n" + textwrap.dedent(script))
        jobs.append(subprocess.Popen(
            [sys.executable, "-m", "flambeau.distributed.run", *options, str(path), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return jobs[-1]
    yield start
    for job in jobs:
        if job.poll() is None:
            job.terminate()
            job.communicate()


def test_the_environment_of_workers(torchrun):
    job = torchrun("""
        if os.environ["RANK"] == "1":
            print({**os.environ}, sys.argv[1:])
    """, "--nproc-per-node", "2", arguments=["--a", "${local_rank}"])
    out, err = job.communicate(timeout=60)
    assert job.returncode == 0, err
    assert out.endswith("['--a', '1']\n")
    found = eval(out[:out.rindex("[")])
    assert {name: found.get(name) for name in ENVIRONMENT} == ENVIRONMENT
    assert found["TORCHELASTIC_ERROR_FILE"].endswith("/attempt_0/1/error.json")
    assert found["MASTER_ADDR"] and int(found["MASTER_PORT"])


def test_a_job_is_started_again_and_fails(torchrun):
    job = torchrun("""
        from json import dump
        print("attempt", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
        if os.environ["RANK"] == "1":
            message = {"message": "ValueError: boom", "extraInfo": {
                "py_callstack": "Traceback\\nValueError: boom", "timestamp": "12"}}
            dump({"message": message}, open(os.environ["TORCHELASTIC_ERROR_FILE"], "w"))
            sys.exit(3)
        time.sleep(60)
    """, "--nproc-per-node", "2", "--max-restarts", "1", "--tee", "1")
    out, err = job.communicate(timeout=60)
    assert job.returncode == 1
    assert "[default1]:attempt 0\n" in out and "[default1]:attempt 1\n" in out
    tail = err[err.index("ChildFailedError: "):]
    assert "job.py FAILED\n" in tail and "exitcode  : 3 (pid: " in tail
    assert "  rank      : 1 (local_rank: 1)\n" in tail[tail.index("Root Cause"):]
    assert "  traceback : Traceback\n  ValueError: boom\n" in tail
    assert "Signal 15 (SIGTERM) received by PID" in tail


def test_a_signal_ends_the_workers(torchrun):
    job = torchrun("""
        def stop(*args):
            print("stopping", flush=True)
            sys.exit(0)
        signal.signal(signal.SIGTERM, stop)
        print(os.getpid(), flush=True)
        time.sleep(60)
    """)
    worker = int(job.stdout.readline())
    job.send_signal(signal.SIGTERM)
    out, err = job.communicate(timeout=60)
    assert out == "stopping\n" and "got signal: " in err and job.returncode == 1
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_a_machine_leaves_and_another_comes(torchrun, tmp_path):
    stop = tmp_path / "stop"

    def machine(is_host):
        return torchrun(
            """
            print(*(os.environ[name] for name in ("GROUP_RANK", "WORLD_SIZE", "MASTER_PORT")),
                  flush=True)
            while not os.path.exists(sys.argv[1]):
                time.sleep(0.02)
            """, "--nnodes", "2", "--rdzv-id", "job", "--max-restarts", "3", "--rdzv-backend",
            "c10d", "--rdzv-endpoint", endpoint, "--local-addr", "localhost", "--rdzv-conf",
            f"is_host={is_host}", arguments=[str(stop)])
    endpoint = f"localhost:{get_free_port()}"
    host, other = machine(1), machine(0)
    before = [job.stdout.readline().split() for job in (host, other)]
    assert sorted(line[0] for line in before) == ["0", "1"] and before[0][2] == before[1][2]
    other.terminate()
    other.communicate(timeout=60)
    coming = machine(0)
    after = [job.stdout.readline().split() for job in (host, coming)]
    assert sorted(line[0] for line in after) == ["0", "1"] and after[0][2] == after[1][2]
    assert after[0][2] != before[0][2]
    stop.touch()
    for job in (host, coming):
        job.communicate(timeout=60)
        assert job.returncode == 0
