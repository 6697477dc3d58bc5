"""Steps of models with an unusual part each: a cache, boxes, a graph, a grid."""

import math

from .networks import perceptron, steps
from .registry import row


@row("training", "a bottleneck with a shortcut, 4 x 64 x 28 x 28, channels last")
def _bottleneck(torch):
    nn = torch.nn

    def normed(a, b, size, stride=1):
        return nn.Sequential(nn.Conv2d(a, b, size, stride, size // 2, bias=False),
                             nn.BatchNorm2d(b))  # fmt: skip

    main = nn.Sequential(normed(64, 32, 1), nn.ReLU(True), normed(32, 32, 3, 2), nn.ReLU(True),
                         normed(32, 128, 1))  # fmt: skip
    short = normed(64, 128, 1, 2)
    net = nn.ModuleList([main, short]).to(memory_format=torch.channels_last)
    x = torch.randn(4, 64, 28, 28).contiguous(memory_format=torch.channels_last)
    return steps(torch, "SGD", lambda: torch.relu(main(x) + short(x)).mean(), net)


@row("training", "a diffusion UNet's block: time scales, attention over 16 x 16")
def _diffusion_block(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, c=32):
            super().__init__()
            self.n1, self.n2, self.n3 = (nn.GroupNorm(8, c) for _ in range(3))
            self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
            self.time, self.qkv = nn.Linear(64, 2 * c), nn.Conv2d(c, 3 * c, 1)
            self.out = nn.Conv2d(c, c, 1)

        def forward(self, x, t):
            scale, shift = self.time(F.silu(t))[:, :, None, None].chunk(2, 1)
            y = self.c1(F.silu(self.n1(x)))
            y = self.c2(F.silu(self.n2(y) * (1 + scale) + shift))
            x = x + y
            b, c, h, w = x.shape
            q, k, v = self.qkv(self.n3(x)).view(b, 3, 4, c // 4, h * w).transpose(-1, -2).unbind(1)
            y = F.scaled_dot_product_attention(q, k, v).transpose(-1, -2).reshape(b, c, h, w)
            return x + self.out(y)

    net, x = Block(), torch.randn(4, 32, 16, 16)
    noise, frequencies = torch.randn(4, 32, 16, 16), torch.exp(-torch.arange(32) * 0.25)

    def loss():
        angles = torch.randint(1000, (4,))[:, None] * frequencies
        return F.mse_loss(net(x, torch.cat([angles.sin(), angles.cos()], 1)), noise)

    return steps(torch, "AdamW", loss, net)


@row("training", "a masked autoencoder: patches kept, gathered and put back")
def _masked_autoencoder(torch):
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True, norm_first=True)
    embed, out = nn.Linear(48, 64), nn.Linear(64, 48)
    token = nn.Embedding(1, 64)
    images = torch.rand(8, 3, 32, 32)

    def loss():
        patches = images.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5)
        patches = patches.reshape(8, 64, 48)
        order = torch.rand(8, 64).argsort(1)
        kept, back = order[:, :24], order.argsort(1)
        x = layer(embed(patches.gather(1, kept[..., None].expand(-1, -1, 48))))
        x = torch.cat([x, token.weight.expand(8, 40, -1)], 1)
        x = out(layer(x.gather(1, back[..., None].expand(-1, -1, 64))))
        mask = (back >= 24).float()
        return (((x - patches) ** 2).mean(-1) * mask).sum() / mask.sum()

    return steps(torch, "AdamW", loss, layer, embed, out, token)


