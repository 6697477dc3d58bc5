"""The command `torchrun`: run a script in many processes, which find each other by themselves.

    torchrun --nproc-per-node 4 train.py ARGS...            on this machine
    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint node1:29400 \
        --rdzv-id job7 train.py ARGS...                     on each of two
    torchrun --nnodes 1:4 --max-restarts 3 ...              on one to four, which come and go

Each process learns who it is from its environment (`RANK`, `LOCAL_RANK`, `WORLD_SIZE`, …), and
`torch.distributed.init_process_group()` needs no more. When one fails, all are ended and started
again, `--max-restarts` times; a script should save what it has, and go on from there.

Every option can be set by the environment, too: `--nnodes` by `PET_NNODES`, and so on.
"""
from __future__ import annotations

import os
import runpy
import sys
import uuid
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Callable
from importlib import metadata
from typing import Any

from flambeau.distributed.argparse_util import check_env, env
from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, Std
from flambeau.distributed.elastic.multiprocessing.errors import record
from flambeau.distributed.elastic.rendezvous.utils import _parse_rendezvous_config
from flambeau.distributed.elastic.utils import macros
from flambeau.distributed.elastic.utils.logging import get_logger
from flambeau.distributed.launcher.api import LaunchConfig, elastic_launch
from flambeau.numa.binding import AffinityMode as _AffinityMode
from flambeau.numa.binding import NumaOptions as _NumaOptions

logger = get_logger("torch.distributed.run")         # also where it is `__main__`


def _option(parser: ArgumentParser, name: str, *short: str, action: Any = env, **settings: Any
            ) -> None:
    """Add an option, also spelled with underscores."""
    other = "--" + name[2:].replace("-", "_")
    parser.add_argument(*short, *dict.fromkeys((name, other)), action=action, **settings)


def _switch(parser: ArgumentParser, name: str, *short: str, help: str) -> None:
    _option(parser, name, *short, action=check_env, help=help)


def get_args_parser() -> ArgumentParser:
    """The parser of `torchrun`'s command line."""
    parser = ArgumentParser(description="Torch Distributed Elastic Training Launcher")
    _add_rendezvous_options(parser)
    _add_worker_options(parser)
    _add_log_options(parser)
    _add_node_options(parser)
    parser.add_argument("training_script", type=str,
                        help="The script that each process runs, then its arguments.")
    parser.add_argument("training_script_args", nargs=REMAINDER)
    return parser


def _add_rendezvous_options(parser: ArgumentParser) -> None:
    _option(parser, "--nnodes", type=str, default="1:1",
            help="Number of machines, or a range MIN:MAX within which they come and go.")
    _option(parser, "--nproc-per-node", "--nproc", dest="nproc_per_node", type=str, default="1",
            help="Number of processes on each machine: a number, cpu, gpu, xpu or auto.")
    _option(parser, "--rdzv-backend", type=str, default="static",
            help="How the machines meet: c10d or static.")
    _option(parser, "--rdzv-endpoint", type=str, default="",
            help="Where they meet: host:port, the host being one of them.")
    _option(parser, "--rdzv-id", type=str, default="none",
            help="The name of the job, the same on all machines.")
    _option(parser, "--rdzv-conf", type=str, default="",
            help="Settings of the meeting: key=value,key=value. timeout, join_timeout, "
                 "last_call_timeout, ... in seconds.")
    _switch(parser, "--standalone",
            help="This machine alone, with a free port: several jobs can run on it. The options "
                 "--rdzv-... are ignored.")


def _add_worker_options(parser: ArgumentParser) -> None:
    _option(parser, "--max-restarts", type=int, default=0,
            help="How often all processes are started again after one has failed.")
    _option(parser, "--monitor-interval", type=float, default=0.1,
            help="Seconds between looks at the processes.")
    _option(parser, "--start-method", type=str, default="spawn",
            choices=["spawn", "fork", "forkserver"],
            help="How multiprocessing starts processes, with --run-path.")
    _option(parser, "--event-log-handler", type=str, default="null",
            help="Where events are logged: null, console, or one that a package adds.")
    _option(parser, "--role", type=str, default="default", help="The role of the processes.")
    _switch(parser, "--module", "-m", help="The script is a module, as in `python -m`.")
    _switch(parser, "--no-python", help="The script is a program, not for Python.")
    _switch(parser, "--run-path",
            help="Run the script by runpy.run_path in processes of multiprocessing; its path has "
                 "to be absolute.")


