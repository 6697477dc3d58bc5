"""ultralytics: a small YOLO made from its description, a step of training, and predictions."""
# needs: ultralytics
# tolerance: 5e-3
import json
import os

os.environ["YOLO_CONFIG_DIR"] = os.getcwd()
os.environ["YOLO_AUTOINSTALL"] = "false"
import numpy as np
import torch
from ultralytics import YOLO
from ultralytics.cfg import get_cfg
from ultralytics.nn.tasks import DetectionModel, SegmentationModel
from ultralytics.utils import nms, ops

torch.manual_seed(0)
model = DetectionModel("yolov8n.yaml", nc=3, verbose=False)
model.args = get_cfg()
model.train()
batch = {"img": torch.rand(2, 3, 64, 64), "batch_idx": torch.tensor([0.0, 0, 1]),
         "cls": torch.tensor([[0.0], [1], [2]]),
         "bboxes": torch.tensor([[0.5, 0.5, 0.4, 0.3], [0.3, 0.6, 0.2, 0.5], [0.6, 0.4, 0.5, 0.5]])}
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
losses = []
for _ in range(2):
    optimizer.zero_grad()
    loss, parts = model(batch)
    loss.sum().backward()
    optimizer.step()
    losses.append([float(v) for v in (parts.values() if isinstance(parts, dict) else parts)])
model.eval()
with torch.no_grad():
    raw = model(batch["img"])[0]
kept = nms.non_max_suppression(raw, conf_thres=0.0, iou_thres=0.5, max_det=5)
torch.manual_seed(1)
segmenter = SegmentationModel("yolov8n-seg.yaml", nc=2, verbose=False).eval()
with torch.no_grad():
    segmented = segmenter(torch.rand(1, 3, 64, 64))[0]
segmented = segmented[0] if isinstance(segmented, (tuple, list)) else segmented
yolo = YOLO("yolov8n.yaml", verbose=False)
picture = np.random.default_rng(0).integers(0, 256, (70, 60, 3), dtype=np.uint8)
found = yolo.predict(picture, imgsz=64, conf=0.9, verbose=False)[0]
print(json.dumps({
    "losses": losses, "raw": [list(raw.shape), raw.mean().item()],
    "kept": [list(k.shape) for k in kept], "segmented": segmented.mean().item(),
    "parameters": sum(p.numel() for p in model.parameters()),
    "boxes": ops.xywh2xyxy(torch.tensor([[5.0, 5, 2, 4]])).tolist(),
    "predicted": [len(found.boxes), list(found.orig_shape)],
}))