@row("training", "sixteen tokens from a GPT with memory set aside for keys and values")
def _cache(torch):
    nn, F = torch.nn, torch.nn.functional
    d, heads, layers, length = 128, 4, 2, 64
    embed = nn.Embedding(300, d)
    blocks = [nn.ModuleDict({"n1": nn.LayerNorm(d), "qkv": nn.Linear(d, 3 * d),
                             "o": nn.Linear(d, d), "n2": nn.LayerNorm(d),
                             "up": nn.Linear(d, 4 * d), "down": nn.Linear(4 * d, d)})
              for _ in range(layers)]  # fmt: skip
    cache = torch.zeros(layers, 2, 2, heads, length, d // heads)
    prompt = torch.randint(300, (2, 16))

    def forward(tokens, start):
        x, n = embed(tokens), tokens.shape[1]
        places = torch.arange(start, start + n)
        mask = torch.arange(length)[None, :] <= places[:, None]
        for block, (keys, values) in zip(blocks, cache, strict=True):
            q, k, v = block["qkv"](block["n1"](x)).view(2, n, 3, heads, -1).permute(2, 0, 3, 1, 4)
            keys.index_copy_(2, places, k)
            values.index_copy_(2, places, v)
            y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            x = x + block["o"](y.transpose(1, 2).reshape(2, n, d))
            x = x + block["down"](F.gelu(block["up"](block["n2"](x))))
        return x[:, -1] @ embed.weight.T

    @torch.no_grad()
    def run():
        logits = forward(prompt, 0)
        for i in range(16):
            best, index = (logits / 0.8).topk(20)
            token = index.gather(1, torch.multinomial(best.softmax(-1), 1))
            logits = forward(token, 16 + i)
        return logits

    return run


@row("training", "translation by GRUs: packed sources, teacher forcing, padded targets")
def _translation(torch):
    nn = torch.nn
    source, target = torch.randint(1, 200, (16, 12)), torch.randint(1, 200, (16, 11))
    lengths = torch.arange(12, 4, -0.5).long()
    for i, n in enumerate(lengths.tolist()):
        target[i, n - 1 :] = 0
    embed, encoder = nn.Embedding(200, 32, padding_idx=0), nn.GRU(32, 64, batch_first=True)
    decoder, out = nn.GRU(32, 64, batch_first=True), nn.Linear(64, 200)
    criterion = nn.CrossEntropyLoss(ignore_index=0)

    def loss():
        packed = nn.utils.rnn.pack_padded_sequence(embed(source), lengths, batch_first=True)
        _, state = encoder(packed)
        decoded, _ = decoder(embed(target[:, :-1]), state)
        return criterion(out(decoded).flatten(0, 1), target[:, 1:].flatten())

    return steps(torch, "Adam", loss, embed, encoder, decoder, out)


@row("training", "messages of edges by scatter_reduce and index_add, 300 nodes, 2000 edges")
def _messages(torch):
    nn = torch.nn
    source, goal = torch.randint(300, (2, 2000))
    x, edges, y = torch.randn(300, 16), torch.randn(2000, 8), torch.randint(4, (300,))
    message, update = perceptron(torch, 40, 64, 32), perceptron(torch, 80, 64, 4)

    def loss():
        m = message(torch.cat([x[source], x[goal], edges], 1))
        index = goal[:, None].expand_as(m)
        largest = torch.zeros(300, 32).scatter_reduce(0, index, m, "amax", include_self=False)
        total = torch.zeros(300, 32).index_add(0, goal, m)
        return nn.functional.cross_entropy(update(torch.cat([x, largest, total], 1)), y)

    return steps(torch, "Adam", loss, message, update)


@row("training", "graph attention: softmax over neighbours by scatter, 4 heads")
def _graph_attention(torch):
    nn, F = torch.nn, torch.nn.functional
    source, goal = torch.randint(200, (2, 1500))
    x, y = torch.randn(200, 32), torch.randint(3, (200,))
    project, out = nn.Linear(32, 64, bias=False), nn.Linear(64, 3)
    left, right = nn.Linear(16, 1), nn.Linear(16, 1)

    def loss():
        h = project(x).view(200, 4, 16)
        score = F.leaky_relu(left(h)[source] + right(h)[goal], 0.2)[..., 0]
        index = goal[:, None].expand_as(score)
        largest = torch.full((200, 4), -math.inf).scatter_reduce(0, index, score, "amax")
        weight = (score - largest.gather(0, index)).exp()
        weight = weight / torch.zeros(200, 4).scatter_add(0, index, weight).gather(0, index)
        mixed = torch.zeros(200, 4, 16).index_add(0, goal, weight[..., None] * h[source])
        return F.cross_entropy(out(F.elu(mixed.flatten(1))), y)

    return steps(torch, "Adam", loss, project, out, left, right)


@row("training", "a graph network by sparse matrices, 400 nodes")
def _sparse_graph(torch):
    nn = torch.nn
    edges = torch.randint(400, (2, 2400))
    adjacency = torch.sparse_coo_tensor(edges, torch.rand(2400), (400, 400)).coalesce()
    x, y = torch.randn(400, 32), torch.randint(5, (400,))
    first, second = nn.Linear(32, 64), nn.Linear(64, 5)

    def loss():
        h = torch.relu(torch.sparse.mm(adjacency, first(x)))
        return nn.functional.cross_entropy(torch.sparse.mm(adjacency, second(h)), y)

    return steps(torch, "Adam", loss, first, second)


@row("training", "a radiance field of hashed grids, 512 points, 6 levels")
def _hash_grid(torch):
    nn = torch.nn
    tables = nn.ParameterList([torch.randn(1024, 2) * 1e-2 for _ in range(6)])
    net, points, target = perceptron(torch, 12, 32, 4), torch.rand(512, 3), torch.rand(512, 4)
    primes = torch.tensor([1, 2654435761, 805459861])
    corners = torch.tensor([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])

    def loss():
        features = []
        for level, table in enumerate(tables):
            scaled = points * (8 * 1.5**level)
            low = scaled.floor()
            part = scaled - low
            cells = low.long()[:, None] + corners
            index = cells * primes
            index = (index[..., 0] ^ index[..., 1] ^ index[..., 2]) % 1024
            weight = torch.where(corners.bool(), part[:, None], 1 - part[:, None]).prod(-1)
            features.append((table[index] * weight[..., None]).sum(1))
        return ((net(torch.cat(features, 1)) - target) ** 2).mean()

    return steps(torch, "Adam", loss, net, tables)


@row("training", "hinge losses of a GAN with spectral norm, 8 x 3 x 32 x 32")
def _hinge(torch):
    nn = torch.nn
    norm = nn.utils.parametrizations.spectral_norm
    critic = nn.Sequential(norm(nn.Conv2d(3, 16, 4, 2, 1)), nn.LeakyReLU(0.1),
                           norm(nn.Conv2d(16, 32, 4, 2, 1)), nn.LeakyReLU(0.1),
                           nn.Flatten(), norm(nn.Linear(2048, 1)))  # fmt: skip
    maker = nn.Sequential(nn.Linear(32, 1024), nn.Unflatten(1, (16, 8, 8)), nn.BatchNorm2d(16),
                          nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(16, 16, 3, padding=1),
                          nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())  # fmt: skip
    real = torch.rand(8, 3, 32, 32)
    first = torch.optim.Adam(critic.parameters(), 2e-4, (0.0, 0.9))
    second = torch.optim.Adam(maker.parameters(), 2e-4, (0.0, 0.9))

    def run():
        fake = maker(torch.randn(8, 32))
        loss = torch.relu(1 - critic(real)).mean() + torch.relu(1 + critic(fake.detach())).mean()
        first.zero_grad()
        loss.backward()
        first.step()
        second.zero_grad()
        (-critic(fake).mean()).backward()
        second.step()

    return run


@row("training", "advantages by a loop over 64 steps, and a minibatch of PPO")
def _advantages(torch):
    policy, value = perceptron(torch, 12, 64, 6, act="Tanh"), perceptron(torch, 12, 64, 1)
    states, rewards = torch.randn(65, 8, 12), torch.randn(64, 8)
    alive = (torch.rand(64, 8) > 0.05).float()
    Normal, params = torch.distributions.Normal, [*policy.parameters(), *value.parameters()]
    optimizer = torch.optim.Adam(params, 3e-4, eps=1e-5)

    def run():
        with torch.no_grad():
            values = value(states)[..., 0]
            mean, scale = policy(states[:-1]).chunk(2, -1)
            actions = Normal(mean, scale.exp()).sample()
            old = Normal(mean, scale.exp()).log_prob(actions).sum(-1)
            advantages, last = torch.zeros(64, 8), torch.zeros(8)
            for t in reversed(range(64)):
                delta = rewards[t] + 0.99 * values[t + 1] * alive[t] - values[t]
                advantages[t] = last = delta + 0.99 * 0.95 * alive[t] * last
            returns = advantages + values[:-1]
        batch = torch.randperm(512)[:128]
        s, a = states[:-1].flatten(0, 1)[batch], actions.flatten(0, 1)[batch]
        advantage = advantages.flatten()[batch]
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        mean, scale = policy(s).chunk(2, -1)
        normal = Normal(mean, scale.exp())
        ratio = (normal.log_prob(a).sum(-1) - old.flatten()[batch]).exp()
        loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        loss = loss + 0.5 * (value(s)[:, 0] - returns.flatten()[batch]).pow(2).mean()
        loss = loss - 0.01 * normal.entropy().sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 0.5)
        optimizer.step()

    return run


