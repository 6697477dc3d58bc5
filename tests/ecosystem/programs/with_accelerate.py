"""accelerate: a training loop of one's own, with accumulation, clipping and saved states."""
# needs: accelerate
# tolerance: 1e-3
import json
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import find_batch_size, send_to_device, set_seed

set_seed(3)
data = torch.utils.data.TensorDataset(torch.randn(48, 6), torch.randn(48, 1))
accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True, project_dir="state")
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
accelerator.register_for_checkpointing(schedule)
losses = []


def epoch():
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(loss.item())


epoch()
accelerator.save_state("state/first")
epoch()
after = losses[-6:]
accelerator.load_state("state/first")
epoch()
gathered = accelerator.gather_for_metrics(torch.arange(3))
accelerator.save_model(model, "saved")
print(json.dumps({
    "losses": losses[:12], "again": [losses[-6:] == after, losses[-6:]],
    "gathered": gathered.tolist(), "rate": schedule.get_last_lr(),
    "files": sorted(p.name for p in Path("state/first").iterdir()),
    "saved": [p.name for p in Path("saved").iterdir()],
    "moved": find_batch_size(send_to_device({"a": torch.ones(5, 2)}, "cpu")),
    "unwrapped": type(accelerator.unwrap_model(model)).__name__,
}))
