"""Record what each class of PyTorch's nodes saves, in flambeau/core/autograd/nodes.txt: run where
PyTorch is."""
from pathlib import Path

FILE = Path(__file__).parents[2] / "flambeau" / "core" / "autograd" / "nodes.txt"


def main():
    import torch
    known = torch._C._functions
    lines = []
    for name in sorted(dir(known)):
        saved = [n[7:] for n in dir(getattr(known, name)) if n.startswith("_saved_")]
        if "Backward" in name:
            lines.append(" ".join([name, *saved]))
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
