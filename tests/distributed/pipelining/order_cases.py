"""Recorded orders, and their notation."""
from __future__ import annotations

import json
from pathlib import Path

from flambeau.distributed.pipelining.schedules import _Action

DATA = json.loads((Path(__file__).parents[2] / "data" / "pipeline_orders.json").read_text())


def written(actions):
    return " ".join("_" if action is None else str(action) for action in actions)


def parse(text):
    return [None if cell == "_" else _Action.from_str(cell) for cell in text.split()]
