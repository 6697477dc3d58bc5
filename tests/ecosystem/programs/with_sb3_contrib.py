"""Agents of sb3-contrib: recurrent and maskable PPO, quantile DQN, TRPO, ARS, CrossQ, TQC."""
# needs: sb3_contrib
import json
import warnings

import torch
from sb3_contrib import ARS, QRDQN, TQC, TRPO, CrossQ, MaskablePPO, RecurrentPPO
from sb3_contrib.common.envs import InvalidActionEnvDiscrete

warnings.simplefilter("ignore")
torch.set_num_threads(1)


def weights(agent):
    return sum(float(p.detach().abs().sum()) for p in agent.policy.parameters())


result = {}
agent = RecurrentPPO("MlpLstmPolicy", "CartPole-v1", n_steps=32, batch_size=16, n_epochs=2, seed=0,
                     policy_kwargs={"lstm_hidden_size": 8}, device="cpu")
agent.learn(64)
result["recurrent"] = weights(agent)
agent = MaskablePPO("MlpPolicy", InvalidActionEnvDiscrete(dim=6, n_invalid_actions=3), n_steps=32,
                    batch_size=16, n_epochs=2, seed=1, device="cpu")
agent.learn(64)
result["maskable"] = weights(agent)
agent = TRPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, seed=2, device="cpu")
agent.learn(128)
result["trpo"] = weights(agent)
agent = QRDQN("MlpPolicy", "CartPole-v1", seed=3, learning_starts=20, batch_size=8, device="cpu",
              policy_kwargs={"n_quantiles": 5, "net_arch": [8]})
agent.learn(48)
result["qrdqn"] = weights(agent)
for name, kind in {"tqc": TQC, "crossq": CrossQ}.items():
    agent = kind("MlpPolicy", "Pendulum-v1", seed=4, learning_starts=20, batch_size=8,
                 device="cpu", policy_kwargs={"net_arch": [16]})
    agent.learn(36)
    result[name] = weights(agent)
agent = ARS("LinearPolicy", "CartPole-v1", n_delta=2, seed=5, device="cpu")
agent.learn(64)
result["ars"] = weights(agent)
print(json.dumps(result))
