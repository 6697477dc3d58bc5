"""Training of networks as people write them, one of each kind, in small."""

import math

from .registry import row


def steps(torch, name, loss, *modules, lr=1e-3):
    optimizer = getattr(torch.optim, name)(
        [p for module in modules for p in module.parameters()], lr=lr)

    def run():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return run


def perceptron(torch, *widths, act="ReLU"):
    nn = torch.nn
    layers = []
    for a, b in zip(widths, widths[1:], strict=False):
        layers += [nn.Linear(a, b), getattr(nn, act)()]
    return nn.Sequential(*layers[:-1])


@row("training", "a small perceptron, batch of 16")
def _small(torch):
    net, x, y = perceptron(torch, 20, 64, 64, 3), torch.randn(16, 20), torch.randint(3, (16,))
    return steps(torch, "Adam", lambda: torch.nn.functional.cross_entropy(net(x), y), net)


@row("training", "a regression with dropout and batch norm")
def _regression(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(13, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2),
                        nn.Linear(64, 1))  # fmt: skip
    x, y = torch.randn(101, 13), torch.randn(101, 1)
    return steps(torch, "RMSprop", lambda: nn.functional.mse_loss(net(x), y), net)


@row("training", "a NeRF: encoded rays, composed colours")
def _nerf(torch):
    net = perceptron(torch, 39, 64, 64, 64, 4)
    points, target = torch.rand(64, 16, 3), torch.rand(64, 3)
    bands = 2.0 ** torch.arange(6) * math.pi

    def loss():
        angles = (points[..., None] * bands).flatten(-2)
        out = net(torch.cat([points, angles.sin(), angles.cos()], -1))
        colour, density = torch.sigmoid(out[..., :3]), torch.relu(out[..., 3])
        alpha = 1 - torch.exp(-density * 0.1)
        clear = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)
        weights = alpha * clear[:, :-1]
        return (((weights[..., None] * colour).sum(1) - target) ** 2).mean()

    return steps(torch, "Adam", loss, net)


@row("training", "a UNet on 4 x 1 x 64 x 64")
def _unet(torch):
    nn = torch.nn

    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU(),
                             nn.Conv2d(b, b, 3, padding=1), nn.SiLU())  # fmt: skip

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = block(1, 8), block(8, 16), block(16, 32)
            self.up1, self.up2 = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)
            self.d, self.e = block(32, 16), block(16, 8)
            self.out = nn.Conv2d(8, 1, 1)
            self.pool = nn.MaxPool2d(2)

        def forward(self, x):
            a = self.a(x)
            b = self.b(self.pool(a))
            c = self.c(self.pool(b))
            d = self.d(torch.cat([self.up1(c), b], 1))
            return self.out(self.e(torch.cat([self.up2(d), a], 1)))

    net, x = UNet(), torch.randn(4, 1, 64, 64)
    y = (torch.rand(4, 1, 64, 64) > 0.5).float()
    return steps(torch, "AdamW",
                 lambda: nn.functional.binary_cross_entropy_with_logits(net(x), y), net)


@row("training", "skip-gram with negative samples")
def _skip_gram(torch):
    nn, F = torch.nn, torch.nn.functional
    words, contexts = nn.Embedding(2000, 64), nn.Embedding(2000, 64)
    w, c, n = (torch.randint(2000, s) for s in ((256,), (256,), (256, 5)))

    def loss():
        v = words(w)
        good = F.logsigmoid((v * contexts(c)).sum(1))
        bad = F.logsigmoid(-torch.bmm(contexts(n), v[:, :, None]).squeeze(2)).sum(1)
        return -(good + bad).mean()

    return steps(torch, "SGD", loss, words, contexts, lr=0.1)


@row("training", "skip-gram with sparse gradients")
def _sparse(torch):
    nn = torch.nn
    words, contexts = (nn.Embedding(2000, 64, sparse=True) for _ in range(2))
    w, c = torch.randint(2000, (256,)), torch.randint(2000, (256,))
    return steps(torch, "SparseAdam", lambda: -nn.functional.logsigmoid(
        (words(w) * contexts(c)).sum(1)).mean(), words, contexts)


