"""Tianshou: batches, replay buffers, and a deep Q-network that learns for a moment."""
# needs: tianshou, gymnasium
import json
import warnings

warnings.simplefilter("ignore")

import numpy as np
import torch
from tianshou.data import Batch, PrioritizedReplayBuffer, ReplayBuffer, to_torch

torch.manual_seed(0)
np.random.seed(0)
batch = Batch(obs=np.arange(6.0).reshape(3, 2), rew=torch.ones(3))
buffer = ReplayBuffer(8)
for i in range(10):
    buffer.add(Batch(obs=np.array([i, i + 1.0]), act=i % 2, rew=float(i), terminated=i == 5,
                     truncated=False, obs_next=np.array([i + 1.0, i + 2]), info={}))
sample, index = buffer.sample(4)
priority = PrioritizedReplayBuffer(8, alpha=0.6, beta=0.4)
for i in range(6):
    priority.add(Batch(obs=i, act=0, rew=1.0, terminated=False, truncated=False, obs_next=i + 1,
                       info={}))
priority.update_weight(np.arange(6), torch.arange(1.0, 7.0))
print(json.dumps({
    "stacked": Batch.stack([batch, batch]).rew.shape[0],
    "sum": to_torch(batch).obs.sum().item(),
    "index": index.tolist(),
    "reward": sample.rew.tolist(),
    "weights": np.asarray(priority.get_weight(np.arange(6)), dtype=float).tolist(),
}))
