"""Splits a graph into parts for an accelerator and parts that stay: what `OperatorSupportBase` says
can run there goes there, in as few and as large parts as the order of the graph allows."""
from __future__ import annotations

import copy
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node
from flambeau.fx.passes.operator_support import OperatorSupportBase
from flambeau.fx.passes.shape_prop import ShapeProp
from flambeau.fx.passes.split_utils import split_by_tags
from flambeau.fx.passes.tools_common import (
    CALLABLE_NODE_OPS,
    FxNetAccFusionsFinder,
    Tensors,
    get_node_target,
    is_node_output_tensor,
)
from flambeau.nn import Module
from flambeau.utils._pytree import tree_leaves

__all__ = ["FxNetAccNodesFinder", "FxNetSplitterInternalError", "NodeEvent", "NodeEventTracker",
           "SplitResult", "Subgraph", "generate_inputs_for_submodules"]

DEFAULT_MIN_ACC_MODULE_SIZE = 1
DEFAULT_SKIP_FUSION = DEFAULT_ALLOW_NON_TENSOR = False
TRACKER_MODE = int(os.environ.get("FX_NET_ACC_SPLITTER_TRACKER_MODE", "0"))
DUMP_PREFIX = os.environ.get("FX_NET_ACC_SPLITTER_TRACKER_DUMP_PREFIX", "")
log = logging.getLogger(__name__)


class _SplitterSettingBase:
    """How to split: the fewest ops of a part for the accelerator, whether ops that belong together
    may be taken apart, and whether what is no tensor may pass from part to part."""

    def __init__(self, min_acc_module_size: int = DEFAULT_MIN_ACC_MODULE_SIZE,
                 skip_fusion: bool = DEFAULT_SKIP_FUSION,
                 allow_non_tensor: bool = DEFAULT_ALLOW_NON_TENSOR, max_acc_splits: int = -1,
                 move_non_tensor_nodes_on_boundary: bool = False):
        self.min_acc_module_size = min_acc_module_size
        self.skip_fusion, self.allow_non_tensor = skip_fusion, allow_non_tensor
        self.max_acc_splits = max_acc_splits
        self.move_non_tensor_nodes_on_boundary = move_non_tensor_nodes_on_boundary


class NodeEvent:
    """Something that was decided of a node, because of another one or by itself."""

    def __init__(self, source: Node, desc: str, dep: Node | None = None):
        self.source, self.desc, self.dep = source, desc, dep

    def to_str(self) -> str:
        """The event as a line: `name: what (because of)`."""
        return f"{self.source.name}: {self.desc} {None if self.dep is None else self.dep.name}"


class NodeEventTracker:
    """The events of all nodes: not kept in mode 0, else written when they are dumped."""

    def __init__(self, tracker_mode: int, dump_prefix: str):
        self.tracker_mode, self.dump_prefix = tracker_mode, dump_prefix
        self.enabled = tracker_mode != 0
        self.events: list[NodeEvent] = []
        self.node_events: dict[str, list[int]] = {}
        self.writer: Callable[[str], object] = print

    def add(self, node: Node, desc: str, dep: Node | None = None) -> None:
        """Keep an event."""
        if self.enabled:
            self.events.append(NodeEvent(node, desc, dep))
            self.node_events.setdefault(node.name, []).append(len(self.events) - 1)

    def print_node(self, node_name: str, recursive: bool = False, tab: str = "",
                   writer: Callable[[str], object] | None = None) -> None:
        """Write the events of a node, and if asked for those of the nodes that they are due to."""
        for index in self.node_events.get(node_name, ()):
            event = self.events[index]
            (writer or self.writer)(tab + event.to_str())
            if recursive and event.dep is not None:
                self.print_node(event.dep.name, True, f"| {tab}", writer)

    def to_dict(self) -> dict[str, list[str]]:
        """The lines of each node."""
        return {name: [self.events[i].to_str() for i in places]
                for name, places in self.node_events.items()}

    def print_all(self, writer: Callable[[str], object] | None = None) -> None:
        """Write all events, node by node."""
        for name in self.node_events:
            (writer or self.writer)(f"Node: {name}:")
            self.print_node(name, tab="  ", writer=writer)

    def dump(self) -> None:
        """Write to files of the prefix what is kept."""
        if self.enabled and self.dump_prefix:
            with open(f"{self.dump_prefix}/events.txt", "w", encoding="utf-8") as file:
                self.print_all(lambda line: file.write(f"{line}\n"))


