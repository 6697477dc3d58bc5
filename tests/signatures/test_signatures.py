"""Public functions, classes and methods have PyTorch's parameters: names, kinds and defaults."""
import json
from pathlib import Path

import signatures

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "signatures.json").read_text())

# PyTorch's takes any arguments and passes them on; ours says which.
SAY_MORE = {
    "torch": {"UntypedStorage"},
    "torch.compiler": {"compile"},
    "torch.nn": {"Container", "RNNBase.forward"},
}
# Made by the library alone: their constructors are no interface.
OWN_CONSTRUCTORS = {
    "torch.ao.quantization": {"FakeQuantizeBase.forward", "FixedQParamsObserver.forward",
                              "QConfigAny"},
    "torch.autograd": {"NestedIOFunction.forward"},
    "torch.autograd.profiler": {"FunctionEvent"},
    "torch.hub": {"tqdm"},
    "torch.jit": {"RecursiveScriptModule", "ScriptModule", "TopLevelTracedModule", "TracedModule",
                  "trace", "trace_module"},
    "torch.library": {"OpOverload"},
    "torch.package": {"PackagingError"},
}


def test_signatures_are_pytorch_s():
    found = signatures.signatures(RECORDED, "flambeau")
    different = [
        f"{module}.{name}{recorded}, not {found[module][name]}"
        for module, names in RECORDED.items() for name, recorded in names.items()
        if name in found[module] and recorded != found[module][name]
        and name not in SAY_MORE.get(module, set()) | OWN_CONSTRUCTORS.get(module, set())]
    assert not different, "\n".join(different)
    assert sum(map(len, found.values())) > 2000
