"""Public functions, classes and methods have PyTorch's parameters: names, kinds and defaults."""
import json
from pathlib import Path

import signatures

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "signatures.json").read_text())

# PyTorch's takes any arguments and passes them on; ours says which.
SAY_MORE = {
    "torch": {"UntypedStorage", "lu", "sym_sum", "unique", "unique_consecutive"},
    "torch.compiler": {"compile"},
    "torch.nn": {"Container", "NLLLoss2d", "RNNBase.forward"},
    "torch.nn.functional": {
        "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
        "fractional_max_pool2d", "fractional_max_pool3d", "max_pool1d", "max_pool2d",
        "max_pool3d"},
}
# Made by the library alone: their constructors are no interface.
OWN_CONSTRUCTORS = {
    "torch": {"SymBool", "SymFloat", "SymInt", "dtype", "layout", "memory_format", "no_grad",
              "qscheme"},
    "torch.ao.quantization": {"FakeQuantizeBase.forward", "FixedQParamsObserver.forward",
                              "QConfigAny"},
    "torch.autograd": {"NestedIOFunction.forward"},
    "torch.autograd.profiler": {"FunctionEvent"},
    "torch.hub": {"tqdm"},
    "torch.jit": {"RecursiveScriptModule", "ScriptModule", "TopLevelTracedModule", "TracedModule",
                  "trace", "trace_module"},
    "torch.library": {"OpOverload", "register_fake"},
    "torch.package": {"PackagingError"},
    "torch.utils.checkpoint": {"GraphExecGroup"},
    "torch.utils.data": {"random_split"},
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
