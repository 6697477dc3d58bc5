"""Reinforcement learning with TorchRL: environments, collectors, replay buffers, losses."""
# needs: torchrl, gymnasium
import json
import warnings

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import Compose, GymEnv, RewardSum, StepCounter, TransformedEnv
from torchrl.envs.utils import check_env_specs
from torchrl.modules import MLP, NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DDPGLoss, SoftUpdate
from torchrl.objectives.value import GAE

warnings.simplefilter("ignore")
torch.manual_seed(0)
env = TransformedEnv(GymEnv("Pendulum-v1", device="cpu"), Compose(StepCounter(), RewardSum()))
env.set_seed(0)
check_env_specs(env)
actor = ProbabilisticActor(
    TensorDictModule(nn.Sequential(MLP(3, 2, depth=1, num_cells=16), NormalParamExtractor()),
                     in_keys=["observation"], out_keys=["loc", "scale"]),
    in_keys=["loc", "scale"], distribution_class=TanhNormal, return_log_prob=True,
    distribution_kwargs={"low": -2.0, "high": 2.0})
critic = ValueOperator(MLP(3, 1, depth=1, num_cells=16), in_keys=["observation"])
rollout = env.rollout(10, actor)
collector = Collector(env, actor, frames_per_batch=32, total_frames=64)
advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
ppo = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
optimizer = torch.optim.Adam(ppo.parameters(), lr=1e-3)
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(32), batch_size=16,
                                sampler=SamplerWithoutReplacement())
losses = []
for data in collector:
    advantage(data)
    buffer.extend(data.reshape(-1))
    for _ in range(2):
        values = ppo(buffer.sample())
        loss = values["loss_objective"] + values["loss_critic"] + values["loss_entropy"]
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(ppo.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
collector.shutdown()

policy = TensorDictModule(MLP(3, 1, depth=1, num_cells=8), in_keys=["observation"],
                          out_keys=["action"])
value = ValueOperator(MLP(4, 1, depth=1, num_cells=8), in_keys=["observation", "action"])
ddpg = DDPGLoss(policy, value, delay_actor=True, delay_value=True)
ddpg.make_value_estimator(gamma=0.9)
updater = SoftUpdate(ddpg, eps=0.95)
out = ddpg(rollout)
(out["loss_actor"] + out["loss_value"]).backward()
updater.step()
print(json.dumps({
    "reward": rollout["next", "reward"].flatten().tolist(),
    "log_prob": rollout["action_log_prob"].sum().item(),
    "losses": losses,
    "ddpg": [out["loss_actor"].item(), out["loss_value"].item()],
    "gradient": [p.grad.norm().item() for p in ddpg.parameters() if p.grad is not None],
}))
