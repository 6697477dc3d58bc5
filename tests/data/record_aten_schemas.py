"""Write `flambeau/dispatch/aten/schemas.txt`: the schema of each overload of PyTorch's `aten`, and
what its dispatcher says of it. Run where PyTorch 2.13 is installed.

A line is `name.overload(arguments) -> results  # facts`: the tags, `implicit` and `explicit` for
the kind of a composite's kernel, `structured` for a kernel that serves all dense backends,
`not_compliant` for what lacks `pt2_compliant_tag`, and the further backends that have a kernel.
"""
from __future__ import annotations

from pathlib import Path

import torch

BACKENDS = ("QuantizedCPU", "MkldnnCPU", "SparseCPU", "SparseMeta", "SparseCsrCPU",
            "SparseCsrMeta", "NestedTensorCPU")
SHORT = {
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None":
        "OPTIONS",
    ", *, Tensor(a!) out) -> Tensor(a!)": " OUT",
}


def facts(name: str, overload: object) -> list[str]:
    tags = {str(tag).removeprefix("Tag.") for tag in overload.tags}
    found = [] if "pt2_compliant_tag" in tags else ["not_compliant"]
    found += sorted(tags - {"pt2_compliant_tag"})
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    for kind in ("Implicit", "Explicit"):
        if has_kernel(name, f"Composite{kind}Autograd"):
            found.append(kind.lower())
    if has_kernel(name, "CompositeExplicitAutogradNonFunctional"):
        found.append("structured")
    return found + [key for key in BACKENDS if has_kernel(name, key)]


def main() -> None:
    lines = []
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        space, _, rest = name.partition("::")
        if space != "aten":
            continue
        base, _, overload = rest.partition(".")
        op = getattr(getattr(torch.ops.aten, base), overload or "default")
        line = str(op._schema).removeprefix("aten::")
        for long, short in SHORT.items():
            line = line.replace(long, short)
        said = facts(name, op)
        lines.append(f"{line}  # {' '.join(said)}" if said else line)
    path = Path(__file__).parents[2] / "flambeau" / "dispatch" / "aten" / "schemas.txt"
    path.write_text("\n".join(lines) + "\n")
    print(len(lines), path.stat().st_size)


if __name__ == "__main__":
    main()
