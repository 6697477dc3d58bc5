"""accelerate: the same training in one process and, by torchrun, in two."""
# needs: accelerate
# tolerance: 1e-3
import json
import subprocess
import sys

if len(sys.argv) == 1:
    printed = []
    for start in ([], ["-m", "torch.distributed.run", "--nproc-per-node", "2"]):
        done = subprocess.run([sys.executable, *start, __file__, "train"], check=True, text=True,
                              stdout=subprocess.PIPE)
        printed.append(json.loads(done.stdout.splitlines()[-1]))
    print(json.dumps(printed))
    sys.exit()

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
size = accelerator.num_processes
torch.manual_seed(0)
x = torch.randn(256, 10)
data = TensorDataset(x, (x[:, :3].sum(1) > 0).long())
model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
loader = DataLoader(data, batch_size=32 // size)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
losses = []
for _ in range(3):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(accelerator.gather(loss.detach().reshape(1)).mean().item())
parameters = accelerator.get_state_dict(model).values()
if accelerator.is_main_process:
    print(json.dumps({"kind": str(accelerator.distributed_type), "processes": size,
                      "losses": losses, "norms": [p.norm().item() for p in parameters]}),
          flush=True)
accelerator.end_training()
