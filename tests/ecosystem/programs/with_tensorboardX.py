"""Scalars, histograms, images, embeddings and a model's graph as TensorBoard's files."""
# needs: tensorboardX
import json
from pathlib import Path

import torch
from tensorboardX import SummaryWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import RecordWriter
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
with SummaryWriter("runs", flush_secs=1) as writer:
    for step in range(3):
        writer.add_scalar("loss", torch.tensor(1.0 / (step + 1)), step)
    writer.add_scalars("both", {"a": torch.tensor(1.0), "b": 2.0}, 0)
    writer.add_histogram("weight", model[0].weight, 0)
    writer.add_image("image", torch.rand(3, 4, 4), 0)
    writer.add_pr_curve("pr", torch.tensor([0, 1, 1]), torch.tensor([0.2, 0.6, 0.9]), 0)
    writer.add_hparams({"lr": 0.1}, {"accuracy": torch.tensor(0.5)}, name="h")
    writer.add_embedding(torch.rand(4, 3), metadata=list("abcd"))


def events(path):
    data, place = path.read_bytes(), 0
    while place < len(data):
        size = int.from_bytes(data[place:place + 8], "little")
        yield Event.FromString(data[place + 12:place + 12 + size])
        place += size + 16


found = {}
for path in sorted(Path("runs").rglob("events*")):
    for event in events(path):
        for value in event.summary.value:
            kind = value.WhichOneof("value")
            shown = found.setdefault(value.tag, [kind])
            if kind == "simple_value":
                shown.append(value.simple_value)
            elif kind == "histo":
                shown += [value.histo.min, value.histo.max, value.histo.num, value.histo.sum]
            elif kind == "image":
                shown += [value.image.height, value.image.width]
print(json.dumps({
    "found": {k: v for k, v in found.items() if not k.startswith("_hparams_")},
    "writer": RecordWriter.__name__,
    "embedding": sorted(p.name for p in Path("runs").rglob("*.tsv")),
}))