def _add_log_options(parser: ArgumentParser) -> None:
    _option(parser, "--log-dir", type=str, default=None,
            help="Folder for log files; each job has one of its own in it.")
    _option(parser, "--redirects", "-r", type=str, default="0",
            help="Streams that go to log files: 1 stdout, 2 stderr, 3 both; or by local rank, "
                 "0:1,1:2.")
    _option(parser, "--tee", "-t", type=str, default="0",
            help="Streams that go to log files and to the console (as --redirects).")
    _option(parser, "--local-ranks-filter", type=str, default="",
            help="Local ranks whose output is shown: 0,1,2.")
    for stream in ("stdout", "stderr"):
        _option(parser, f"--duplicate-{stream}-filters", type=_parse_filters, default=[],
                help=f"Lines of {stream} that contain one of these go to a file, too: a,b (a "
                     "comma in them is doubled).")


def _add_node_options(parser: ArgumentParser) -> None:
    _option(parser, "--node-rank", type=int, default=0,
            help="The number of this machine, for --rdzv-backend static.")
    _option(parser, "--master-addr", type=str, default="127.0.0.1",
            help="The address of machine 0, for --rdzv-backend static.")
    _option(parser, "--master-port", type=int, default=None,
            help="A port of machine 0, for --rdzv-backend static; 29500 by default.")
    _option(parser, "--local-addr", type=str, default=None,
            help="The address of this machine; its name by default.")
    _option(parser, "--logs-specs", type=str, default=None,
            help="A LogsSpecs class that a package declares as torchrun.logs_specs.")
    _option(parser, "--numa-binding", type=str, default=None,
            choices=[mode.value for mode in _AffinityMode],
            help="Bind each process to the processors near its GPU.")
    _option(parser, "--signals-to-handle", type=str, default="SIGTERM,SIGINT,SIGHUP,SIGQUIT",
            help="Signals that are passed on to the processes.")
    _option(parser, "--shutdown-timeout", type=int, default=None,
            help="Seconds that processes have to end when they are told to, before they are "
                 "killed; 30 by default, or what TORCH_ELASTIC_SHUTDOWN_TIMEOUT says.")
    _switch(parser, "--virtual-local-rank",
            help="Each process is local rank 0 and sees one GPU.")


def _parse_filters(text: str) -> list[str]:
    """Texts with commas between them; a doubled comma is one that belongs to a text.

    >>> _parse_filters("apple,a,,b")
    ['apple', 'a,b']
    """
    return [part.replace("\0", ",") for part in text.replace(",,", "\0").split(",")]


def parse_args(args: list[str] | None) -> Namespace:
    """The options of a command line.

    >>> parse_args(["--nproc-per-node", "2", "train.py", "--lr", "0.1"]).training_script_args
    ['--lr', '0.1']
    """
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """`N` or `MIN:MAX` as two numbers.

    >>> parse_min_max_nnodes("2"), parse_min_max_nnodes("1:4")
    ((2, 2), (1, 4))
    """
    parts = [int(part) for part in nnodes.split(":")]
    if len(parts) > 2:
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return parts[0], parts[-1]


def determine_local_world_size(nproc_per_node: str) -> int:
    """A number of processes: written, or what the machine has of "cpu", "gpu" or "xpu"; "auto"
    takes a device if there is one, else the processors.

    >>> determine_local_world_size("2")
    2
    """
    try:
        found = int(nproc_per_node)
        logger.info("Using nproc_per_node=%s.", nproc_per_node)
        return found
    except ValueError:
        if nproc_per_node not in ("cpu", "gpu", "xpu", "auto"):
            raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}") from None
    import flambeau as torch
    device, count = nproc_per_node, os.cpu_count() or 1
    for name, backend, words in (("gpu", torch.cuda, "Cuda"), ("xpu", torch.xpu, "Xpu")):
        if device == name and not backend.is_available():
            raise ValueError(f"{words} is not available.")
        if device == name or (device == "auto" and backend.is_available()):
            device, count = name, backend.device_count()
    logger.info("Using nproc_per_node=%s, setting nproc_per_node to %s since the instance has %s "
                "%s", nproc_per_node, count, count, "cpu" if device == "auto" else device)
    return count


def get_rdzv_endpoint(args: Any) -> str:
    """Where the machines meet."""
    if args.rdzv_backend == "static" and not args.rdzv_endpoint:
        return f"{args.master_addr}:{args.master_port}"
    return args.rdzv_endpoint


def get_use_env(args: Any) -> bool:
    """Do scripts learn their local rank from the environment only?"""
    return getattr(args, "use_env", True)


def _get_logs_specs_class(logs_specs_name: str | None) -> type[LogsSpecs]:
    """The class that a package declares by that name as `torchrun.logs_specs`."""
    if logs_specs_name is None:
        return DefaultLogsSpecs
    found = [point for point in metadata.entry_points(group="torchrun.logs_specs")
             if point.name == logs_specs_name]
    if not found:
        raise ValueError("Could not find entrypoint under "
                         f"'torchrun.logs_specs[{logs_specs_name}]' key")
    return found[0].load()