@row("training", "skip-gram by bags of subwords, sparse gradients, SparseAdam")
def _subwords(torch):
    nn = torch.nn
    words, contexts = nn.EmbeddingBag(5000, 64, sparse=True), nn.Embedding(2000, 64, sparse=True)
    pieces, offsets = torch.randint(5000, (1200,)), torch.arange(0, 1200, 5)
    near, far = torch.randint(2000, (240,)), torch.randint(2000, (240, 5))
    log = nn.functional.logsigmoid

    def loss():
        v = words(pieces, offsets)
        positive = log((v * contexts(near)).sum(-1))
        negative = log(-(contexts(far) @ v[..., None])[..., 0]).sum(-1)
        return -(positive + negative).mean()

    return steps(torch, "SparseAdam", loss, words, contexts)


@row("training", "boxes matched by overlap: focal loss, GIoU, suppression of overlaps")
def _boxes(torch):
    nn, F = torch.nn, torch.nn.functional
    head, features = nn.Conv2d(32, 9, 3, padding=1), torch.randn(2, 32, 20, 20)
    anchors = torch.rand(400, 4) * 0.5
    anchors[:, 2:] += anchors[:, :2] + 0.1
    truth, labels = anchors[::40].clone() + 0.02, torch.randint(5, (10,))

    def area(b):
        return (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])

    def overlap(a, b):
        low, high = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
        shared = (high - low).clamp(min=0).prod(-1)
        return shared / (area(a)[:, None] + area(b) - shared)

    def giou(a, b):
        low, high = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])
        shared = (high - low).clamp(min=0).prod(-1)
        union = area(a) + area(b) - shared
        hull = (torch.max(a[:, 2:], b[:, 2:]) - torch.min(a[:, :2], b[:, :2])).prod(-1)
        return shared / union - (hull - union) / hull

    def loss():
        best, match = overlap(anchors, truth).max(1)
        positive = best > 0.5
        out = head(features).permute(0, 2, 3, 1).reshape(2, 400, 9)
        goal = torch.zeros(400, 5)
        goal[positive, labels[match[positive]]] = 1
        goal = goal.expand(2, -1, -1)
        p, ce = out[..., :5].sigmoid(), F.binary_cross_entropy_with_logits(
            out[..., :5], goal, reduction="none")  # fmt: skip
        focal = (ce * (1 - (p * goal + (1 - p) * (1 - goal))) ** 2).sum() / positive.sum()
        boxes = anchors[positive] + 0.1 * out[0, positive, 5:]
        with torch.no_grad():
            order, kept = p[0].amax(1).argsort(descending=True)[:50], []
            table = overlap(anchors[order], anchors[order]) > 0.5
            gone = torch.zeros(50, dtype=torch.bool)
            for i in range(50):
                if not gone[i]:
                    kept.append(i)
                    gone |= table[i]
        return focal + (1 - giou(boxes, truth[match[positive]])).mean()

    return steps(torch, "SGD", loss, head)


