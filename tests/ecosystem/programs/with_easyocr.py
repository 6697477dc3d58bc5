"""easyocr: its detector and recognisers with random weights, and the decoding of text."""
# needs: easyocr
# tolerance: 2e-3
import json

import numpy as np
import torch
from easyocr.craft import CRAFT
from easyocr.craft_utils import getDetBoxes
from easyocr.model.model import Model as First
from easyocr.model.vgg_model import Model as Second
from easyocr.utils import CTCLabelConverter

torch.manual_seed(0)
detector = CRAFT(pretrained=False).eval()
with torch.no_grad():
    scores, features = detector(torch.rand(1, 3, 64, 96))
text, link = np.zeros((64, 96), np.float32), np.zeros((64, 96), np.float32)
text[20:30, 10:60] = 1.0
boxes, _, _ = getDetBoxes(text, link, 0.7, 0.4, 0.4)
converter = CTCLabelConverter("0123456789abc")
target, lengths = converter.encode(["12ab", "90c"])
recognised = {}
for name, kind in (("resnet", First), ("vgg", Second)):
    torch.manual_seed(1)
    model = kind(1, 16, 16, len(converter.character))
    logits = model(torch.rand(2, 1, 64, 100), None)
    steps = torch.IntTensor([logits.shape[1]] * 2)
    loss = torch.nn.functional.ctc_loss(logits.log_softmax(2).permute(1, 0, 2), target, steps,
                                        lengths)
    loss.backward()
    indices = logits.argmax(2).flatten()
    recognised[name] = [loss.item(), converter.decode_greedy(indices.numpy(), steps.numpy()),
                        float(sum(p.grad.norm() for p in model.parameters()
                                  if p.grad is not None))]
print(json.dumps({
    "scores": [list(scores.shape), scores.mean().item()], "features": features.mean().item(),
    "boxes": [np.asarray(b).tolist() for b in boxes], "encoded": [target.tolist(),
                                                                   lengths.tolist()],
    "recognised": recognised,
}))
