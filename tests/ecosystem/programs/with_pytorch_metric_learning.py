"""Metric learning: losses, miners, samplers, accuracy of embeddings."""
# needs: pytorch_metric_learning
import json

import torch
from pytorch_metric_learning import distances, losses, miners, reducers, samplers
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN
from torch import nn

torch.manual_seed(0)
x, labels = torch.randn(32, 6), torch.arange(32) % 4
model = nn.Linear(6, 8)
result = {}
for loss in (losses.ContrastiveLoss(), losses.TripletMarginLoss(), losses.NTXentLoss(),
             losses.CircleLoss(), losses.MultiSimilarityLoss(), losses.SupConLoss(),
             losses.LiftedStructureLoss(), losses.AngularLoss(), losses.FastAPLoss(),
             losses.NPairsLoss(), losses.TupletMarginLoss(), losses.VICRegLoss(),
             losses.GeneralizedLiftedStructureLoss(), losses.MarginLoss(),
             losses.ArcFaceLoss(4, 8), losses.CosFaceLoss(4, 8), losses.ProxyAnchorLoss(4, 8),
             losses.ProxyNCALoss(4, 8), losses.SoftTripleLoss(4, 8),
             losses.NormalizedSoftmaxLoss(4, 8),
             losses.SubCenterArcFaceLoss(num_classes=4, embedding_size=8),
             losses.CrossBatchMemory(losses.NTXentLoss(), 8)):
    model.zero_grad()
    out = model(x)
    value = (loss(out, ref_emb=out.tanh()) if isinstance(loss, losses.VICRegLoss)
             else loss(out, labels))
    value.backward()
    result[type(loss).__name__] = [value.item(), model.weight.grad.norm().item()]
for miner in (miners.BatchHardMiner(), miners.TripletMarginMiner(type_of_triplets="semihard"),
              miners.MultiSimilarityMiner(), miners.DistanceWeightedMiner(), miners.HDCMiner(),
              miners.UniformHistogramMiner(), miners.AngularMiner(), miners.PairMarginMiner()):
    found = miner(model(x), labels)
    result[type(miner).__name__] = [len(found[0]), *(int(i.sum()) for i in found)]
mean = losses.TripletMarginLoss(distance=distances.CosineSimilarity(),
                                reducer=reducers.ThresholdReducer(low=0.1))
result["reduced"] = mean(model(x), labels, miners.BatchHardMiner()(model(x), labels)).item()
result["sampler"] = [int(i) for i in sorted(
    samplers.MPerClassSampler(labels, 2, 8, 16).labels)]
accuracy = AccuracyCalculator(
    include=("precision_at_1", "r_precision", "mean_average_precision_at_r"), k=3,
    knn_func=CustomKNN(distances.LpDistance()), device=torch.device("cpu"))
result["accuracy"] = accuracy.get_accuracy(model(x).detach(), labels)
print(json.dumps(result))