@row("training", "speech: convolution, a bidirectional LSTM and CTC, 4 x 40 x 120")
def _speech(torch):
    nn = torch.nn
    conv, lstm = nn.Conv1d(40, 64, 5, 2, 2), nn.LSTM(64, 48, bidirectional=True, batch_first=True)
    out, x = nn.Linear(96, 29), torch.randn(4, 40, 120)
    text, sizes = torch.randint(1, 29, (4, 14)), torch.tensor([14, 12, 10, 9])
    criterion = nn.CTCLoss(zero_infinity=True)

    def loss():
        y, _ = lstm(nn.functional.gelu(conv(x)).transpose(1, 2))
        log = out(y).log_softmax(-1).transpose(0, 1)
        return criterion(log, text, torch.full((4,), 60), sizes)

    return steps(torch, "AdamW", loss, conv, lstm, out)


@row("training", "a mel-like spectrogram loss by stft, 4 x 4000")
def _spectrogram(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Conv1d(1, 16, 15, padding=7), nn.Tanh(), nn.Conv1d(16, 1, 15, padding=7))
    x, target = torch.randn(4, 1, 4000), torch.randn(4, 4000)
    window, bank = torch.hann_window(256), torch.rand(40, 129)

    def mel(wave):
        spectrum = torch.stft(wave, 256, 64, window=window, return_complex=True).abs()
        return (bank @ spectrum).clamp(min=1e-5).log()

    with torch.no_grad():
        goal = mel(target)
    return steps(torch, "Adam", lambda: (mel(net(x)[:, 0]) - goal).abs().mean(), net)


