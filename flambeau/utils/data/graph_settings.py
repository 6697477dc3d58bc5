"""Settings of all steps of a data pipe: order, seeds, and shares of worker processes."""

import warnings
from inspect import signature

import flambeau
from flambeau.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from flambeau.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from flambeau.utils.data.graph import traverse_dps

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_settings"]


def steps_of(datapipe):
    """The pipe and all that it draws from, the pipe first."""
    found, seen = [], set()

    def visit(value):
        if id(value) in seen:
            return
        if isinstance(value, (IterDataPipe, MapDataPipe)):
            seen.add(id(value))
            found.append(value)
            for inner in vars(value).values():
                visit(inner)
        elif isinstance(value, (list, tuple)):
            for inner in value:
                visit(inner)
        elif isinstance(value, dict):
            for inner in value.values():
                visit(inner)
        elif isinstance(getattr(value, "datapipe", None), IterDataPipe):
            visit(value.datapipe)

    visit(datapipe)
    return found


def apply_shuffle_settings(datapipe, shuffle=None):
    """Turn all steps that shuffle on or off; adds one if there is none to turn on."""
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in steps_of(datapipe)
                 if "set_shuffle" in dir(pipe) and "set_seed" in dir(pipe)]
    if not shufflers and shuffle:
        warnings.warn("`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. "
                      "Adding one at the end. Be aware that the default buffer size might not be "
                      "sufficient for your task.", stacklevel=2)
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Draw a seed from `rng` for each step that is random."""
    for pipe in steps_of(datapipe):
        if "set_seed" in dir(pipe):
            pipe.set_seed(int(flambeau.empty((), dtype=flambeau.int64).random_(
                generator=rng).item()))
    return datapipe


def apply_sharding(datapipe, num_of_instances, instance_id,
                   sharding_group=SHARDING_PRIORITIES.DEFAULT):
    """Give each step that shares out elements its place among the instances; no element may come
    through two of them."""
    def visit(graph, above):
        for pipe, rest in graph.values():
            here = above
            if "apply_sharding" in dir(pipe):
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause "
                        f"data loss. Sharding already applied to {above} while trying to apply to "
                        f"{pipe}")
                groups = (sharding_group,) if len(signature(
                    pipe.apply_sharding).parameters) > 2 else ()
                pipe.apply_sharding(num_of_instances, instance_id, *groups)
                here = pipe
            visit(rest, here)

    visit(traverse_dps(datapipe), None)
    return datapipe
