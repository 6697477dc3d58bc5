"""Steps of training: forward, backward and a step of the optimizer."""

from .registry import row


def training(torch, model, optimizer, x, y):
    loss_function = torch.nn.CrossEntropyLoss()

    def run():
        optimizer.zero_grad()
        loss_function(model(x), y).backward()
        optimizer.step()

    return run


@row("training", "multilayer perceptron, batch of 64")
def _perceptron(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                          nn.Linear(256, 10))  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(torch, model, optimizer, torch.randn(64, 128), torch.randint(10, (64,)))


@row("training", "convolutional network, batch of 32")
def _convolutional(torch):
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters())
    return training(torch, model, optimizer, torch.randn(32, 1, 28, 28), torch.randint(10, (32,)))


@row("training", "LSTM, batch of 16, 32 steps")
def _recurrent(torch):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    return training(torch, model, optimizer, torch.randn(16, 32, 32), torch.randint(10, (16,)))


@row("training", "transformer layer, batch of 8, 64 tokens")
def _transformer(torch):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            return self.head(self.layer(x).mean(1))

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    return training(torch, model, optimizer, torch.randn(8, 64, 64), torch.randint(10, (8,)))
