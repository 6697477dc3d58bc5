"""`PassManager`: passes in an order that their constraints allow, run until nothing changes."""
from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from queue import Queue
from typing import Any

from flambeau.fx.graph_module import GraphModule
from flambeau.fx.passes.infra.pass_base import PassResult
from flambeau.nn import Module


def pass_result_wrapper(fn: Callable[..., Any]) -> Callable[..., Any] | None:
    """A pass that gives a `PassResult`, of one that may give nothing."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(gm: Any) -> Any:
        found = fn(gm)
        if found is None:
            return PassResult(gm, True)
        changed = isinstance(found, Module)
        return PassResult(found, True) if changed else found
    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def _validate_pass_schedule_constraint(constraint: Callable[..., bool],
                                       passes: list[Callable[..., Any]]) -> None:
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1:]):
            if not constraint(a, b):
                raise RuntimeError(f"pass schedule constraint violated. Expected {a} before {b} "
                                   f"but found {a} at index {i} and {b} at index{j} in pass list.")


def _topological_sort_passes(passes: list[Callable[..., Any]],
                             constraints: list[Callable[..., bool]]) -> list[Callable[..., Any]]:
    """The passes in an order that all constraints allow."""
    if not constraints:
        return passes
    after: dict[Any, list[Any]] = {p: [] for p in passes}
    waiting: dict[Any, int] = dict.fromkeys(passes, 0)
    ready: Queue[Any] = Queue()
    for a in passes:
        for b in passes:
            if a is not b and any(not constraint(a, b) for constraint in constraints):
                after[b].append(a)
                waiting[a] += 1
        if waiting[a] == 0:
            ready.put(a)
    visited: dict[Any, bool] = defaultdict(bool)
    found = []
    while not ready.empty():
        current = ready.get()
        found.append(current)
        visited[current] = True
        for other in after[current]:
            waiting[other] -= 1
            if waiting[other] == 0:
                ready.put(other)
    cycle = [p for p in passes if waiting[p] != 0]
    if cycle:
        raise RuntimeError(f"Circular dependency detected within the following passes: {cycle}")
    return found


def this_before_that_pass_constraint(this: Callable[..., Any], that: Callable[..., Any]
                                     ) -> Callable[..., bool]:
    """The constraint that one pass comes before another."""
    return lambda a, b: not (a == that and b == this)


class PassManager:
    """Runs passes, in an order that satisfies the constraints, up to `steps` times.

    >>> import flambeau
    >>> from flambeau import fx
    >>> def negate(gm):
    ...     for node in gm.graph.find_nodes(op="call_function", target=flambeau.sin):
    ...         node.target = flambeau.neg
    ...     gm.recompile()
    >>> manager = PassManager([pass_result_wrapper(negate)])
    >>> manager(fx.symbolic_trace(lambda x: flambeau.sin(x))).graph_module(flambeau.ones(1))
    tensor([-1.])
    """

    def __init__(self, passes: list[Callable[..., Any]] | None = None,
                 constraints: list[Callable[..., bool]] | None = None, steps: int | None = None,
                 run_checks_after_each_pass: bool = False,
                 suppress_check_failures: bool = False):
        self.passes, self.constraints = passes or [], constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable[..., Any]) -> None:
        """Add a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[..., bool]) -> None:
        """Add a constraint on the order."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError if the order breaks a constraint."""
        if self._validated:
            return
        for constraint in self.constraints:
            _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes in an order that satisfies the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[..., Any]) -> None:
        """Run a function on the module after each pass."""
        parameters = list(inspect.signature(check).parameters.values())
        if len(parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module: Module) -> None:
        """What is run after each pass."""

    def __call__(self, module: Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for i, each in enumerate(self.passes):
                name = each.__name__ if inspect.isfunction(each) else type(each).__name__
                try:
                    found = each(module)
                    if not isinstance(found, PassResult):
                        raise TypeError(f"The result of the pass {name} should be type "
                                        "PassResult. Please wrap it with pass_result_wrapper()")
                    module, modified = found.graph_module, modified or found.modified
                    if isinstance(module, GraphModule):
                        module.recompile()
                    if self.run_checks_after_each_pass:
                        self.check(module)
                except Exception as error:
                    before = [getattr(p, "__name__", type(p).__name__) for p in self.passes[:i]]
                    raise Exception(f"An error occurred when running the '{name}' pass after the "
                                    f"following passes: {before}") from error
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)      # type: ignore[arg-type]


__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]
