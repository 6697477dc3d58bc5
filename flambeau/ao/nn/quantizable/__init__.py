"""Recurrent networks and attention made of modules that can each be quantised."""
from flambeau._support.lazy.modules import parts
from flambeau.ao.nn.quantizable.attention import MultiheadAttention
from flambeau.ao.nn.quantizable.rnn import LSTM, LSTMCell

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]

parts(__name__, {
    "modules": "*",
    "modules.activation": "MultiheadAttention",
    "modules.rnn": "LSTMCell LSTM"})
