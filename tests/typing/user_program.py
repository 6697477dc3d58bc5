"""A program as users write them, which type checkers are to accept as it stands."""
import io
import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import Tensor, nn, optim
from flambeau.func import functional_call, grad, jacrev, vmap
from flambeau.nn.utils.rnn import pad_sequence
from flambeau.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, ReduceLROnPlateau, StepLR
from flambeau.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, random_split

# ---- modules -------------------------------------------------------------------------------------

class Net(nn.Module):
    count: Tensor

    def __init__(self, width: int = 8, depth: int = 2) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.heads = nn.ModuleDict({"main": nn.Linear(width, 3)})
        self.register_buffer("count", torch.zeros(1))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm(self.first(x))) * self.scale
        for block in self.blocks:
            h = h + F.gelu(block(h))
        self.count += 1
        return self.heads["main"](self.drop(h))


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(OrderedDict([
            ("conv", nn.Conv2d(3, 8, 3, padding=1)), ("bn", nn.BatchNorm2d(8)),
            ("act", nn.ReLU(inplace=True)), ("pool", nn.AdaptiveAvgPool2d((1, 1)))]))
        self.rnn = nn.LSTM(8, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.embed = nn.Embedding(10, 8, padding_idx=0)

    def forward(self, image: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.features(image).flatten(1)
        output, (h, c) = self.rnn(self.embed(words))
        h = h * c[:1, :1, :1]
        attended, weights = self.attention(output, output, output, need_weights=True)
        return seen, attended.mean(dim=1) * weights.mean() + h.mean()

    def reset(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)


# ---- data ----------------------------------------------------------------------------------------

class Data(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.x, self.y = torch.randn(n, 4), torch.randint(0, 3, (n,))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return self.x[i], self.y[i]


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        yield from torch.arange(3.0)


def collate(batch: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    xs, ys = zip(*batch)
    return pad_sequence(list(xs), batch_first=True), torch.stack(ys)


# ---- functions and hooks -------------------------------------------------------------------------

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, power: int) -> Tensor:
        ctx.save_for_backward(x)
        ctx.power = power
        return x ** power

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        x, = ctx.saved_tensors
        return ctx.power * x ** (ctx.power - 1) * grad_output, None


def watch(model: nn.Module) -> list[tuple[int, ...]]:
    shapes: list[tuple[int, ...]] = []

    def hook(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        shapes.append(tuple(output.shape))
    handles = [m.register_forward_hook(hook) for m in model.children()]
    model(torch.ones(1, 4))
    for handle in handles:
        handle.remove()
    return shapes


def train(model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]], epochs: int = 1) -> float:
    optimizer = optim.AdamW([{"params": model.parameters(), "lr": 1e-3}], weight_decay=0.01)
    schedule = CosineAnnealingLR(optimizer, T_max=epochs)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    total = 0.0
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(x), y) + 0.01 * sum(p.square().sum() for p in model.parameters())
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            total += loss.item() / float(norm)
        schedule.step()
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    return total


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]]) -> float:
    model.eval()
    right = sum(int((model(x).argmax(dim=-1) == y).sum()) for x, y in loader)
    return right / len(loader.dataset)  # type: ignore[arg-type]


# ---- running them --------------------------------------------------------------------------------

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
train_set, test_set = random_split(Data(16), [12, 4])
loader = DataLoader(train_set, batch_size=4, shuffle=True, collate_fn=collate)
loss = train(model, loader)
print(f"{loss:.3f}", accuracy(model, loader), watch(model), device.type, device.index)
sgd = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
schedulers = [StepLR(sgd, step_size=1), LambdaLR(sgd, lambda epoch: 0.9 ** epoch)]
plateau = ReduceLROnPlateau(sgd, patience=2)
plateau.step(loss)
rate: list[float] = schedulers[0].get_last_lr()
pair = TensorDataset(torch.ones(4, 2), torch.zeros(4))
batches = [x for x, in zip(DataLoader(Stream(), batch_size=None))]

# ---- results that are tuples ---------------------------------------------------------------------