@row("training", "hardest triplets of a batch of 96 by cdist, and angular margins")
def _metric(torch):
    nn, F = torch.nn, torch.nn.functional
    net, x, y = perceptron(torch, 40, 128, 32), torch.randn(96, 40), torch.arange(96) % 12
    centres = nn.Linear(32, 12, bias=False)
    same, other = y[:, None] == y, y[:, None] != y

    def loss():
        e = F.normalize(net(x))
        distance = torch.cdist(e, e)
        far = distance.masked_fill(other, -math.inf).amax(1)
        near = distance.masked_fill(same, math.inf).amin(1)
        cosine = F.linear(e, F.normalize(centres.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        margin = torch.cos(torch.acos(cosine) + 0.3 * F.one_hot(y, 12))
        return F.relu(far - near + 0.2).mean() + F.cross_entropy(16 * margin, y)

    return steps(torch, "AdamW", loss, net, centres)


@row("training", "neighbours of points by topk, edge convolution, 4 x 128 points")
def _edges_of_points(torch):
    nn, F = torch.nn, torch.nn.functional
    points, y = torch.randn(4, 128, 3), torch.randint(6, (4,))
    first, second = perceptron(torch, 6, 32, 32), perceptron(torch, 64, 64, 64)
    head, batch = nn.Linear(64, 6), torch.arange(4)[:, None, None]

    def edges(x, net):
        near = torch.cdist(x, x).topk(10, largest=False).indices
        there = x[batch, near]
        here = x[:, :, None].expand_as(there)
        return net(torch.cat([here, there - here], -1)).amax(2)

    return steps(torch, "Adam", lambda: F.cross_entropy(
        head(edges(edges(points, first), second).amax(1)), y), first, second, head)


@row("training", "a chain's partition function and best path, 8 x 30 steps, 9 labels")
def _chain(torch):
    nn = torch.nn
    net, x, y = nn.Linear(24, 9), torch.randn(8, 30, 24), torch.randint(9, (8, 30))
    moves, rows = nn.Parameter(torch.randn(9, 9) * 0.1), torch.arange(8)
    optimizer = torch.optim.SGD([*net.parameters(), moves], lr=0.1)

    def run():
        scores = net(x)
        alpha = scores[:, 0]
        for t in range(1, 30):
            alpha = torch.logsumexp(alpha[:, :, None] + moves, 1) + scores[:, t]
        gold = scores.gather(2, y[..., None]).sum((1, 2)) + moves[y[:, :-1], y[:, 1:]].sum(1)
        optimizer.zero_grad()
        (torch.logsumexp(alpha, 1) - gold).mean().backward()
        optimizer.step()
        with torch.no_grad():
            best, back = scores[:, 0], []
            for t in range(1, 30):
                best, index = (best[:, :, None] + moves).max(1)
                best = best + scores[:, t]
                back.append(index)
            path = [best.argmax(1)]
            for index in reversed(back):
                path.append(index[rows, path[-1]])
        return path

    return run


@row("training", "a Kalman filter's likelihood, 16 sequences of 20 steps, 4 states")
def _kalman(torch):
    dynamics = torch.nn.Parameter(0.9 * torch.eye(4) + 0.01 * torch.randn(4, 4))
    read, noise = torch.randn(2, 4), torch.nn.Parameter(torch.zeros(4))
    seen, identity = torch.randn(16, 20, 2), torch.eye(4)
    optimizer = torch.optim.Adam([dynamics, noise], 1e-2)

    def run():
        mean, cover, total = torch.zeros(16, 4, 1), identity.expand(16, 4, 4), 0.0
        for t in range(20):
            mean = dynamics @ mean
            cover = dynamics @ cover @ dynamics.T + torch.diag(noise.exp())
            error = seen[:, t, :, None] - read @ mean
            spread = read @ cover @ read.T + 0.1 * torch.eye(2)
            factor = torch.linalg.cholesky(spread)
            gain = torch.cholesky_solve(read @ cover, factor).mT
            total = total + (error * torch.cholesky_solve(error, factor)).sum()
            total = total + 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum()
            mean, cover = mean + gain @ error, (identity - gain @ read) @ cover
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

    return run


@row("training", "a rational-quadratic spline flow, 256 x 2, 8 bins")
def _spline(torch):
    F = torch.nn.functional
    net, x = perceptron(torch, 1, 64, 23), torch.rand(256, 2) * 1.8 - 0.9

    def edges(logits):
        sizes = 1e-3 + (1 - 8e-3) * logits.softmax(-1)
        return F.pad(sizes.cumsum(-1), (1, 0)) * 2 - 1

    def loss():
        a, b = x[:, 0], x[:, 1]
        out = net(a[:, None])
        xs, ys = edges(out[:, :8]), edges(out[:, 8:16])
        slopes = F.pad(F.softplus(out[:, 16:]) + 1e-3, (1, 1), value=1.0)
        i = torch.searchsorted(xs.detach(), b[:, None].contiguous()).clamp(1, 8) - 1
        x0, x1, y0, y1, d0, d1 = (table.gather(1, at)[:, 0] for table, at in (
            (xs, i), (xs, i + 1), (ys, i), (ys, i + 1), (slopes, i), (slopes, i + 1)))  # fmt: skip
        s, t = (y1 - y0) / (x1 - x0), (b - x0) / (x1 - x0)
        below = s + (d1 + d0 - 2 * s) * t * (1 - t)
        y = y0 + (y1 - y0) * (s * t**2 + d0 * t * (1 - t)) / below
        rise = s**2 * (d1 * t**2 + 2 * s * t * (1 - t) + d0 * (1 - t) ** 2) / below**2
        return (0.5 * y**2 - rise.log()).mean()

    return steps(torch, "Adam", loss, net)


@row("training", "attention with buckets of relative places, 4 x 48 tokens")
def _relative(torch):
    nn = torch.nn
    qkv, out, bias = nn.Linear(64, 192), nn.Linear(64, 64), nn.Embedding(32, 4)
    norm, x = nn.LayerNorm(64), torch.randn(4, 48, 64)
    drop = nn.Dropout(0.1)

    def loss():
        places = torch.arange(48)
        apart = places[None, :] - places[:, None]
        bucket = torch.where(apart.abs() < 8, apart.abs(),
                             (8 + (apart.abs().clamp(min=8) / 8).log() * 3).long())
        bucket = bucket.clamp(max=15) + 16 * (apart > 0)
        q, k, v = qkv(norm(x)).view(4, 48, 3, 4, 16).permute(2, 0, 3, 1, 4)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / 4 + bias(bucket).permute(2, 0, 1)
        mixed = torch.einsum("bhij,bhjd->bihd", drop(scores.softmax(-1)), v)
        return (x + out(mixed.reshape(4, 48, 64))).pow(2).mean()

    return steps(torch, "AdamW", loss, qkv, out, bias, norm)


@row("training", "translation of images: reflected borders, instance norm, 1 x 3 x 64 x 64")
def _image_to_image(torch):
    nn = torch.nn
    net = nn.Sequential(
        nn.ReflectionPad2d(3), nn.Conv2d(3, 16, 7), nn.InstanceNorm2d(16), nn.ReLU(True),
        nn.Conv2d(16, 32, 3, 2, 1), nn.InstanceNorm2d(32), nn.ReLU(True),
        nn.ReflectionPad2d(1), nn.Conv2d(32, 32, 3), nn.InstanceNorm2d(32), nn.ReLU(True),
        nn.ConvTranspose2d(32, 16, 3, 2, 1, 1), nn.InstanceNorm2d(16), nn.ReLU(True),
        nn.ReflectionPad2d(3), nn.Conv2d(16, 3, 7), nn.Tanh())  # fmt: skip
    x, y = torch.rand(1, 3, 64, 64), torch.rand(1, 3, 64, 64)
    return steps(torch, "Adam", lambda: (net(x) - y).abs().mean(), net)


@row("training", "mixtures of pairs of images and labels, 16 x 3 x 32 x 32")
def _mixup(torch):
    nn, F = torch.nn, torch.nn.functional
    net = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10))  # fmt: skip
    images, labels = torch.rand(16, 3, 32, 32), torch.randint(10, (16,))
    beta = torch.distributions.Beta(0.4, 0.4)

    def loss():
        share, order = beta.sample(), torch.randperm(16)
        x = torch.where(torch.rand(16, 1, 1, 1) < 0.5, images.flip(3), images)
        x = F.pad(x, (2, 2, 2, 2))[:, :, 1:33, 3:35].roll(1, 2)
        x = share * x + (1 - share) * x[order]
        one = F.one_hot(labels, 10).float()
        return F.cross_entropy(net(x), share * one + (1 - share) * one[order])

    return steps(torch, "SGD", loss, net)


