"""Many optimisers of pytorch_optimizer take steps on one small problem, with schedules."""
# needs: pytorch_optimizer
import json
import warnings

import torch
from pytorch_optimizer import (
    SAM,
    CosineAnnealingWarmupRestarts,
    Lookahead,
    create_optimizer,
    load_optimizer,
)
from pytorch_optimizer.loss import BCEFocalLoss, LovaszHingeLoss, SoftF1Loss
from torch import nn

warnings.simplefilter("ignore")
NAMES = """\
a2grad accsgd adabelief adabound adadelta adafactor adagc adahessian adai adalite adam adamax
adamc adamg adamod adamp adams adamw adamwsn adan adanorm adapnm adashift adasmooth adatam
ademamix adopt aggmo aida alice amos ano apollo apollodqn asgd avagrad bcos came conda
dadaptadagrad dadaptadam dadaptadan dadaptlion dadaptsgd dash diffgrad dualadam emofact emolynx
emonavi exadam fadam fira focus fromage ftrl galore grams gravity grokfastadamw kate kron lamb
laprop lars lbfgs lion lorarite madgrad magma mars msvag nadam nero novograd padam pid pnm
prodigy qhadam qhm racs radam ranger rmsprop rose sara scalableshampoo schedulefreeadamw
schedulefreeradam schedulefreesgd scion scionlight sgd sgdp sgdsai sgdw shampoo signsgd
simplifiedademamix sm3 soap sophiah spam splus srmm stableadamw stablespam swats tam tiger vsgd
yogi""".split()
torch.manual_seed(0)
x = torch.randn(16, 5)
y = x.sin().sum(1, keepdim=True)
result = {}


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1))


for name in NAMES:
    model = network()
    optimizer = load_optimizer(name)(model.parameters(), lr=1e-2)
    if hasattr(optimizer, "train"):
        optimizer.train()
    torch.manual_seed(2)
    losses = []
    for _ in range(4):
        def closure(model=model, optimizer=optimizer, name=name):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward(create_graph=name in {"adahessian", "sophiah"})
            return loss

        losses.append(optimizer.step(closure).item())
    result[name] = losses
model = network()
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.05, momentum=0.9)
for _ in range(3):
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.first_step(zero_grad=True)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.second_step(zero_grad=True)
result["sam"] = loss.item()
model = network()
optimizer = Lookahead(create_optimizer(model, "adamp", lr=0.01), k=2)
schedule = CosineAnnealingWarmupRestarts(optimizer, 6, max_lr=0.1, min_lr=0.001, warmup_steps=2)
for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    schedule.step()
result["lookahead"] = [loss.item(), optimizer.param_groups[0]["lr"]]
torch.manual_seed(3)
guess, truth = torch.rand(2, 4, 4), (torch.rand(2, 4, 4) > 0.5).float()
result["losses"] = [loss(guess, truth).item()
                    for loss in (BCEFocalLoss(), SoftF1Loss(), LovaszHingeLoss())]
print(json.dumps(result))
