"""Agents of stable-baselines3 learn for a moment in Gymnasium's classic environments."""
# needs: stable_baselines3
import json
import tempfile
import warnings
from pathlib import Path

import torch
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

warnings.simplefilter("ignore")
torch.set_num_threads(1)
result = {}


def weights(agent):
    return sum(float(p.detach().abs().sum()) for p in agent.policy.parameters())


agent = PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=2, seed=0), n_steps=64, batch_size=32,
            n_epochs=2, seed=0, device="cpu")
agent.learn(256)
result["ppo"] = [weights(agent), *evaluate_policy(agent, agent.get_env(), n_eval_episodes=2)]
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "agent.zip"
    agent.save(path)
    again = PPO.load(path, device="cpu")
observation = agent.get_env().reset()
result["reloaded"] = (agent.predict(observation, deterministic=True)[0]
                      == again.predict(observation, deterministic=True)[0]).tolist()
agent = A2C("MlpPolicy", "CartPole-v1", seed=1, device="cpu")
agent.learn(60)
result["a2c"] = weights(agent)
agent = DQN("MlpPolicy", "CartPole-v1", seed=2, learning_starts=20, batch_size=8, device="cpu",
            target_update_interval=20, policy_kwargs={"net_arch": [16]})
agent.learn(60)
result["dqn"] = weights(agent)
normal = VecNormalize(make_vec_env("Pendulum-v1", seed=3))
small = {"seed": 3, "learning_starts": 20, "batch_size": 8, "device": "cpu",
         "verbose": 0}
for name, kind in {"sac": SAC, "td3": TD3, "ddpg": DDPG}.items():
    agent = kind("MlpPolicy", normal, policy_kwargs={"net_arch": [16, 16]}, **small)
    agent.learn(40)
    result[name] = weights(agent)
print(json.dumps(result))
