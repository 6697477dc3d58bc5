"""torchmetrics: classification, regression, retrieval and image metrics over several batches."""
# needs: torchmetrics
import json

import torch
import torchmetrics
from torchmetrics import classification, image, regression, retrieval

torch.manual_seed(0)
CLASSES = 4
metrics = torchmetrics.MetricCollection({
    "accuracy": classification.MulticlassAccuracy(CLASSES),
    "auroc": classification.MulticlassAUROC(CLASSES),
    "f1": classification.MulticlassF1Score(CLASSES, average="macro"),
    "confusion": classification.MulticlassConfusionMatrix(CLASSES),
    "calibration": classification.MulticlassCalibrationError(CLASSES, n_bins=5),
    "kappa": classification.MulticlassCohenKappa(CLASSES),
})
fits = torchmetrics.MetricCollection({
    "r2": regression.R2Score(),
    "spearman": regression.SpearmanCorrCoef(),
    "pearson": regression.PearsonCorrCoef(),
})
ssim, psnr = image.StructuralSimilarityIndexMeasure(data_range=1.0), image.PeakSignalNoiseRatio(1.0)
ndcg = retrieval.RetrievalNormalizedDCG()
for _ in range(3):
    labels = torch.randint(CLASSES, (32,))
    metrics.update((torch.randn(32, CLASSES) + torch.eye(CLASSES)[labels]).softmax(1), labels)
    target = torch.randn(50)
    fits.update(target + 0.3 * torch.randn(50), target)
    picture = torch.rand(2, 3, 16, 16)
    noisy = (picture + 0.1 * torch.randn_like(picture)).clamp(0, 1)
    ssim.update(noisy, picture), psnr.update(noisy, picture)
    ndcg.update(torch.rand(20), torch.rand(20) > 0.7, indexes=torch.arange(20) % 4)

results = {**metrics.compute(), **fits.compute(), "ssim": ssim.compute(), "psnr": psnr.compute(),
           "ndcg": ndcg.compute()}
best = torchmetrics.BootStrapper(regression.MeanSquaredError(), num_bootstraps=4)
best.update(torch.arange(5.0), torch.arange(5.0) ** 2)
print(json.dumps({
    **{name: value.tolist() for name, value in results.items()},
    "text": repr(classification.BinaryAccuracy()),
    "bootstrapped": list(best.compute()),
    "states": sorted(metrics.state_dict()),
}))
