"""Recurrent networks and attention made of modules that can each be quantised."""
from flambeau.ao.nn.quantizable.attention import MultiheadAttention
from flambeau.ao.nn.quantizable.rnn import LSTM, LSTMCell

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