@row("training", "an embedding bag and a linear layer")
def _bag(torch):
    nn = torch.nn
    bag, head = nn.EmbeddingBag(5000, 64), nn.Linear(64, 4)
    text, y = torch.randint(5000, (32 * 40,)), torch.randint(4, (32,))
    offsets = torch.arange(0, 32 * 40, 40)
    return steps(torch, "SGD", lambda: nn.functional.cross_entropy(head(bag(text, offsets)), y),
                 bag, head)  # fmt: skip


@row("training", "a GAN: a step of both networks")
def _gan(torch):
    nn, F = torch.nn, torch.nn.functional
    g, d = perceptron(torch, 16, 64, 64, 32), perceptron(torch, 32, 64, 64, 1, act="LeakyReLU")
    best_g, best_d = (torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999)) for m in (g, d))
    real, one, zero = torch.randn(64, 32), torch.ones(64, 1), torch.zeros(64, 1)
    assert nn

    def run():
        fake = g(torch.randn(64, 16))
        best_d.zero_grad()
        (F.binary_cross_entropy_with_logits(d(real), one)
         + F.binary_cross_entropy_with_logits(d(fake.detach()), zero)).backward()
        best_d.step()
        best_g.zero_grad()
        F.binary_cross_entropy_with_logits(d(fake), one).backward()
        best_g.step()

    return run


@row("training", "a GAN's gradient penalty")
def _penalty(torch):
    d = perceptron(torch, 32, 64, 64, 1, act="Tanh")
    x = torch.randn(64, 32, requires_grad=True)

    def loss():
        g, = torch.autograd.grad(d(x).sum(), x, create_graph=True)
        return ((g.norm(2, 1) - 1) ** 2).mean()

    return steps(torch, "Adam", loss, d)


@row("training", "a VAE on 64 x 784")
def _vae(torch):
    F = torch.nn.functional
    enc, dec = perceptron(torch, 784, 128, 32), perceptron(torch, 16, 128, 784)
    x = torch.rand(64, 784)

    def loss():
        mean, log_var = enc(x).chunk(2, 1)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum()
        return F.binary_cross_entropy_with_logits(dec(z), x, reduction="sum") + kl

    return steps(torch, "Adam", loss, enc, dec)


@row("training", "actor and critic with PPO's loss, batch of 64")
def _ppo(torch):
    from importlib import import_module
    Normal = import_module(torch.__name__ + ".distributions").Normal
    actor, critic = perceptron(torch, 8, 64, 64, 2, act="Tanh"), perceptron(torch, 8, 64, 64, 1)
    s, a, old, adv, ret = (torch.randn(*z) for z in ((64, 8), (64, 2), (64,), (64,), (64,)))
    scale = torch.ones(2)

    def loss():
        policy = Normal(actor(s), scale)
        ratio = torch.exp(policy.log_prob(a).sum(1) - old).clamp(0, 10)
        gain = torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
        return ((critic(s).squeeze(1) - ret) ** 2).mean() - gain - 0.01 * policy.entropy().mean()

    return steps(torch, "Adam", loss, actor, critic)


@row("training", "deep Q-learning, batch of 32")
def _dqn(torch):
    F = torch.nn.functional
    q, target = perceptron(torch, 4, 64, 64, 2), perceptron(torch, 4, 64, 64, 2)
    s, t, r = torch.randn(32, 4), torch.randn(32, 4), torch.randn(32)
    a = torch.randint(2, (32, 1))

    def loss():
        with torch.no_grad():
            best = r + 0.99 * target(t).max(1).values
        return F.smooth_l1_loss(q(s).gather(1, a).squeeze(1), best)

    return steps(torch, "Adam", loss, q)


