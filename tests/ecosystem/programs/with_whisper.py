"""openai-whisper: sound to spectrogram, a small model's step of training, and decoding."""
# needs: whisper
# tolerance: 2e-3
import json

import torch
import whisper

torch.manual_seed(0)
sound = torch.sin(torch.arange(16000) * 0.05) * torch.hann_window(16000)
spectrogram = whisper.log_mel_spectrogram(whisper.pad_or_trim(sound), n_mels=80)
dimensions = whisper.ModelDimensions(
    n_mels=80, n_audio_ctx=1500, n_audio_state=32, n_audio_head=4, n_audio_layer=1, n_vocab=51865,
    n_text_ctx=32, n_text_state=32, n_text_head=4, n_text_layer=2)
model = whisper.model.Whisper(dimensions)
words = torch.randint(0, 51864, (1, 8))
torch.nn.init.normal_(model.decoder.positional_embedding, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for _ in range(2):
    logits = model(spectrogram[None], words)
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), words[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
model.eval()
options = whisper.DecodingOptions(language="en", fp16=False, sample_len=6, without_timestamps=True)
result = whisper.decode(model, spectrogram, options)
beams = whisper.decode(model, spectrogram, whisper.DecodingOptions(
    language="en", fp16=False, sample_len=4, beam_size=2))
_, languages = whisper.detect_language(model, spectrogram)
print(json.dumps({
    "spectrogram": [spectrogram.mean().item(), spectrogram.std().item()], "losses": losses,
    "tokens": result.tokens, "score": result.avg_logprob, "silence": result.no_speech_prob,
    "beams": beams.tokens, "language": max(languages, key=languages.get),
}))
