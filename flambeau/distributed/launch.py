"""The older `torchrun`: `python -m torch.distributed.launch`, which gives scripts their local rank
as the argument `--local-rank` unless `--use-env` says not to."""
from __future__ import annotations

import warnings
from argparse import Namespace
from typing import Any

from flambeau.distributed.run import get_args_parser, run


def parse_args(args: list[str] | None) -> Namespace:
    """The options of a command line."""
    parser = get_args_parser()
    parser.add_argument(
        "--use-env", "--use_env", default=False, action="store_true",
        help="The local rank is only in the variable LOCAL_RANK, as torchrun has it.")
    return parser.parse_args(args)


def launch(args: Any) -> None:
    """Run a script as these options say."""
    if args.no_python and not args.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' "
                         "flag.")
    run(args)


def main(args: list[str] | None = None) -> None:
    """The command `python -m torch.distributed.launch`."""
    warnings.warn(
        "The module torch.distributed.launch is deprecated\nand will be removed in future. Use "
        "torchrun.\nNote that --use-env is set by default in torchrun.\nIf your script expects "
        "`--local-rank` argument to be set, please\nchange it to read from "
        "`os.environ['LOCAL_RANK']` instead. See \n"
        "https://pytorch.org/docs/stable/distributed.html#launch-utility for \nfurther "
        "instructions\n", FutureWarning, stacklevel=2)
    launch(parse_args(args))


if __name__ == "__main__":
    main()