@row("training", "a graph network on 200 nodes, 1000 edges")
def _graph(torch):
    nn = torch.nn
    a, b = nn.Linear(16, 32), nn.Linear(32, 4)
    x, edges, y = torch.randn(200, 16), torch.randint(200, (2, 1000)), torch.randint(4, (200,))

    def spread(h):
        return torch.zeros(200, h.shape[1]).index_add(0, edges[1], h[edges[0]])

    return steps(torch, "Adam", lambda: nn.functional.cross_entropy(
        spread(b(torch.relu(spread(a(x))))), y), a, b)


class Blocks:
    """Makes pre-norm transformer blocks for a `torch`."""

    def __init__(self, torch, width, heads, causal):
        nn, F = torch.nn, torch.nn.functional

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                         nn.Linear(4 * width, width))  # fmt: skip

            def forward(self, x):
                b, t, c = x.shape
                q, k, v = self.qkv(self.n1(x)).view(b, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
                x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
                return x + self.mlp(self.n2(x))

        self.make = Block


@row("training", "a vision transformer on 8 x 3 x 32 x 32")
def _vit(torch):
    nn = torch.nn
    make = Blocks(torch, 96, 3, False).make

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 96, 4, 4)
            self.cls, self.pos = (nn.Parameter(torch.randn(1, n, 96)) for n in (1, 65))
            self.blocks = nn.Sequential(*(make() for _ in range(3)))
            self.head = nn.Linear(96, 10)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
            return self.head(self.blocks(x)[:, 0])

    net, x, y = ViT(), torch.randn(8, 3, 32, 32), torch.randint(10, (8,))
    return steps(torch, "AdamW", lambda: nn.functional.cross_entropy(net(x), y), net)


@row("training", "a GPT with 3 layers of 96, batch of 4 x 50")
def _gpt(torch):
    nn, F = torch.nn, torch.nn.functional
    make = Blocks(torch, 96, 6, True).make
    tok, pos, head = nn.Embedding(65, 96), nn.Embedding(50, 96), nn.Linear(96, 65)
    blocks = nn.Sequential(*(make() for _ in range(3)))
    text, y = torch.randint(65, (4, 50)), torch.randint(65, (4, 50))

    def loss():
        out = head(blocks(tok(text) + pos(torch.arange(50))))
        return F.cross_entropy(out.flatten(0, 1), y.flatten())

    return steps(torch, "AdamW", loss, tok, pos, head, blocks)


@row("training", "a transformer encoder with a mask of padding")
def _encoder(torch):
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(48, 4, 96, batch_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    head, emb = nn.Linear(48, 3), nn.Embedding(300, 48)
    text, y = torch.randint(300, (12, 30)), torch.randint(3, (12,))
    mask = torch.arange(30)[None] >= torch.randint(10, 31, (12, 1))
    return steps(torch, "AdamW", lambda: nn.functional.cross_entropy(
        head(net(emb(text), src_key_padding_mask=mask).mean(1)), y), net, head, emb)


@row("training", "an autoencoder of convolutions, 8 x 3 x 32 x 32")
def _autoencoder(torch):
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1),
        nn.Sigmoid())  # fmt: skip
    x = torch.rand(8, 3, 32, 32)
    return steps(torch, "Adam", lambda: nn.functional.mse_loss(net(x), x), net)


@row("training", "a temporal convolutional network, 8 x 12 x 100")
def _temporal(torch):
    nn = torch.nn
    net = nn.Sequential(*(layer for d in (1, 2, 4) for layer in (
        nn.Conv1d(12, 12, 3, padding=d, dilation=d), nn.BatchNorm1d(12), nn.ReLU())))
    x, y = torch.randn(8, 12, 100), torch.randn(8, 12, 100)
    return steps(torch, "Adam", lambda: nn.functional.l1_loss(net(x), y), net)


