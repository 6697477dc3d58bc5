"""Train a small convolutional network on scikit-learn's handwritten digits.

    flambeau run examples/digits.py            (or: python examples/digits.py, on PyTorch)

An ordinary PyTorch script: it prints its progress, keeps the best weights in a checkpoint, and saves
a plot of loss and accuracy as PNG.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

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


class Net(nn.Module):
    """Two blocks of convolution, batch normalisation and pooling, then two linear layers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.dropout = nn.Dropout(0.25)
        self.hidden = nn.Linear(32 * 2 * 2, 64)
        self.output = nn.Linear(64, 10)

    def forward(self, x):
        x = self.features(x).flatten(1)
        return self.output(F.relu(self.hidden(self.dropout(x))))


def load(batch_size, seed):
    """Loaders of the training and the test scans (8 × 8 pixels, values scaled to 0..1)."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    parts = train_test_split(
        images, digits.target, test_size=0.2, random_state=seed, stratify=digits.target
    )
    x_train, x_test, y_train, y_test = (torch.from_numpy(np.ascontiguousarray(p)) for p in parts)
    train = DataLoader(TensorDataset(x_train, y_train), batch_size=batch_size, shuffle=True)
    return train, DataLoader(TensorDataset(x_test, y_test), batch_size=256)


def accuracy(model, loader):
    """The share of digits that the model names rightly."""
    model.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    return right / total


def plot(losses, accuracies, path):
    """Draw the loss of each step and the test accuracy of each epoch."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    left.semilogy(losses, linewidth=0.8)
    left.set(title="training loss", xlabel="step")
    right.plot(range(1, len(accuracies) + 1), [100 * a for a in accuracies], marker=".")
    right.set(title="test accuracy (%)", xlabel="epoch")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="stop after so many steps, printing each loss")
    parser.add_argument("--out", type=Path, default=Path("digits"), help="folder for the results")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train, test = load(args.batch_size, args.seed)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    args.out.mkdir(parents=True, exist_ok=True)
    checkpoint = args.out / "digits.pt"

    losses, accuracies, best = [], [], 0.0
    for epoch in range(1, args.epochs + 1):
        model.train()
        progress = tqdm(train, desc=f"epoch {epoch:2d}/{args.epochs}", disable=bool(args.steps))
        for x, y in progress:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            progress.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            if args.steps:
                print(f"step {len(losses)}: {losses[-1]:.6f}")
                if len(losses) == args.steps:
                    return
        scheduler.step()
        accuracies.append(accuracy(model, test))
        print(f"test accuracy {100 * accuracies[-1]:.2f} %")
        if accuracies[-1] >= best:
            best = accuracies[-1]
            torch.save(model.state_dict(), checkpoint)

    restored = Net()
    restored.load_state_dict(torch.load(checkpoint))
    print(f"best weights, restored from {checkpoint}: {100 * accuracy(restored, test):.2f} %")
    plot(losses, accuracies, args.out / "digits.png")
    print(f"plot: {args.out / 'digits.png'}")


if __name__ == "__main__":
    main()
