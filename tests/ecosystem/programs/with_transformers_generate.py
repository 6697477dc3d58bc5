"""transformers: a step of training and generation by models of many kinds, with random weights."""
# needs: transformers
# tolerance: 2e-3
import json

import torch
import transformers as tf

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "vocab_size": 60, "max_position_embeddings": 64}
NO_TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
torch.manual_seed(0)
words = torch.randint(3, 60, (2, 10))


def trained(model, **inputs):
    """Loss and size of the gradient of a training step, and the loss after it."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        torch.manual_seed(2)
        loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def made(kind, config):
    torch.manual_seed(1)
    return kind(config)


out = {}
# ---- decoders -----------------------------------------------------------------------------------
decoders = {
    "gpt2": (tf.GPT2LMHeadModel, tf.GPT2Config(
        vocab_size=60, n_positions=64, n_embd=32, n_layer=2, n_head=4, **NO_TOKENS)),
    "llama": (tf.LlamaForCausalLM, tf.LlamaConfig(**SMALL, num_key_value_heads=2, **NO_TOKENS)),
    "mistral": (tf.MistralForCausalLM, tf.MistralConfig(
        **SMALL, num_key_value_heads=2, sliding_window=6, **NO_TOKENS)),
    "qwen2": (tf.Qwen2ForCausalLM, tf.Qwen2Config(**SMALL, num_key_value_heads=2, **NO_TOKENS)),
    "gemma": (tf.GemmaForCausalLM, tf.GemmaConfig(
        **SMALL, num_key_value_heads=1, head_dim=8, **NO_TOKENS)),
    "phi": (tf.PhiForCausalLM, tf.PhiConfig(**SMALL, **NO_TOKENS)),
    "gpt_neox": (tf.GPTNeoXForCausalLM, tf.GPTNeoXConfig(**SMALL, **NO_TOKENS)),
    "opt": (tf.OPTForCausalLM, tf.OPTConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, ffn_dim=64, num_attention_heads=4,
        max_position_embeddings=64, word_embed_proj_dim=32, **NO_TOKENS)),
    "mixtral": (tf.MixtralForCausalLM, tf.MixtralConfig(
        **SMALL, num_key_value_heads=2, num_local_experts=4, **NO_TOKENS)),
    "bloom": (tf.BloomForCausalLM, tf.BloomConfig(
        vocab_size=60, hidden_size=32, n_layer=2, n_head=4, **NO_TOKENS)),
    "mamba": (tf.MambaForCausalLM, tf.MambaConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, state_size=8, **NO_TOKENS)),
    "mamba2": (tf.Mamba2ForCausalLM, tf.Mamba2Config(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, state_size=8, num_heads=8, head_dim=8,
        n_groups=2, chunk_size=4, **NO_TOKENS)),
    "rwkv": (tf.RwkvForCausalLM, tf.RwkvConfig(
        vocab_size=60, context_length=64, hidden_size=32, num_hidden_layers=2, **NO_TOKENS)),
}
for name, (kind, config) in decoders.items():
    model = made(kind, config)
    losses = trained(model, input_ids=words, labels=words)
    model.eval()
    greedy = model.generate(words[:, :4], max_new_tokens=8, do_sample=False)
    torch.manual_seed(3)
    sampled = model.generate(words[:, :4], max_new_tokens=6, do_sample=True, top_k=20, top_p=0.9,
                             temperature=0.8)
    out[name] = {"losses": losses, "greedy": greedy.tolist(), "sampled": sampled.tolist()}
gpt2 = made(*decoders["gpt2"]).eval()
out["beams"] = gpt2.generate(words[:, :4], num_beams=3, max_new_tokens=6, no_repeat_ngram_size=2,
                             num_return_sequences=2).tolist()
padded = torch.cat([torch.zeros(2, 2, dtype=torch.long), words[:, :4]], 1)
out["padded"] = gpt2.generate(padded, attention_mask=(padded > 0).long(),
                              max_new_tokens=4, do_sample=False).tolist()
with torch.no_grad():
    for attention in ("eager", "sdpa"):
        llama = made(decoders["llama"][0], decoders["llama"][1]).eval()
        llama.set_attn_implementation(attention)
        out[attention] = llama(words).logits.std().item()

# ---- encoders and decoders ----------------------------------------------------------------------
t5 = made(tf.T5ForConditionalGeneration, tf.T5Config(
    vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
    decoder_start_token_id=0, eos_token_id=2, pad_token_id=0))
bart = made(tf.BartForConditionalGeneration, tf.BartConfig(
    vocab_size=60, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
    decoder_start_token_id=1, forced_eos_token_id=2, **NO_TOKENS))
for name, model in {"t5": t5, "bart": bart}.items():
    losses = trained(model, input_ids=words, labels=words[:, :6].contiguous())
    model.eval()
    out[name] = {"losses": losses,
                 "greedy": model.generate(words, max_new_tokens=6, do_sample=False).tolist(),
                 "beams": model.generate(words, max_new_tokens=6, num_beams=2).tolist()}

# ---- encoders -----------------------------------------------------------------------------------
masked = {
    "bert": (tf.BertForMaskedLM, tf.BertConfig(**SMALL)),
    "roberta": (tf.RobertaForMaskedLM, tf.RobertaConfig(**SMALL)),
    "distilbert": (tf.DistilBertForMaskedLM, tf.DistilBertConfig(
        vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64)),
    "electra": (tf.ElectraForMaskedLM, tf.ElectraConfig(**SMALL, embedding_size=16)),
    "deberta": (tf.DebertaV2ForMaskedLM, tf.DebertaV2Config(
        **SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"])),
}
for name, (kind, config) in masked.items():
    out[name] = trained(made(kind, config), input_ids=words, labels=words)
answers = made(tf.BertForQuestionAnswering, tf.BertConfig(**SMALL))
out["answers"] = trained(answers, input_ids=words, start_positions=torch.tensor([1, 2]),
                         end_positions=torch.tensor([3, 4]))

# ---- pictures and sound -------------------------------------------------------------------------
image, labels = torch.rand(2, 3, 32, 32), torch.tensor([0, 1])
vision = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 64, "image_size": 32, "patch_size": 8}
out["vit"] = trained(made(tf.ViTForImageClassification, tf.ViTConfig(**vision)),
                     pixel_values=image, labels=labels)
out["swin"] = trained(made(tf.SwinForImageClassification, tf.SwinConfig(
    image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4)),
    pixel_values=image, labels=labels)
out["resnet"] = trained(made(tf.ResNetForImageClassification, tf.ResNetConfig(
    embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1])), pixel_values=image, labels=labels)
clip = made(tf.CLIPModel, tf.CLIPConfig(
    text_config={**SMALL, "projection_dim": 16, **NO_TOKENS},
    vision_config={**vision, "projection_dim": 16}, projection_dim=16))
out["clip"] = trained(clip, input_ids=words, pixel_values=image, return_loss=True)
whisper = made(tf.WhisperForConditionalGeneration, tf.WhisperConfig(
    vocab_size=60, num_mel_bins=16, d_model=32, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
    max_source_positions=20, max_target_positions=24, decoder_start_token_id=1,
    begin_suppress_tokens=[5], suppress_tokens=[6, 7], **NO_TOKENS))
sound = torch.randn(2, 16, 40)
losses = trained(whisper, input_features=sound, labels=words)
whisper.eval()
whisper.generation_config.update(suppress_tokens=[6, 7], begin_suppress_tokens=[5])
out["whisper"] = {"losses": losses, "greedy": whisper.generate(
    sound, max_new_tokens=6, do_sample=False).tolist()}
wav2vec = made(tf.Wav2Vec2ForCTC, tf.Wav2Vec2Config(
    vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, conv_dim=(16, 16), conv_kernel=(10, 4), conv_stride=(5, 4),
    num_feat_extract_layers=2, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
    mask_time_prob=0.0, layerdrop=0.0))
out["wav2vec2"] = trained(wav2vec, input_values=torch.randn(2, 1000),
                          labels=torch.randint(1, 20, (2, 5)))
print(json.dumps(out))
