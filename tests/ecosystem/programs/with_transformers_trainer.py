"""transformers' Trainer with accelerate: training, evaluation, checkpoints and resuming."""
# needs: transformers, accelerate
# tolerance: 1e-3
import json
import math
from pathlib import Path

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    EarlyStoppingCallback,
    Trainer,
    TrainingArguments,
)

WORDS, LENGTH = 40, 12


class Sequences(torch.utils.data.Dataset):
    """Which half of the words a sequence is mostly made of."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(2, (count,), generator=generator)
        words = torch.randint(1, WORDS // 2, (count, LENGTH), generator=generator)
        self.words = words + self.labels[:, None] * (WORDS // 2)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.words[i], "attention_mask": torch.ones(LENGTH, dtype=torch.long),
                "labels": self.labels[i]}


def model():
    torch.manual_seed(0)
    return BertForSequenceClassification(BertConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=LENGTH, num_labels=2,
        hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1))


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def trainer(**changes):
    arguments = {
        "output_dir": "out", "max_steps": 12, "per_device_train_batch_size": 8,
        "per_device_eval_batch_size": 16, "learning_rate": 3e-3, "warmup_steps": 2,
        "lr_scheduler_type": "cosine", "logging_steps": 3, "save_steps": 6, "eval_steps": 6,
        "eval_strategy": "steps", "gradient_accumulation_steps": 2, "weight_decay": 0.01,
        "load_best_model_at_end": True, "metric_for_best_model": "accuracy", "report_to": [],
        "disable_tqdm": True, "seed": 7, "use_cpu": True, **changes}
    return Trainer(model=model(), args=TrainingArguments(**arguments),
                   train_dataset=Sequences(96, 1), eval_dataset=Sequences(40, 2),
                   compute_metrics=accuracy, callbacks=[EarlyStoppingCallback(3)])


first = trainer()
outcome = first.train()
scores = first.evaluate()
logits = first.predict(Sequences(6, 3)).predictions
resumed = trainer()
again = resumed.train(resume_from_checkpoint="out/checkpoint-6")
same = all(torch.equal(a, b) for a, b in zip(first.model.parameters(),
                                             resumed.model.parameters()))
half = trainer(bf16=True, gradient_checkpointing=True, output_dir="half", optim="adafactor")
half_outcome = half.train()
first.save_model("saved")
loaded = BertForSequenceClassification.from_pretrained("saved")

print(json.dumps({
    "losses": [entry["loss"] for entry in first.state.log_history if "loss" in entry],
    "norms": [entry["grad_norm"] for entry in first.state.log_history if "grad_norm" in entry],
    "rates": [entry["learning_rate"] for entry in first.state.log_history
              if "learning_rate" in entry],
    "training": outcome.training_loss,
    "evaluation": [scores["eval_loss"], scores["eval_accuracy"]],
    "logits": logits.tolist(),
    "resumed": [again.global_step, same],
    "files": sorted(p.name for p in Path("out/checkpoint-12").iterdir()),
    "half": [math.isfinite(half_outcome.training_loss), half_outcome.global_step],
    "loaded": all(torch.equal(a, b) for a, b in zip(first.model.parameters(),
                                                    loaded.parameters())),
}))