class FxNetAccNodesFinder:
    """The nodes that run on the accelerator: those that are supported, without those that give to
    or take from the others what is no tensor, unless that is allowed."""

    def __init__(self, module: GraphModule, operator_support: OperatorSupportBase,
                 allow_non_tensor: bool):
        self.module, self.operator_support = module, operator_support
        self.allow_non_tensor = allow_non_tensor
        self.acc_nodes: set[Node] = set()
        self.tracker = NodeEventTracker(TRACKER_MODE, DUMP_PREFIX)

    def reduce_acc_nodes_non_tensor_input_helper(self, cpu_worklist: list[Node]) -> None:
        """Take the users of such nodes off the accelerator, and theirs where need be."""
        while cpu_worklist:
            node = cpu_worklist.pop(0)
            for user in node.users:
                if user in self.acc_nodes:
                    self.acc_nodes.remove(user)
                    self.tracker.add(user, "acc_del|user_of_new_cpu_node", node)
                    if not is_node_output_tensor(user):
                        cpu_worklist.append(user)

    def reduce_acc_nodes_non_tensor_input(self) -> None:
        """Take off what needs from elsewhere what is no tensor."""
        self.reduce_acc_nodes_non_tensor_input_helper(
            [node for node in self.module.graph.nodes
             if node not in self.acc_nodes and node.op in CALLABLE_NODE_OPS
             and not is_node_output_tensor(node)])

    def reduce_acc_nodes_non_tensor_output(self) -> None:
        """Take off what gives to others what is no tensor."""
        while True:
            new_cpu_nodes = [node for node in self.acc_nodes if not is_node_output_tensor(node)
                             and any(user not in self.acc_nodes for user in node.users)]
            if not new_cpu_nodes:
                return
            for node in new_cpu_nodes:
                self.acc_nodes.remove(node)
                self.tracker.add(node, "acc_del|non_tensor_output_with_cpu_user")
            self.reduce_acc_nodes_non_tensor_input_helper(new_cpu_nodes)

    def __call__(self) -> set[Node]:
        submodules = dict(self.module.named_modules())
        self.acc_nodes = {
            node for node in self.module.graph.nodes if node.op in CALLABLE_NODE_OPS
            and self.operator_support.is_node_supported(submodules, node)}
        for node in self.acc_nodes:
            self.tracker.add(node, "acc|callable_and_operator_supported")
        if not self.allow_non_tensor:
            self.reduce_acc_nodes_non_tensor_input()
            self.reduce_acc_nodes_non_tensor_output()
        self.tracker.dump()
        return self.acc_nodes


class FxNetSplitterInternalError(Exception):
    """The nodes cannot be brought into an order: fusions depend on each other in a circle."""


@dataclass
class Subgraph:
    """Nodes that go together, and whether they run on the accelerator."""
    is_acc: bool
    nodes: list[Node]
    device_ordinal: int | None = None


class SplitResult(NamedTuple):
    """The split module, the inputs that each part got, and how the other parts' names begin."""
    split_module: GraphModule
    submodule_inputs: dict[str, Any]
    non_acc_submodule_prefix: str


def generate_inputs_for_submodules(model: Module, inputs: Sequence[Any],
                                   target_submodules: Iterable[str],
                                   deepcopy: bool = False) -> dict[str, Any]:
    """What those submodules are called with when the model is called."""
    found: dict[str, Any] = {}
    names = {module: name for name, module in model.named_modules()
             if name in set(target_submodules)}

    def note(module: Module, given: Any) -> None:
        found[names[module]] = copy.deepcopy(given) if deepcopy else given

    handles = [module.register_forward_pre_hook(note) for module in names]
    try:
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


