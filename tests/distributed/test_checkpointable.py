"""What a kind of tensor says of itself."""
import flambeau as torch
from flambeau.distributed._checkpointable import _Checkpointable


class Own:
    def __create_write_items__(self, fqn, object):
        return []

    def __create_chunk_list__(self):
        return []

    def __get_tensor_shard__(self, index):
        return torch.ones(1)


def test_who_says_it():
    assert isinstance(Own(), _Checkpointable)
    assert not isinstance(torch.ones(1), _Checkpointable) and not isinstance(3, _Checkpointable)
