"""Public functions, classes and methods have PyTorch's parameters: names, kinds and defaults."""
import json
from pathlib import Path

import signatures

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "signatures.json").read_text())

# PyTorch's takes any arguments and passes them on; ours says which.
SAY_MORE = {
    "torch": {"UntypedStorage.share_memory_"},
    "torch.compiler": {"compile"},
    "torch.distributed.checkpoint.default_planner": {"DTensor"},
}
# Made by the library alone: their constructors are no interface.
OWN_CONSTRUCTORS = {
    "torch.autograd": {"NestedIOFunction"},
    "torch.fx.operator_schemas": {"OpOverload", "OpOverloadPacket"},
    "torch.jit": {"RecursiveScriptModule"},
    "torch.multiprocessing.reductions": {"rebuild_storage_fd", "rebuild_storage_filename",
                                         "rebuild_tensor"},
    "torch.package": {"PackagingError"},
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


def test_operators_of_tensors():
    from flambeau import Tensor
    assert signatures.text_of(Tensor.__getitem__) == "(self, key, /)"
    assert signatures.text_of(Tensor.__setitem__) == "(self, key, value, /)"
    assert signatures.text_of(Tensor.__contains__) == "(self, element, /)"
    assert signatures.text_of(Tensor.__dlpack__) == \
        "(self, *, stream=-1, max_version=None, dl_device=None, copy=None)"
    for name in ("rdiv", "rfloordiv", "rlshift", "rmatmul", "rmod", "rpow", "rrshift", "rtruediv"):
        assert signatures.text_of(getattr(Tensor, f"__{name}__")) == "(self, other)"
