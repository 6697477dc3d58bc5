"""Train a small GPT, character by character, on the documentation that comes with Python.

    flambeau run examples/char_gpt.py          (or: python examples/char_gpt.py, on PyTorch)

The text is `pydoc_data.topics` of the standard library. Training can be interrupted: run the script
again with `--resume` and it goes on from its last checkpoint.
"""

import argparse
import math
from pathlib import Path
from pydoc_data.topics import topics

import torch
from torch import nn
from torch.nn import functional as F

try:
    from tqdm import tqdm
except ImportError:

    class tqdm:
        """The same without a progress bar."""

        def __init__(self, items, **options):
            self.items = items

        def __iter__(self):
            return iter(self.items)

        def set_postfix(self, **values):
            pass


class Block(nn.Module):
    """Causal self-attention and a two-layer network, each on a normalised residual stream."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """A stack of blocks between an embedding and a head that share their weights."""

    def __init__(self, vocabulary, context, width, heads, layers):
        super().__init__()
        self.context = context
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self.initialise)
        self.head.weight = self.token.weight

    @staticmethod
    def initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, tokens, count, temperature=0.8):
        """Append `count` sampled tokens."""
        self.eval()
        for _ in range(count):
            logits = self(tokens[:, -self.context :])[:, -1] / temperature
            tokens = torch.cat([tokens, torch.multinomial(F.softmax(logits, -1), 1)], 1)
        return tokens


def batch(data, size, context):
    """Random windows of the text, and the same windows one character later."""
    starts = torch.randint(len(data) - context - 1, (size,))
    windows = torch.stack([data[i : i + context + 1] for i in starts.tolist()])
    return windows[:, :-1], windows[:, 1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=300, help="characters to print at the end")
    parser.add_argument("--checkpoint", type=Path, default=Path("char_gpt.pt"))
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--verbose", action="store_true", help="print the loss of each step")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    text = "\n".join(topics[name] for name in sorted(topics))
    alphabet = sorted(set(text))
    number = {character: i for i, character in enumerate(alphabet)}
    data = torch.tensor([number[c] for c in text])
    model = GPT(len(alphabet), args.context, args.width, args.heads, args.layers)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=args.lr,
        betas=(0.9, 0.99),
    )
    warmup = max(1, args.steps // 20)

    def rate(step):
        if step < warmup:
            return (step + 1) / warmup
        progress = (step - warmup) / max(1, args.steps - warmup)
        return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, progress)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    first = 0
    if args.resume:
        state = torch.load(args.checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["rng"])
        first = state["step"]
        print(f"resumed after step {first}")

    def save(step):
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.get_rng_state(),
            "step": step,
        }
        torch.save(state, args.checkpoint)

    model.train()
    progress = tqdm(range(first, args.steps), disable=args.verbose)
    for step in progress:
        x, y = batch(data, args.batch_size, args.context)
        loss = F.cross_entropy(model(x).reshape(-1, len(alphabet)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        progress.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        if args.verbose:
            print(f"step {step + 1}: {loss.item():.6f}")
        if (step + 1) % 100 == 0 or step + 1 == args.steps:
            save(step + 1)

    start = torch.tensor([[number["\n"]]])
    print("".join(alphabet[i] for i in model.generate(start, args.sample)[0].tolist()))
    print(f"checkpoint: {args.checkpoint}")


if __name__ == "__main__":
    main()
