"""trl: supervised fine-tuning and preferences on a small GPT-2, with a tokenizer made here."""
# needs: trl, transformers, datasets
# tolerance: 3e-3
import json

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

words = "<pad> <eos> <unk> the cat dog sat ran on mat road big small red".split()
inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
inner.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>",
                                    unk_token="<unk>", model_max_length=32)


def model():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=len(words), n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=1,
        eos_token_id=1, pad_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


common = {"max_steps": 4, "per_device_train_batch_size": 2, "logging_steps": 1, "report_to": [],
          "disable_tqdm": True, "use_cpu": True, "learning_rate": 1e-3, "save_strategy": "no",
          "bf16": False, "gradient_checkpointing": False, "seed": 1}
texts = ["the cat sat on the mat", "a big dog ran", "the small cat", "the red road"] * 2
tuned = SFTTrainer(model=model(), processing_class=tokenizer,
                   args=SFTConfig(output_dir="sft", max_length=16, **common),
                   train_dataset=Dataset.from_dict({"text": texts}))
tuned.train()
preferences = Dataset.from_dict({
    "prompt": ["the cat", "the dog"] * 3, "chosen": [" sat on the mat", " ran"] * 3,
    "rejected": [" ran big", " sat red red"] * 3})
preferred = DPOTrainer(model=model(), ref_model=model(), processing_class=tokenizer,
                       args=DPOConfig(output_dir="dpo", max_length=16, **common),
                       train_dataset=preferences)
preferred.train()


def history(trainer, key):
    return [entry[key] for entry in trainer.state.log_history if key in entry]


print(json.dumps({
    "tuned": history(tuned, "loss"), "accuracy": history(tuned, "mean_token_accuracy"),
    "preferred": history(preferred, "loss"), "margins": history(preferred, "rewards/margins"),
}))
