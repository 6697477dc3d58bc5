"""Public functions, classes and methods have PyTorch's parameters: names, kinds and defaults."""
import json
from pathlib import Path

import signatures

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "signatures.json").read_text())

# PyTorch's takes any arguments and passes them on; ours says which.
SAY_MORE = {
    "torch": {"TypedStorage.from_buffer", "UntypedStorage", "UntypedStorage.share_memory_"},
    "torch.compiler": {"compile"},
    "torch.distributed.checkpoint.default_planner": {"DTensor"},
    "torch.distributed.checkpoint.format_utils": {
        "BroadcastingTorchSaveReader.set_up_storage_reader"},
    "torch.jit": {"RecursiveScriptModule"},
}
# Made by the library alone: their constructors are no interface.
OWN_CONSTRUCTORS = {
    "torch.autograd": {"NestedIOFunction"},
    "torch.distributed.launcher.api": {"get_default_numa_options"},
    "torch.fx.operator_schemas": {"OpOverload", "OpOverloadPacket"},
    "torch.jit": {"ScriptModule", "TopLevelTracedModule", "TracedModule", "trace", "trace_module"},
    "torch.multiprocessing.reductions": {"rebuild_storage_fd", "rebuild_storage_filename",
                                         "rebuild_tensor"},
    "torch.package": {"PackagingError"},
    "torch.utils.backcompat": {"Warning"},
}


def test_signatures_are_pytorch_s():
    found = signatures.signatures(RECORDED, "flambeau")
    different = [
        f"{module}.{name}{recorded}, not {found[module][name]}"
        for module, names in RECORDED.items() for name, recorded in names.items()
        if name in found.get(module, ()) and recorded != found[module][name]
        and not {name, name.partition(".")[0]} & (SAY_MORE.get(module, set())
                                                  | OWN_CONSTRUCTORS.get(module, set()))]
    assert not different, "\n".join(different)
    assert sum(map(len, found.values())) > 3000
