"""`CommDebugMode`: the collectives that a program makes, counted, by module."""
from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

from flambeau import ops
from flambeau.core.tensor import Tensor
from flambeau.distributed import _functional_collectives as funcol  # noqa: F401  (makes the ops)
from flambeau.distributed.tensor._api import DTensor
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils._pytree import tree_leaves
from flambeau.utils.module_tracker import ModuleTracker

__all__ = ["CommDebugMode"]

_FUNCTIONAL = ("all_gather_into_tensor", "all_gather_into_tensor_coalesced", "all_reduce",
               "all_reduce_coalesced", "all_to_all_single", "broadcast", "reduce_scatter_tensor",
               "reduce_scatter_tensor_coalesced")
NATIVE_TO_PY_MAPPING = {
    **{getattr(ops._c10d_functional, name): getattr(ops.c10d_functional, name)
       for name in _FUNCTIONAL if hasattr(ops.c10d_functional, name)},
    ops._c10d_functional_autograd.all_to_all_single: ops.c10d_functional.all_to_all_single}
c10d_collective_ops = {getattr(ops.c10d, name) for name in (
    "_allgather_base_", "_reduce_scatter_base_", "allgather_", "allgather_coalesced_",
    "allgather_into_tensor_coalesced_", "allreduce_", "allreduce_coalesced_", "alltoall_",
    "alltoall_base_", "broadcast_", "gather_", "reduce_", "reduce_scatter_",
    "reduce_scatter_tensor_coalesced_", "scatter_")}
trivial_ops = {"aten.detach.default", "aten.t.default", "aten.view.default",
               "aten._to_copy.default", "aten.as_strided.default", "aten.transpose.int"}
_YELLOW, _RED, _PLAIN = "\033[1;33m", "\033[1;31m", "\033[0m"