@row("training", "low-rank adapters of a frozen perceptron, 32 x 256")
def _adapters(torch):
    nn = torch.nn
    frozen = nn.ModuleList(nn.Linear(256, 256) for _ in range(3)).requires_grad_(False)
    down = nn.ModuleList(nn.Linear(256, 4, bias=False) for _ in range(3))
    up = nn.ModuleList(nn.Linear(4, 256, bias=False) for _ in range(3))
    x, y = torch.randn(32, 256), torch.randn(32, 256)

    def loss():
        h = x
        for f, a, b in zip(frozen, down, up, strict=True):
            h = torch.nn.functional.silu(f(h) + 2.0 * b(a(h)))
        return nn.functional.mse_loss(h, y)

    return steps(torch, "AdamW", loss, down, up)


@row("training", "transport between two clouds of 100 points, 30 Sinkhorn iterations")
def _sinkhorn(torch):
    x = torch.nn.Parameter(torch.randn(100, 2))
    y, optimizer = torch.randn(100, 2) + 1, torch.optim.Adam([x], 0.05)

    def run():
        cost = torch.cdist(x, y) ** 2
        f = g = torch.zeros(100)
        for _ in range(30):
            f = -0.1 * torch.logsumexp((g[None, :] - cost) / 0.1, 1)
            g = -0.1 * torch.logsumexp((f[:, None] - cost) / 0.1, 0)
        plan = ((f[:, None] + g[None, :] - cost) / 0.1).exp()
        optimizer.zero_grad()
        (plan * cost).sum().backward()
        optimizer.step()

    return run
