"""Recurrent layers and cells, whole sequences and loops."""

from .registry import row

SHAPES = {"8 x 20 x 32": (8, 20, 32, 64), "1 x 50 x 16": (1, 50, 16, 32),
          "32 x 35 x 128": (32, 35, 128, 128)}

for _kind in ("RNN", "GRU", "LSTM"):
    for _said, _shape in SHAPES.items():

        @row("recurrent", f"{_kind} on {_said}, forward and backward")
        def _layer(torch, kind=_kind, shape=_shape):
            batch, steps, wide, hidden = shape
            layer = getattr(torch.nn, kind)(wide, hidden, batch_first=True)
            x = torch.randn(batch, steps, wide)

            def run():
                layer.zero_grad()
                layer(x)[0].sum().backward()

            return run

    @row("recurrent", f"{_kind}Cell in a loop of 20 steps, forward and backward")
    def _cell(torch, kind=_kind):
        cell = getattr(torch.nn, kind + "Cell")(16, 32)
        xs = torch.randn(20, 8, 16).unbind(0)

        def run():
            cell.zero_grad()
            state = None
            for x in xs:
                state = cell(x, state)
            (state[0] if kind == "LSTM" else state).sum().backward()

        return run

    @row("recurrent", f"{_kind}, two layers in both directions, packed sequences")
    def _packed(torch, kind=_kind):
        rnn = torch.nn.utils.rnn
        layer = getattr(torch.nn, kind)(16, 32, 2, bidirectional=True, batch_first=True)
        x, lengths = torch.randn(8, 20, 16), list(range(20, 4, -2))

        def run():
            layer.zero_grad()
            packed = rnn.pack_padded_sequence(x, lengths, batch_first=True)
            out, _ = rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)
            out.sum().backward()

        return run

    @row("recurrent", f"{_kind}, one step at a time without gradients")
    def _stream(torch, kind=_kind):
        layer = getattr(torch.nn, kind)(16, 32)
        x = torch.randn(1, 1, 16)

        def run():
            state = None
            with torch.no_grad():
                for _ in range(20):
                    _, state = layer(x, state)

        return run


@row("recurrent", "an LSTM written out, 20 steps, forward and backward")
def _written_out(torch):
    w, u, b = (torch.nn.Parameter(0.1 * torch.randn(*s)) for s in ((16, 128), (32, 128), (128,)))
    xs = torch.randn(20, 8, 16)

    def run():
        h = c = torch.zeros(8, 32)
        for x in xs:
            i, f, g, o = (x @ w + h @ u + b).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        h.sum().backward()

    return run


@row("recurrent", "a decoder with attention, 10 steps, forward and backward")
def _decoder(torch):
    nn = torch.nn
    cell, key, out = nn.GRUCell(64, 32), nn.Linear(32, 32), nn.Linear(64, 50)
    embedding = nn.Embedding(50, 32)
    memory, words = torch.randn(4, 12, 32), torch.randint(50, (10, 4))

    def run():
        h, loss = torch.zeros(4, 32), 0.0
        for word in words:
            weights = torch.softmax((key(memory) @ h[:, :, None]).squeeze(2), 1)
            context = (weights[:, None] @ memory).squeeze(1)
            h = cell(torch.cat([embedding(word), context], 1), h)
            loss = loss + nn.functional.cross_entropy(out(torch.cat([h, context], 1)), word)
        loss.backward()

    return run
