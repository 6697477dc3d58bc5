"""Ax optimises a function: quasi-random points first, then a Gaussian process."""
# needs: ax
# tolerance: 1e-2
import json
import logging
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

import torch
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

torch.manual_seed(0)
client = Client(random_seed=1)
client.configure_experiment(name="bowl", parameters=[
    RangeParameterConfig(name="x", parameter_type="float", bounds=(-2.0, 2.0)),
    RangeParameterConfig(name="y", parameter_type="float", bounds=(-2.0, 2.0))])
client.configure_optimization(objective="-loss")
client.configure_generation_strategy(method="fast", initialization_budget=4,
                                     initialization_random_seed=1)
points = []
for _ in range(6):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        loss = (parameters["x"] - 0.5) ** 2 + (parameters["y"] + 0.2) ** 2
        client.complete_trial(trial_index=index, raw_data={"loss": loss})
        points.append([parameters["x"], parameters["y"]])
print(json.dumps({"first": points[:4], "fifth": points[4]}))