class _CommModeModuleTracker(ModuleTracker):
    """The modules that run, in order, and what is known of them."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[str] = ["Global"]
        self._leaving: list[Any] = []
        self.module_helper_dict: dict[str, dict[str, Any]] = {}
        self.module_parameters_dict: dict[str, dict[str, Tensor]] = {}
        self.sharding_dict: dict[str, Any] = {}

    def _append(self, name: str, backward: bool) -> None:
        super()._append(name, backward)
        self.running.append(name)

    def _pop(self, name: str, backward: bool) -> None:
        super()._pop(name, backward)
        if name in self.running[1:]:
            del self.running[len(self.running) - 1 - self.running[::-1].index(name)]

    def _after_backward(self) -> None:
        super()._after_backward()
        del self.running[1:]

    def _enter_module(self, module: Any, inputs: Any) -> None:
        name = self._get_mod_name(module)
        if name not in self.module_helper_dict:
            kind = re.sub(r"^<|>$", "", str(type(module)))
            self.module_helper_dict[name] = {"module_type": kind, "parent": self.running[-1]}
            own = dict(module.named_parameters(recurse=False))
            if own:
                self.module_parameters_dict[name] = {n: p.data for n, p in own.items()}
            for key, parameter in own.items():
                if isinstance(parameter, DTensor):
                    self.sharding_dict[f"{name}.{key}"] = parameter.placements
        super()._enter_module(module, inputs)
        # The module's own hooks are a part of it: it is left after the last of them.
        self._leaving.append(module.register_forward_hook(self._after_own_hooks,
                                                          always_call=True))

    def _leave_module(self, module: Any, inputs: Any, outputs: Any) -> None:
        pass

    def _after_own_hooks(self, module: Any, inputs: Any, outputs: Any) -> None:
        self._leaving.pop().remove()
        super()._leave_module(module, inputs, outputs)

    def print_paramater_info(self) -> None:
        """Print the parameters of all modules."""
        print(self.module_parameters_dict)

    def print_sharding_info(self) -> None:
        """Print how parameters lie."""
        for name, placements in self.sharding_dict.items():
            print(name, placements)


class CommDebugMode(TorchDispatchMode):
    """Inside, collectives are counted: those of `torch.distributed` and those that distributed
    tensors make; by kind, and by the module in which they are made.

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> with CommDebugMode() as mode:
    ...     dist.all_reduce(flambeau.ones(2))
    >>> mode.get_total_counts(), mode.get_comm_counts()[flambeau.ops.c10d.allreduce_]
    (1, 1)
    >>> dist.destroy_process_group()
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.comm_registry = {*NATIVE_TO_PY_MAPPING, *NATIVE_TO_PY_MAPPING.values()}
        self._reset()

    def _reset(self) -> None:
        self.comm_counts: dict[Any, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[Any, int]]] = {}
        self.comm_module_operation_counts: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.advanced_module_tracker = _CommModeModuleTracker()

    def __enter__(self) -> CommDebugMode:
        self._reset()
        super().__enter__()
        self.advanced_module_tracker.__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        self.advanced_module_tracker.__exit__(*args)
        super().__exit__(*args)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in self.comm_registry or packet in c10d_collective_ops:
            self._count(NATIVE_TO_PY_MAPPING.get(packet, packet))
        self._note(func, args, kwargs)
        if any(t is DTensor for t in types):
            return self._distributed(func, types, args, kwargs)
        return func(*args, **kwargs)

    def _distributed(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Run an op on distributed tensors; what it does with local ones is seen, too."""
        super().__enter__()
        try:
            return DTensor.__torch_dispatch__(func, types, args, kwargs)
        finally:
            super().__exit__(None, None, None)

    def _count(self, packet: Any) -> None:
        tracker = self.advanced_module_tracker
        way = "backward" if tracker.is_bw else "forward"
        self.comm_counts[packet] += 1
        for name in dict.fromkeys(tracker.running):
            counts = self.comm_module_counts.setdefault(
                name, {"forward": defaultdict(int), "backward": defaultdict(int)})
            counts[way][packet] += 1

    def _note(self, func: Any, args: Any, kwargs: Any) -> None:
        tracker = self.advanced_module_tracker
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, DTensor)]
        entry = {"name": func, "input_shape": [t.shape for t in tensors],
                 "input_sharding": [t.placements for t in tensors],
                 "device_mesh": str(tensors[0].device_mesh) if tensors else "",
                 "is_bw": tracker.is_bw, "is_activation_checkpointing": False}
        self.comm_module_operation_counts.setdefault(
            tracker.running[-1], {"operations_list": []})["operations_list"].append(entry)

    # ---- what was seen --------------------------------------------------------------------------

    def get_comm_counts(self) -> dict[Any, int]:
        """How many collectives of each kind."""
        return self.comm_counts

    def get_total_counts(self) -> int:
        """How many collectives."""
        return sum(self.comm_counts.values())

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """The parameters of the modules that ran."""
        return self.advanced_module_tracker.module_parameters_dict

    def get_sharding_info(self) -> dict[str, Any]:
        """How they lie."""
        return self.advanced_module_tracker.sharding_dict

    def _set_noise_parameters(self, noise_level: int) -> tuple[bool, bool, bool, bool]:
        """Are ops on distributed tensors, modules' types, all ops, and trivial ops printed?"""
        return noise_level > 0, noise_level > 0, noise_level > 1, noise_level > 2

    def _get_operations_list(self, module_operation_counts: dict[str, list[dict[str, Any]]]
                             ) -> tuple[list[Any], list[Any]]:
        """A module's ops, forward and backward."""
        every = module_operation_counts.get("operations_list", [])
        return [e for e in every if not e["is_bw"]], [e for e in every if e["is_bw"]]

    def _kept(self, entries: list[dict[str, Any]], noise_level: int) -> list[dict[str, Any]]:
        own, _, every, trivial = self._set_noise_parameters(noise_level)
        return [e for e in entries
                if (every or (own and e["input_sharding"]))
                and (trivial or str(e["name"]) not in trivial_ops)]

    def _children(self, name: str) -> list[str]:
        found = self.advanced_module_tracker.module_helper_dict
        return [child for child, known in found.items() if known["parent"] == name]

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """The collectives of each module; from level 1 on modules' types, parameters, and ops on
        distributed tensors; from 2 on all ops; at 3 also those that only look at tensors."""
        return "\n".join(self._table("Global", "", noise_level)) + "\n"

    def _table(self, name: str, indent: str, noise_level: int) -> list[str]:
        lines = [f"{indent}{name}"]
        known = self.advanced_module_tracker.module_helper_dict.get(name)
        if known is not None and noise_level > 0:
            lines.append(f"{indent}*module type: {known['module_type']}")
            parameters = self.get_parameter_info().get(name, {})
            if parameters:
                lines.append(f"{indent}*Parameter List")
            lines += [f"{indent} *{key}: {self.get_sharding_info().get(f'{name}.{key}', '')}"
                      for key in parameters]
        entries = self._get_operations_list(self.comm_module_operation_counts.get(name, {}))
        counts = self.comm_module_counts.get(name, {"forward": {}, "backward": {}})
        for way, title, ran in (("forward", "FORWARD PASS", entries[0]),
                                ("backward", "BACKWARD PASS", entries[1])):
            if counts[way] or (ran and noise_level > 0):
                lines.append(f"{indent}  {title}")
                lines += [f"{_YELLOW}{indent}    *{packet}: {count}{_PLAIN}"
                          for packet, count in counts[way].items()]
                for entry in self._kept(ran, noise_level):
                    lines += self._lines_of(entry, f"{indent}    ")
        for child in self._children(name):
            lines += self._table(child, f"{indent}    ", noise_level)
        return lines

    @staticmethod
    def _lines_of(entry: dict[str, Any], indent: str) -> list[str]:
        lines = [f"{_YELLOW}{indent}**{entry['name']}{_PLAIN}"]
        if entry["input_sharding"]:
            lines += [f"{_RED}{indent}  shape: {entry['input_shape']}{_PLAIN}",
                      f"{_RED}{indent}  sharding: {entry['input_sharding']}{_PLAIN}",
                      f"{_RED}{indent}  device mesh: {entry['device_mesh']}{_PLAIN}"]
        return lines

    def _json(self, name: str, noise_level: int) -> dict[str, Any]:
        known = self.advanced_module_tracker.module_helper_dict.get(name, {"module_type": ""})
        entries = self._get_operations_list(self.comm_module_operation_counts.get(name, {}))
        counts = self.comm_module_counts.get(name, {"forward": {}, "backward": {}})
        parameters = self.get_parameter_info().get(name, {})
        found: dict[str, Any] = {
            "fqn": name, "module_type": known["module_type"],
            "parameters": [(key, str(self.get_sharding_info().get(f"{name}.{key}", "")))
                           for key in parameters],
            "children": [self._json(child, noise_level) for child in self._children(name)]}
        for way, ran in zip(("forward", "backward"), entries):
            found[f"collectives_{way}"] = [(str(p), n) for p, n in counts[way].items()]
            found[f"operations_{way}"] = [
                {**entry, "name": str(entry["name"]),
                 "input_shape": [str(s) for s in entry["input_shape"]],
                 "input_sharding": [str(s) for s in entry["input_sharding"]]}
                for entry in self._kept(ran, noise_level)]
        return found

    def generate_json_dump(self, file_name: str = "comm_mode_log.json", noise_level: int = 3
                           ) -> None:
        """Write what the table says into a file, as JSON."""
        with open(file_name, "w") as file:
            json.dump(self._json("Global", noise_level), file, indent=4)

    def log_comm_debug_tracing_table_to_file(self, file_name: str = "comm_mode_log.txt",
                                             noise_level: int = 3) -> None:
        """Write the table into a file, without colours."""
        text = re.sub(r"\x1b\[[0-9;]*m", "", self.generate_comm_debug_tracing_table(noise_level))
        with open(file_name, "w") as file:
            file.write(text)