x = torch.randn(4, 4, dtype=torch.float32, device=device)
values, indices = torch.max(x, dim=1)
best: Tensor = x.max(dim=1).values
lowest: Tensor = torch.min(x, 1)[0]
largest: Tensor = x.max()
u, s, vh = torch.linalg.svd(x, full_matrices=False)
eigenvalues, vectors = torch.linalg.eigh(x @ x.T)
q, r = torch.linalg.qr(x)
top = torch.topk(best, k=2, dim=-1)
where: Tensor = top.indices
ordered, order = torch.sort(best, descending=True)
again: Tensor = x.sort(dim=0).values.argsort(0)
middle, place = x.median(dim=-1, keepdim=True)
found, inverse, counts = torch.unique(where, return_inverse=True, return_counts=True)
spread, center = torch.std_mean(x, dim=0)
one, two = torch.split(x, 2)
first, *others = x.unbind(0)
rows, columns = torch.where(x > 0)
grid_x, grid_y = torch.meshgrid(torch.arange(3), torch.arange(2), indexing="ij")

# ---- indexing and arithmetic ---------------------------------------------------------------------

row: Tensor = x[0]
cell: Tensor = x[0, -1]
part = x[1:, ::2, None][..., 0]
x[1:, ::2] = 0.0
x[0] = torch.arange(4)
x[x > 0] = 1
x[[0, 1], :] = row.clone()
mask = (x > 0) & ~(x < 1) | (x == 2) ^ (x != 3)
y = 2 * x @ x.T + 1.0 - row / 2 + 3 // (row.abs() + 1) - 2 ** row
y += 1
y *= x
z: Tensor = -y ** 2 % 3 + abs(y) - (1 - y) * (1 / (y + 1e-3))
shape: torch.Size = z.shape
n, m = z.shape
area: int = n * m + z.numel() + z.size(0) + z.dim() + shape.numel()
mean: float = z.mean().item() + math.pi
numbers: list[Any] = z.tolist()
flag = bool((z > 0).any()) and z.is_floating_point() and z.requires_grad
wide = torch.cat([x, y], dim=1).reshape(-1, 2).permute(1, 0).contiguous().view(2, -1)
pieces = torch.stack((x, y)).transpose(0, 1).squeeze(0).unsqueeze(-1).expand(-1, -1, -1, 2)
half = x.half().to(torch.bfloat16).to("cpu", dtype=torch.float64).type_as(y).float().cpu()
kind: torch.dtype = half.dtype
array = half.detach().numpy()
back = torch.from_numpy(array).clone().requires_grad_(True)
product = torch.einsum("ij,jk->ik", x, y).clamp(min=0, max=1).sum(dim=(0, 1), keepdim=True)
chosen = x.gather(1, order.view(-1, 1)[:1].expand(4, 1)).masked_fill(mask[:, :1], 0.0)

# ---- derivatives ---------------------------------------------------------------------------------

w = torch.ones(3, requires_grad=True)
out: Tensor = Square.apply(w, 2)
out.register_hook(lambda g: g * 2)
grads: tuple[Tensor, ...] = torch.autograd.grad(out.sum(), [w], create_graph=True)
out.sum().backward(retain_graph=True)
assert w.grad is not None
slope = w.grad.norm(p=2) + torch.nn.utils.parameters_to_vector(model.parameters()).norm()
curved = vmap(grad(lambda v: (v ** 3).sum()))(torch.ones(2, 3))
jacobian = jacrev(torch.sin)(w.detach())
state = {name: p.detach() for name, p in model.named_parameters()}
called = functional_call(model, state, (torch.ones(1, 4),))
with torch.enable_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    lifted = model(torch.ones(2, 4))

# ---- files and distributions ---------------------------------------------------------------------

file = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": sgd.state_dict(), "epoch": 3}, file)
file.seek(0)
checkpoint = torch.load(file, map_location="cpu", weights_only=True)
missing, unexpected = model.load_state_dict(checkpoint["model"], strict=False)
normal = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
sample: Tensor = normal.rsample(torch.Size([2])).to(device)
surprise: Tensor = -normal.log_prob(sample).sum(-1)
choice: Tensor = torch.distributions.Categorical(logits=surprise).sample()
distance = torch.distributions.kl_divergence(normal, torch.distributions.Normal(0.0, 1.0))
print(sample.tolist(), int(choice), distance.shape, len(pair), numbers[0], mean, kind.itemsize)