@row("training", "a diffusion step: noise, times, a perceptron")
def _diffusion(torch):
    net = perceptron(torch, 2 + 32, 128, 128, 2, act="SiLU")
    x, keep = torch.randn(128, 2), torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0)
    freq = torch.exp(-math.log(1e4) * torch.arange(16) / 16)

    def loss():
        t, noise = torch.randint(100, (128,)), torch.randn_like(x)
        a = keep[t][:, None]
        angles = t[:, None] * freq
        h = torch.cat([a.sqrt() * x + (1 - a).sqrt() * noise, angles.sin(), angles.cos()], 1)
        return ((net(h) - noise) ** 2).mean()

    return steps(torch, "AdamW", loss, net)


@row("training", "contrastive learning, two views of 64")
def _contrastive(torch):
    F = torch.nn.functional
    net = perceptron(torch, 64, 128, 32)
    a, b, y = torch.randn(64, 64), torch.randn(64, 64), torch.arange(64)

    def loss():
        p, q = F.normalize(net(a), dim=1), F.normalize(net(b), dim=1)
        s = p @ q.t() / 0.1
        return (F.cross_entropy(s, y) + F.cross_entropy(s.t(), y)) / 2

    return steps(torch, "Adam", loss, net)


@row("training", "logistic regression, 1000 x 50")
def _logistic(torch):
    net, x = torch.nn.Linear(50, 1), torch.randn(1000, 50)
    y = (torch.rand(1000, 1) > 0.5).float()
    return steps(torch, "SGD", lambda: torch.nn.functional.binary_cross_entropy_with_logits(
        net(x), y), net)  # fmt: skip


@row("training", "a matrix factorised by hand")
def _factors(torch):
    nn = torch.nn
    u, v = nn.Parameter(torch.randn(300, 16)), nn.Parameter(torch.randn(200, 16))
    i, j, r = torch.randint(300, (2000,)), torch.randint(200, (2000,)), torch.randn(2000)

    def run():
        loss = (((u[i] * v[j]).sum(1) - r) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (u, v):
                p -= 0.1 * p.grad
                p.grad = None

    return run


@row("training", "an ODE by Euler's method, 30 steps of a perceptron")
def _ode(torch):
    net, x = perceptron(torch, 2, 32, 2, act="Tanh"), torch.randn(32, 2)

    def loss():
        y = x
        for _ in range(30):
            y = y + 0.1 * net(y)
        return (y**2).mean()

    return steps(torch, "Adam", loss, net)


@row("training", "a physics-informed network with second derivatives")
def _physics(torch):
    net = perceptron(torch, 2, 32, 32, 1, act="Tanh")
    x = torch.rand(100, 2, requires_grad=True)

    def loss():
        u = net(x)
        g, = torch.autograd.grad(u.sum(), x, create_graph=True)
        h, = torch.autograd.grad(g[:, 0].sum(), x, create_graph=True)
        return ((g[:, 1] - 0.1 * h[:, 0] + u[:, 0] * g[:, 0]) ** 2).mean()

    return steps(torch, "Adam", loss, net)


@row("training", "a Gaussian process's likelihood, 100 points")
def _process(torch):
    nn = torch.nn
    x, y = torch.rand(100, 2), torch.randn(100)
    params = nn.ParameterList([torch.zeros(()) for _ in range(3)])

    def loss():
        scale, length, noise = (p.exp() for p in params)
        k = scale * torch.exp(-0.5 * torch.cdist(x, x) ** 2 / length**2)
        chol = torch.linalg.cholesky(k + noise * torch.eye(100))
        z = torch.linalg.solve_triangular(chol, y[:, None], upper=False)
        return 0.5 * (z**2).sum() + chol.diagonal().log().sum()

    return steps(torch, "Adam", loss, params, lr=0.01)


@row("training", "mixed precision in bfloat16")
def _autocast(torch):
    net, x, y = perceptron(torch, 64, 128, 10), torch.randn(64, 64), torch.randint(10, (64,))

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(x)
        return torch.nn.functional.cross_entropy(out.float(), y)

    return steps(torch, "AdamW", loss, net)
