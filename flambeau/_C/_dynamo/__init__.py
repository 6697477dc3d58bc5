"""What `torch.compile` watches in the interpreter: nothing, as plans are replayed."""
from flambeau._C._dynamo import eval_frame

__all__ = ["eval_frame"]
