"""A program as users write them, which type checkers are to accept as it stands."""
import flambeau as torch
import flambeau.nn.functional as F
from flambeau import Tensor, nn, optim
from flambeau.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(width, 3)
        self.register_buffer("count", torch.zeros(1))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm(self.first(x))) * self.scale
        return self.last(self.drop(h))


class Data(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.x, self.y = torch.randn(n, 4), torch.randint(0, 3, (n,))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return self.x[i], self.y[i]


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        x, = ctx.saved_tensors
        return 2 * x * grad


def train(model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]]) -> float:
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=1)
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    schedule.step()
    return total


model = Net()
loader = DataLoader(Data(16), batch_size=4, shuffle=True)
loss = train(model, loader)
values, indices = torch.max(torch.randn(3, 4), dim=1)
best = torch.randn(3, 4).max(dim=1).values
u, s, v = torch.linalg.svd(torch.randn(3, 3))
top = torch.topk(best, 2)
k: Tensor = top.indices
ordered, order = torch.sort(best)
x = torch.randn(4, 4)
row: Tensor = x[0]
x[1:, ::2] = 0.0
x[x > 0] = 1
mask = (x > 0) & (x < 1)
y = x @ x.T + 1.0
z: Tensor = -y ** 2 / 3
shape: torch.Size = z.shape
n, m = z.shape
total: float = z.sum().item()
flag = bool((z > 0).any())
torch.save(model.state_dict(), "m.pt")
model.load_state_dict(torch.load("m.pt"))
seq = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
for name, p in seq.named_parameters():
    print(name, p.shape, p.grad)
normal = torch.distributions.Normal(0.0, 1.0)
sample = normal.rsample((3,)).to(torch.float32)
device = torch.device("cpu")
with torch.no_grad():
    out = model(torch.ones(1, 4).to(device))
out2 = Square.apply(torch.ones(2, requires_grad=True))
grads = torch.autograd.grad(out2.sum(), [x])
parts = torch.cat([x, x], dim=0).chunk(2)
one, two = torch.split(x, 2)
stacked = torch.stack([one, two])
a, b = random_split(Data(10), [5, 5])
t = TensorDataset(x, y)
print(stacked.tolist(), float(total), len(t))
