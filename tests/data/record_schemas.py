"""Writes flambeau/export/schemas.txt: the calls that PyTorch's dispatcher knows, by name.

Run where PyTorch is installed: `python tests/data/record_schemas.py`.
"""
import re
from pathlib import Path

import torch

SKIPPED = re.compile(
    r"_out$|^out$|_out_|names|dimname|hacked_twin|prim_|list_"
    r"|_backward|mkldnn|miopen|cudnn|fbgemm|quantize|_copy$|^q_|^(?!__)_|batch_norm_|_sparse")
# Python makes tensors of these numbers
HIDDEN = re.compile(r"(add|sub|mul|div|floor_divide)_?\.Scalar")
NATIVE = {"_assert_tensor_metadata", "_conj", "_log_softmax", "_native_batch_norm_legit",
          "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training",
          "_pack_padded_sequence", "_softmax", "_to_copy", "_unsafe_view", "_weight_norm",
          "alias", "constant_pad_nd", "convolution", "copy", "fill", "lift_fresh_copy",
          "max_pool2d_with_indices", "max_pool3d_with_indices", "native_dropout",
          "native_group_norm", "native_layer_norm", "nll_loss2d_forward", "nll_loss_forward",
          "rsub", "slice", "sym_size", "upsample_bilinear2d", "upsample_nearest2d"}
MODULES = (torch, torch.Tensor, torch._C._nn, torch._C._linalg, torch._C._special, torch._C._fft)


def public(name: str) -> bool:
    short = re.sub("^(linalg|special|fft)_", "", name)
    return name in NATIVE or any(hasattr(m, n) for m in MODULES for n in {name, short})


def lines():
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space != "aten" or any(argument.is_out for argument in schema.arguments):
            continue
        if name not in NATIVE and any(map(SKIPPED.search, (name, schema.overload_name))):
            continue
        text = str(schema).removeprefix("aten::")
        call, _, result = text.rpartition(" -> ")
        takes_tensors = "Tensor" in (call if name in NATIVE else result)
        if not takes_tensors or "Dict" in call or not public(name) or HIDDEN.match(call):
            continue
        call = re.sub(r"\([a-z!| ]+(-> \*)?\)", "", call).replace("SymInt", "int")
        yield call.replace("ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                           "bool? pin_memory=None", "OPTIONS")


if __name__ == "__main__":
    path = Path(__file__).parents[2] / "flambeau" / "export" / "schemas.txt"
    path.write_text("\n".join(sorted(set(lines()))) + "\n")