def config_from_args(args: Any) -> tuple[LaunchConfig, Callable[..., Any] | str, list[str]]:
    """What options say: how to run, what to run, and its arguments."""
    min_nodes, max_nodes = parse_min_max_nnodes(args.nnodes)
    assert 0 < min_nodes <= max_nodes
    assert args.max_restarts >= 0, "max_restarts must be >= 0"
    if args.master_addr and args.rdzv_backend != "static" and not args.rdzv_endpoint:
        logger.warning("master_addr is only used for static rdzv_backend and when rdzv_endpoint "
                       "is not specified.")
    nproc_per_node = determine_local_world_size(args.nproc_per_node)
    _limit_threads(nproc_per_node)
    rdzv_configs: dict[str, Any] = dict(_parse_rendezvous_config(args.rdzv_conf))
    if args.rdzv_backend == "static":
        rdzv_configs["rank"] = args.node_rank
    elif args.node_rank:
        logger.warning("node_rank is only used for static rdzv_backend. It will be ignored for "
                       "rdzv_backend=%s.", args.rdzv_backend)
    config = LaunchConfig(
        min_nodes=min_nodes, max_nodes=max_nodes, nproc_per_node=nproc_per_node,
        logs_specs=_get_logs_specs_class(args.logs_specs)(
            log_dir=args.log_dir, redirects=Std.from_str(args.redirects),
            tee=Std.from_str(args.tee), local_ranks_filter=_parse_ranks(args.local_ranks_filter)),
        run_id=args.rdzv_id, role=args.role, rdzv_endpoint=get_rdzv_endpoint(args),
        rdzv_backend=args.rdzv_backend, rdzv_configs=rdzv_configs,
        max_restarts=args.max_restarts, monitor_interval=args.monitor_interval,
        start_method=args.start_method,
        log_line_prefix_template=os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"),
        local_addr=args.local_addr, event_log_handler=args.event_log_handler,
        numa_options=_NumaOptions(_AffinityMode(args.numa_binding)) if args.numa_binding else None,
        signals_to_handle=args.signals_to_handle,
        duplicate_stdout_filters=args.duplicate_stdout_filters,
        duplicate_stderr_filters=args.duplicate_stderr_filters,
        virtual_local_rank=args.virtual_local_rank, shutdown_timeout=args.shutdown_timeout)
    return config, *_command(args)


def _limit_threads(nproc_per_node: int) -> None:
    """Many processes with many threads each would be too much for one machine."""
    if nproc_per_node > 1 and "OMP_NUM_THREADS" not in os.environ:
        logger.warning(
            "\n*****************************************\nSetting OMP_NUM_THREADS environment "
            "variable for each process to be %s in default, to avoid your system being "
            "overloaded, please further tune the variable for optimal performance in your "
            "application as needed. \n*****************************************", 1)
        os.environ["OMP_NUM_THREADS"] = "1"


def _parse_ranks(text: str) -> set[int] | None:
    try:
        return {int(rank) for rank in text.split(",")} if text else None
    except ValueError as error:
        raise ValueError("--local_ranks_filter must be a comma-separated list of integers e.g. "
                         "--local_ranks_filter=0,1,2") from error


def _command(args: Any) -> tuple[Callable[..., Any] | str, list[str]]:
    """What to run, and its arguments."""
    if args.run_path:
        return run_script_path, [args.training_script, *args.training_script_args]
    program: list[str] = []
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at "
                             "the same time.")
    else:
        program = [os.environ.get("PYTHON_EXEC", sys.executable), "-u"]
        if args.module:
            program.append("-m")
    program.append(args.training_script)
    if not get_use_env(args):
        program.append(f"--local-rank={macros.local_rank}")
    program += args.training_script_args
    return program[0], program[1:]


def run_script_path(training_script: str, *training_script_args: str) -> None:
    """Run a script in this process, as `python script.py` does."""
    sys.argv = [training_script, *training_script_args]
    runpy.run_path(training_script, run_name="__main__")


def run(args: Any) -> None:
    """Run a script as these options say; returns when all processes have ended well."""
    alone = (parse_min_max_nnodes(args.nnodes)[1] == 1 and args.rdzv_backend == "static"
             and not args.rdzv_endpoint and args.master_port is None)
    if args.standalone or alone:
        # the processes meet in a store of their own, at a free port
        args.rdzv_backend, args.rdzv_endpoint = "c10d", "localhost:0"
        args.rdzv_id = str(uuid.uuid4())
        logger.info("\n**************************************\nRendezvous info:\n--rdzv-backend=%s "
                    "--rdzv-endpoint=%s --rdzv-id=%s\n**************************************\n",
                    args.rdzv_backend, args.rdzv_endpoint, args.rdzv_id)
    elif args.master_port is None:
        args.master_port = 29500
    config, program, program_args = config_from_args(args)
    elastic_launch(config=config, entrypoint=program)(*program_args)


@record
def main(args: list[str] | None = None) -> None:
    """The command `torchrun`."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