class _SplitterBase:
    """What a backend derives its splitter from."""

    PCIe_BW = 100 * 2 ** 30

    def __init__(self, module: GraphModule, sample_input: Sequence[Any],
                 operator_support: OperatorSupportBase, settings: _SplitterSettingBase,
                 non_acc_submodule_name: str = "_run_on_cpu_",
                 return_tuple: bool = False,
                 nodes_finder: FxNetAccNodesFinder | None = None):
        if not isinstance(module, GraphModule):
            raise AssertionError(f"Expected GraphModule, got {type(module)}")
        self.module, self.sample_input = module, sample_input
        ShapeProp(module).propagate(*sample_input)
        self.settings, self.operator_support = settings, operator_support
        self.acc_nodes = (nodes_finder or FxNetAccNodesFinder(
            module, operator_support, settings.allow_non_tensor))()
        self.fusions: dict[Node, set[Node]] = {}
        if not settings.skip_fusion:
            self.fusions = FxNetAccFusionsFinder(module, self.acc_nodes)()
            self._merge_overlapping_fusions()
        self.deps = self.find_deps()
        self.update_deps_for_fusions()
        self.non_acc_submodule_name = non_acc_submodule_name
        self._node_submodule_map: dict[str, str] = {}
        self._return_tuple = return_tuple
        self.tags: list[str] = []

    def get_node_submodule_map(self) -> dict[str, str]:
        """The part that each node has come into, by their names."""
        return self._node_submodule_map

    # ---- what depends on what -------------------------------------------------------------------

    def find_deps(self) -> dict[Node, set[Node]]:
        """The calls that each call takes something from."""
        deps: dict[Node, set[Node]] = defaultdict(set)
        for node in self.module.graph.nodes:
            if node.op in CALLABLE_NODE_OPS:
                for user in node.users:
                    if user.op != "output":
                        deps[user].add(node)
        return deps

    def update_deps_for_fusions(self) -> None:
        """Let each node of a fusion depend on what any of them needs, and what uses any on all."""
        for node, fusion in self.fusions.items():
            for neighbor in fusion:
                self.deps[node].update(self.deps[neighbor] - fusion)
                for user in neighbor.users:
                    if user not in fusion:
                        self.deps[user].add(node)

    def _merge_overlapping_fusions(self) -> None:
        """Fusions that share a node become one."""
        for fusion in list(self.fusions.values()):
            whole = set(fusion).union(*[self.fusions.get(node, ()) for node in fusion])
            for node in whole:
                self.fusions[node] = whole

    # ---- what a backend may write ---------------------------------------------------------------

    def _lower_model_to_backend(self, mod: GraphModule, inputs: Tensors) -> Module:
        """The part as the backend runs it."""
        return mod

    def _find_culprit(self, mod: GraphModule, inputs: Tensors) -> str:
        """What in a part does not work, for the report."""
        return "Unable to find a culprit because _find_culprit() function is not implemented."

    def _draw_graph_based_on_node_support(self, mod: GraphModule,
                                          supported_nodes: list[Node]) -> None:
        """Draw the graph with what is supported, for the report."""

    # ---- reports --------------------------------------------------------------------------------

    def node_support_preview(self, dump_graph: bool = False) -> str:
        """Which kinds of nodes are supported and which are not, as a text; it is printed too."""
        submodules = dict(self.module.named_modules())
        kinds: tuple[dict[str, None], dict[str, None]] = {}, {}
        supported_nodes = []
        for node in self.module.graph.nodes:
            if node.op not in CALLABLE_NODE_OPS:
                continue
            kind = f"{get_node_target(submodules, node)}: ({_dtypes_of(node.args)}, " \
                   f"{ {k: d for k, v in node.kwargs.items() for d in _dtypes_of([v])} })"
            supported = self.operator_support.is_node_supported(submodules, node)
            kinds[not supported][kind] = None
            if supported:
                supported_nodes.append(node)
        if dump_graph:
            self._draw_graph_based_on_node_support(self.module, supported_nodes)
        report = "\nSupported node types in the model:\n" + "".join(
            f"{kind}\n" for kind in kinds[0])
        report += "\nUnsupported node types in the model:\n" + "".join(
            f"{kind}\n" for kind in kinds[1])
        print(report)
        return report

    def split_preview(self, dump_graph: bool = False) -> str:
        """How the graph would be split, and what passes between the parts, as a text; printed
        too."""
        subgraphs = self.put_nodes_into_subgraphs()
        report = f"Before removing small acc subgraphs, {_counts(subgraphs)}"
        subgraphs = self.remove_small_acc_subgraphs(subgraphs)
        report += f"After removing small acc subgraphs, {_counts(subgraphs)}"
        for i, subgraph in enumerate(subgraphs):
            report += f"{self._name(i, subgraph)}: {len(subgraph.nodes)} node(s)\n"
        self.tag(subgraphs)
        split = self.split(remove_tag=True)
        split.eval()
        slowest: tuple[float, str] = self.PCIe_BW, ""
        given = generate_inputs_for_submodules(
            split, self.sample_input, [name for name, _ in split.named_children()])
        for name, inputs in given.items():
            if not name.startswith(self.non_acc_submodule_name):
                text, rate = self._report_part(name, getattr(split, name), inputs)
                report += text
                if rate < slowest[0]:
                    slowest = rate, name
        report += ("\nTheoretical max qps (bounds by PCIe bandwidth) for this model is "
                   f"{slowest[0]}, bottleneck is submodule {slowest[1]}.")
        print(report)
        return report

    def _report_part(self, name: str, part: GraphModule, inputs: Any) -> tuple[str, float]:
        report = f"\nProcessing acc submodule {name}\n"
        size = {"Input": 0, "Output": 0}
        for what, nodes in (("Input", part.graph.find_nodes(op="placeholder")),
                            ("Output", part.graph.output_node().all_input_nodes)):
            report += f"Checking {what.lower()}s...\n"
            for node in nodes:
                meta = node.meta.get("tensor_meta")
                if hasattr(meta, "shape"):
                    size[what] += meta.shape.numel() * meta.dtype.itemsize
                else:
                    report += (f"{what} {node.name} is not a tensor, this might cause problems "
                               "during lowering!\n")
        rate = self.PCIe_BW / max(*size.values(), 1)
        report += (f"Total input size in bytes is {size['Input']}, total output size in bytes is "
                   f"{size['Output']}, theoretical max qps (bounds by PCIe bandwidth) for this "
                   f"submodule is {rate}.\n")
        try:
            self._lower_model_to_backend(part, inputs)(*inputs)
        except RuntimeError:
            return f"{report}Run into an error during lowering!\n" \
                   f"{self._find_culprit(part, inputs)}", rate
        return f"{report}Lowering and running succeed!\n", rate

    # ---- growing parts --------------------------------------------------------------------------

    def find_reverse_deps(self, tag_id: int | None = None) -> dict[Node, set[Node]]:
        """The calls that use each call; with a number, those of its part and of later ones."""
        def counts(user: Node) -> bool:
            return user.op in CALLABLE_NODE_OPS and (
                tag_id is None or int(user.tag.rpartition("_")[2]) < tag_id)
        return defaultdict(set, {node: {user for user in node.users if counts(user)}
                                 for node in self.module.graph.nodes
                                 if node.op in CALLABLE_NODE_OPS})

    def update_reverse_deps_for_fusions(self, deps: dict[Node, set[Node]]) -> None:
        """Let what uses a node of a fusion use all of it."""
        for node, fusion in self.fusions.items():
            deps[node] = set().union(*[deps[other] for other in fusion]) - fusion

    def find_parent_nodes_of_subgraph(self, tag: str) -> set[Node]:
        """The calls outside a part whose results it takes."""
        return {source for node in self.module.graph.nodes
                if node.op in CALLABLE_NODE_OPS and node.tag == tag
                for source in node.all_input_nodes
                if source.op in CALLABLE_NODE_OPS and source.tag != tag}

    def extend_acc_subgraph(self, tag: str) -> None:
        """Take into a part for the accelerator the supported calls that only it uses."""
        deps = self.find_reverse_deps(tag_id=int(tag.rpartition("_")[2]))
        self.update_reverse_deps_for_fusions(deps)
        parents, visited = self.find_parent_nodes_of_subgraph(tag), set[Node]()
        while parents:
            node = next((n for n in parents if deps[n] <= visited and n in self.acc_nodes), None)
            if node is None:
                return
            node.tag = tag
            parents.remove(node)
            visited.add(node)
            for other in {*self.fusions.get(node, ()), *node.all_input_nodes}:
                if other.op in CALLABLE_NODE_OPS and other.tag != tag:
                    parents.add(other)

    # ---- splitting ------------------------------------------------------------------------------

    def starter_nodes(self) -> tuple[set[Node], set[Node]]:
        """The calls that need no other call: those that stay, and those for the accelerator."""
        ready: tuple[set[Node], set[Node]] = set(), set()
        for node in self.module.graph.nodes:
            if node.op not in {"placeholder", "get_attr"}:
                continue
            for user in node.users:
                if user.op in CALLABLE_NODE_OPS:
                    ready[user in self.acc_nodes].add(user)
        return ready

    def put_nodes_into_subgraphs(self) -> list[Subgraph]:
        """All calls in parts, which take turns: each takes what it can before the next begins."""
        ready = self.starter_nodes()
        order = {node: i for i, node in enumerate(self.module.graph.nodes)}
        visited: set[Node] = set()
        on_acc = not any(len(self.deps[node]) == 0 for node in ready[False])
        subgraphs, current = [], Subgraph(on_acc, [])
        while ready[False] or ready[True]:
            possible = [node for node in ready[current.is_acc] if self.deps[node] <= visited]
            if not possible:
                if not current.nodes:
                    raise FxNetSplitterInternalError("Subgraph can't be empty")
                subgraphs.append(current)
                current = Subgraph(not current.is_acc, [])
                continue
            node = min(possible, key=order.__getitem__)
            ready[current.is_acc].remove(node)
            visited.add(node)
            current.nodes.append(node)
            if node in self.fusions:
                ready[node in self.acc_nodes].update(self.fusions[node] - visited)
            for user in node.users:
                if user.op in CALLABLE_NODE_OPS and user not in visited:
                    ready[user in self.acc_nodes].add(user)
        if current.nodes:
            subgraphs.append(current)
        if not subgraphs:
            raise FxNetSplitterInternalError("No subgraphs are created")
        return subgraphs

    def remove_small_acc_subgraphs(self, subgraphs: list[Subgraph]) -> list[Subgraph]:
        """Parts for the accelerator that are too small go into those beside them."""
        kept: list[Subgraph] = []
        for subgraph in subgraphs:
            small = len(subgraph.nodes) < self.settings.min_acc_module_size
            if subgraph.is_acc and small:
                print(f"Eliminating acc subgraph because it's smaller than the threshold: "
                      f"{len(subgraph.nodes)} < {self.settings.min_acc_module_size}")
            if (not subgraph.is_acc or small) and kept and not kept[-1].is_acc:
                kept[-1].nodes.extend(subgraph.nodes)
            else:
                subgraph.is_acc = subgraph.is_acc and not small
                kept.append(subgraph)
        return kept

    def _name(self, place: int, subgraph: Subgraph) -> str:
        return f"_run_on_acc_{place}" if subgraph.is_acc else \
            f"{self.non_acc_submodule_name}{place}"

    def tag(self, subgraphs: list[Subgraph]) -> None:
        """Write its part's name into each node."""
        self.tags = [self._name(i, subgraph) for i, subgraph in enumerate(subgraphs)]
        for tag, subgraph in zip(self.tags, subgraphs):
            for node in subgraph.nodes:
                if hasattr(node, "tag"):
                    raise FxNetSplitterInternalError(f"Node {node} was already tagged")
                node.tag = tag
                self._node_submodule_map[node.name] = tag

    def split(self, remove_tag: bool = False) -> GraphModule:
        """The module of the parts that were tagged."""
        made = split_by_tags(self.module, self.tags, return_tuple=self._return_tuple)
        if remove_tag:
            for node in self.module.graph.nodes:
                if hasattr(node, "tag"):
                    del node.tag
        return made

    def __call__(self) -> GraphModule:
        subgraphs = self.remove_small_acc_subgraphs(self.put_nodes_into_subgraphs())
        acc = sum(subgraph.is_acc for subgraph in subgraphs)
        if 0 <= self.settings.max_acc_splits < acc:
            raise ValueError("Cannot fulfill max_acc_splits limit. This may cause split "
                             "fragmentation and result in performance issues.")
        print(f"Got {acc} acc subgraphs and {len(subgraphs) - acc} non-acc subgraphs")
        self.tag(subgraphs)
        return self.split()

    def generate_split_results(self) -> SplitResult:
        """Split, and note what the parts are called with."""
        split = self()
        names = [name for name, _ in split.named_children()]
        return SplitResult(split, generate_inputs_for_submodules(split, self.sample_input, names),
                           self.non_acc_submodule_name)


def _dtypes_of(args: Iterable[Any]) -> tuple[Any, ...]:
    """The element types of the tensors among a call's arguments."""
    metas = [arg.meta.get("tensor_meta") for arg in tree_leaves(list(args))
             if isinstance(arg, Node)]
    return tuple([meta.dtype for meta in metas if hasattr(meta, "dtype")])


def _counts(subgraphs: list[Subgraph]) -> str:
    acc = sum(subgraph.is_acc for subgraph in subgraphs)
    return (f"total {len(subgraphs)} subgraphs are created: {acc} acc subgraphs and "
            f"{len(subgraphs) - acc} cpu subgraphs.\n")
