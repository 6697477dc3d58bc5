"""Libraries that say `import torch`, unmodified, each in a process of its own."""
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(library, program, folder):
    pytest.importorskip(library)
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, "-m", "flambeau", "run", str(path)], cwd=folder,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr


def test_einops(tmp_path):
    run("einops", """
        import torch
        import einops
        from einops.layers.torch import EinMix, Rearrange

        x = torch.randn(2, 3, 4, 4, requires_grad=True)
        patches = einops.rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2)
        assert torch.equal(patches[0, 1].view(2, 2, 3).permute(2, 0, 1), x[0, :, :2, 2:])
        assert torch.equal(einops.reduce(x, "b c h w -> b c", "max"), x.amax((2, 3)))
        torch.testing.assert_close(einops.einsum(x, x, "b c h w, b d h w -> b c d"),
                                   x.flatten(2) @ x.flatten(2).mT)
        packed, shapes = einops.pack([x, x[:, 0]], "b * h w")
        assert torch.equal(einops.unpack(packed, shapes, "b * h w")[1], x[:, 0])

        model = torch.nn.Sequential(
            EinMix("b c h w -> b h w o", weight_shape="c o", bias_shape="o", c=3, o=2),
            Rearrange("b h w o -> b (h w o)"), torch.nn.Linear(32, 1))
        model(x).sum().backward()
        assert x.grad.shape == x.shape and model[0].weight.grad is not None
    """, tmp_path)


def test_safetensors(tmp_path):
    run("safetensors", """
        import torch
        import safetensors.torch as st

        state = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2, dtype=torch.bfloat16),
                 "c": torch.tensor([1, 2]), "d": torch.tensor(True)}
        st.save_file(state, "x.safetensors", {"format": "pt"})
        for again in (st.load_file("x.safetensors"), st.load(st.save(state))):
            assert all(torch.equal(again[k], v) and again[k].dtype == v.dtype
                       for k, v in state.items())
        model, other = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
        st.save_model(model, "m.safetensors")
        st.load_model(other, "m.safetensors")
        assert torch.equal(model.weight, other.weight)
    """, tmp_path)
