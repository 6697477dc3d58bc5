"""peft: adapters of several kinds on a small Llama, trained, saved, loaded and merged."""
# needs: peft, transformers
# tolerance: 2e-3
import json

import peft
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
words = torch.randint(3, 60, (2, 10))


def base():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=64, pad_token_id=0))


def trained(model):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-2)
    losses = []
    for _ in range(4):
        loss = model(input_ids=words, labels=words).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


TARGETS = ["q_proj", "v_proj"]
kinds = {
    "lora": peft.LoraConfig(r=4, lora_alpha=8, target_modules=TARGETS, task_type="CAUSAL_LM"),
    "dora": peft.LoraConfig(r=4, use_dora=True, target_modules=TARGETS, task_type="CAUSAL_LM"),
    "ia3": peft.IA3Config(target_modules=[*TARGETS, "down_proj"], feedforward_modules=["down_proj"],
                          task_type="CAUSAL_LM"),
    "loha": peft.LoHaConfig(r=4, alpha=8, target_modules=TARGETS, task_type="CAUSAL_LM"),
    "oft": peft.OFTConfig(r=0, oft_block_size=8, target_modules=TARGETS, task_type="CAUSAL_LM"),
    "prompt": peft.PromptTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
    "prefix": peft.PrefixTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
}
out = {}
for name, config in kinds.items():
    model = base()
    torch.manual_seed(2)
    model = peft.get_peft_model(model, config)
    counts = model.get_nb_trainable_parameters()
    out[name] = {"parameters": list(counts), "losses": trained(model)}
    if name == "lora":
        model.eval()
        model.save_pretrained("adapter")
        with torch.no_grad():
            before = model(words).logits
            again = peft.PeftModel.from_pretrained(base(), "adapter").eval()(words).logits
            with model.disable_adapter():
                without = model(words).logits
            merged = model.merge_and_unload()(words).logits
        out["saved"] = [torch.equal(before, again), bool((before - merged).abs().max() < 1e-5),
                        (before - without).abs().mean().item()]
print(json.dumps(out))
