"""The parts of a trace that can go back to an earlier state: guards, modules, global settings."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from flambeau._guards.guards import Guard, GuardEnvExpr, GuardsSet

T = TypeVar("T")


class Checkpointable(Generic[T]):
    """What can go back to an earlier state."""

    def copy_graphstate(self) -> T:
        """The state now."""
        raise NotImplementedError

    def restore_graphstate(self, state: T) -> None:
        """Go back to a state."""
        raise NotImplementedError


class GuardsCheckpointState:
    """The guards at one time."""

    def __init__(self, dynamo_guards: set[Guard]):
        self.dynamo_guards = dynamo_guards

    def diff(self, other: GuardsCheckpointState) -> set[Guard] | None:
        """The guards that the other time has not; None if there are none."""
        return self.dynamo_guards.difference(other.dynamo_guards) or None


class GuardsContext(Checkpointable[GuardsCheckpointState]):
    """The guards of a trace."""

    def __init__(self) -> None:
        self.dynamo_guards = GuardsSet()
        self.aotautograd_guards: list[GuardEnvExpr] = []

    def copy_graphstate(self) -> GuardsCheckpointState:
        return GuardsCheckpointState(set(self.dynamo_guards.inner))

    def restore_graphstate(self, state: GuardsCheckpointState) -> None:
        self.dynamo_guards = GuardsSet(state.dynamo_guards)


class ModuleContextCheckpointState:
    """The modules of a trace at one time."""

    def __init__(self, nn_modules: dict[str, Any]):
        self.nn_modules = nn_modules

    def diff(self, other: ModuleContextCheckpointState) -> set[str] | None:
        """The names that the other time has not; None if there are none."""
        return set(self.nn_modules) - set(other.nn_modules) or None


class ModuleContext(Checkpointable[ModuleContextCheckpointState]):
    """The modules of a trace."""

    def __init__(self) -> None:
        self.nn_modules: dict[str, Any] = {}

    def copy_graphstate(self) -> ModuleContextCheckpointState:
        return ModuleContextCheckpointState(dict(self.nn_modules))

    def restore_graphstate(self, state: ModuleContextCheckpointState) -> None:
        self.nn_modules = state.nn_modules


class GlobalContextCheckpointState:
    """The global settings of a trace at one time."""

    def __init__(self, global_states: dict[str, Any]):
        self.global_state = global_states

    def diff(self, other: GlobalContextCheckpointState) -> set[str] | None:
        """The names that the other time has not; None if there are none."""
        return set(self.global_state) - set(other.global_state) or None


class GlobalContext(Checkpointable[GlobalContextCheckpointState]):
    """The global settings of a trace: grad mode, autocast."""

    def __init__(self) -> None:
        self.global_state: dict[str, tuple[Callable[..., Any], Any]] = {}

    def copy_graphstate(self) -> GlobalContextCheckpointState:
        return GlobalContextCheckpointState(self.global_state)

    def restore_graphstate(self, state: GlobalContextCheckpointState) -> None:
        self.global_state = state.global_state
        for restore, value in self.global_state.values():
            restore(value)
