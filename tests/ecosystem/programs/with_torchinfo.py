"""Summaries of networks: layers, shapes, parameters, operations."""
# needs: torchinfo
import json

import torch
from torch import nn
from torchinfo import summary

torch.manual_seed(0)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
                                      nn.MaxPool2d(2))
        self.lstm = nn.LSTM(8, 6, bidirectional=True, batch_first=True)
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True)
        self.out = nn.Linear(12, 4)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x, *, repeat=1):
        h = self.features(x).flatten(2).transpose(1, 2)
        h = self.lstm(h)[0]
        for _ in range(repeat):
            h = self.attention(h, h, h)[0]
        return self.out(h.mean(1)) * self.scale


result = summary(Network(), (2, 3, 10, 10), verbose=0, depth=4, repeat=2, device="cpu",
                 col_names=("input_size", "output_size", "num_params", "kernel_size", "mult_adds",
                            "trainable"), row_settings=("var_names", "depth"))
transformer = summary(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2),
                      input_data=torch.rand(5, 1, 8), verbose=0, device="cpu")
print(json.dumps({
    "text": str(result),
    "parameters": [result.total_params, result.trainable_params, result.total_mult_adds],
    "bytes": [result.total_output_bytes, result.total_param_bytes],
    "transformer": str(transformer),
}))
