"""Training of the blocks that newer networks are made of, and drawing from a trained one."""

from .networks import perceptron, steps
from .registry import row


def classify(torch, net, x, classes=10, optimizer="AdamW"):
    y = torch.randint(classes, x.shape[:1])
    return steps(torch, optimizer, lambda: torch.nn.functional.cross_entropy(net(x), y), net)


@row("training", "inverted residuals of a mobile network, 8 x 3 x 48 x 48")
def _mobile(torch):
    nn = torch.nn

    def block(inside, outside, stride):
        wide = 4 * inside
        return [nn.Conv2d(inside, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
                nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide),
                nn.ReLU6(), nn.Conv2d(wide, outside, 1, bias=False), nn.BatchNorm2d(outside)]

    net = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.Hardswish(), *block(16, 24, 2),
                        *block(24, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    return classify(torch, net, torch.randn(8, 3, 48, 48), optimizer="RMSprop")


@row("training", "blocks with depthwise 7 x 7 and layer norm, 4 x 3 x 64 x 64")
def _depthwise(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.mix, self.norm = nn.Conv2d(d, d, 7, padding=3, groups=d), nn.LayerNorm(d)
            self.net = perceptron(torch, d, 4 * d, d, act="GELU")

        def forward(self, x):
            return x + self.net(self.norm(self.mix(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)

    net = nn.Sequential(nn.Conv2d(3, 48, 4, 4), Block(48), Block(48), nn.AdaptiveAvgPool2d(1),
                        nn.Flatten(), nn.Linear(48, 10))
    return classify(torch, net, torch.randn(4, 3, 64, 64))


@row("training", "rotated queries in groups, RMS norm, gated units, 3 x 80 tokens")
def _grouped_queries(torch):
    nn, F = torch.nn, torch.nn.functional
    width, heads, groups, each = 96, 6, 2, 16
    angles = torch.outer(torch.arange(80.0), 1 / 10000 ** (torch.arange(0, each, 2) / each))
    cos, sin = (torch.cat([a, a], -1) for a in (angles.cos(), angles.sin()))

    def rotate(x):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    names = {"q": (width, width), "k": (width, groups * each), "v": (width, groups * each),
             "o": (width, width), "gate": (width, 256), "up": (width, 256), "down": (256, width)}
    parts = nn.ModuleDict({n: nn.Linear(*s, bias=False) for n, s in names.items()})
    norms, embed = nn.ModuleList([nn.RMSNorm(width), nn.RMSNorm(width)]), nn.Embedding(300, width)
    tokens, targets = torch.randint(300, (3, 80)), torch.randint(300, (240,))

    def split(x):
        return x.view(3, 80, -1, each).transpose(1, 2)

    def loss():
        x = embed(tokens)
        y = norms[0](x)
        q, k, v = rotate(split(parts["q"](y))), rotate(split(parts["k"](y))), split(parts["v"](y))
        k, v = (t.repeat_interleave(heads // groups, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + parts["o"](y.transpose(1, 2).reshape(3, 80, width))
        y = norms[1](x)
        x = x + parts["down"](F.silu(parts["gate"](y)) * parts["up"](y))
        return F.cross_entropy((x @ embed.weight.T).flatten(0, 1), targets)

    return steps(torch, "AdamW", loss, parts, norms, embed)


@row("training", "dilated gated convolutions, 4 x 1 x 300")
def _gated(torch):
    nn, F = torch.nn, torch.nn.functional
    gates = nn.ModuleList([nn.Conv1d(24, 48, 2, dilation=2**i) for i in range(6)])
    first, last = nn.Conv1d(1, 24, 1), nn.Conv1d(24, 32, 1)
    x, y = torch.randn(4, 1, 300), torch.randint(32, (4, 300))

    def loss():
        z = first(x)
        for i, gate in enumerate(gates):
            a, b = gate(F.pad(z, (2**i, 0))).chunk(2, 1)
            z = z + a.tanh() * b.sigmoid()
        return F.cross_entropy(last(z), y)

    return steps(torch, "Adam", loss, gates, first, last)


@row("training", "a spatial transformer, 16 x 1 x 28 x 28")
def _spatial(torch):
    nn, F = torch.nn, torch.nn.functional
    place = nn.Sequential(nn.Conv2d(1, 8, 7), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
                          nn.Linear(8 * 121, 6))
    head = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    x, y = torch.randn(16, 1, 28, 28), torch.randint(10, (16,))

    def loss():
        grid = F.affine_grid(place(x).view(-1, 2, 3), x.shape, align_corners=False)
        return F.cross_entropy(head(F.grid_sample(x, grid, align_corners=False)), y)

    return steps(torch, "SGD", loss, place, head)


@row("training", "a mixture of four experts, 128 x 32")
def _experts(torch):
    nn, F = torch.nn, torch.nn.functional
    experts = nn.ModuleList([perceptron(torch, 32, 64, 32, act="GELU") for _ in range(4)])
    choose, x, y = nn.Linear(32, 4), torch.randn(128, 32), torch.randn(128, 32)

    def loss():
        weights, chosen = choose(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(experts):
            rows, places = torch.where(chosen == i)
            out = out.index_add(0, rows, expert(x[rows]) * weights[rows, places, None])
        return F.mse_loss(out, y)

    return steps(torch, "AdamW", loss, experts, choose)


@row("training", "a codebook between two convolutions, 8 x 3 x 32 x 32")
def _codebook(torch):
    nn, F = torch.nn, torch.nn.functional
    encode, decode, book = nn.Conv2d(3, 16, 4, 4), nn.ConvTranspose2d(16, 3, 4, 4), \
        nn.Embedding(64, 16)
    x = torch.rand(8, 3, 32, 32)

    def loss():
        z = encode(x).permute(0, 2, 3, 1)
        code = book(torch.cdist(z.reshape(-1, 16), book.weight).argmin(1)).view(z.shape)
        out = decode((z + (code - z).detach()).permute(0, 3, 1, 2))
        return F.mse_loss(out, x) + F.mse_loss(code, z.detach()) + F.mse_loss(z, code.detach())

    return steps(torch, "Adam", loss, encode, decode, book)


@row("training", "a convolution by Fourier transforms, 4 x 32 x 256")
def _fourier(torch):
    nn, fft = torch.nn, torch.fft
    kernel, mix, x = nn.Parameter(torch.randn(32, 256) * 0.1), nn.Linear(32, 32), \
        torch.randn(4, 32, 256)

    def loss():
        y = fft.irfft(fft.rfft(x, 512) * fft.rfft(kernel, 512), 512)[..., :256]
        return nn.functional.gelu(mix(y.transpose(1, 2))).pow(2).mean()

    return steps(torch, "Adam", loss, nn.ParameterList([kernel]), mix)


@row("training", "twenty tokens drawn from a decoder with a cache")
def _drawing(torch):
    nn, F = torch.nn, torch.nn.functional
    project, out, head = nn.Linear(64, 192), nn.Linear(64, 64), nn.Linear(64, 300)
    embed, norm = nn.Embedding(300, 64), nn.LayerNorm(64)

    def run():
        with torch.no_grad():
            tokens, cache = torch.zeros(2, 1, dtype=torch.long), None
            for _ in range(20):
                x = embed(tokens[:, -1:])
                q, *kv = project(norm(x)).view(2, 1, 3, 4, 16).permute(2, 0, 3, 1, 4)
                cache = kv if cache is None else [
                    torch.cat([old, new], 2) for old, new in zip(cache, kv, strict=True)]
                y = F.scaled_dot_product_attention(q, *cache)
                scores = head(x + out(y.transpose(1, 2).reshape(2, 1, 64)))[:, -1]
                least = scores.topk(20)[0][:, -1:]
                scores = scores.masked_fill(scores < least, float("-inf"))
                drawn = torch.multinomial(scores.softmax(-1), 1)
                tokens = torch.cat([tokens, drawn], 1)
        return tokens

    return run
