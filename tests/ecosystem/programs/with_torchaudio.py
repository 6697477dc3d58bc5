"""torchaudio: spectrograms, filters, effects, alignment, the transducer loss, models."""
# needs: torchaudio
# tolerance: 2e-3
import json
import math

import torch
import torchaudio.functional as F
from torchaudio import models, transforms

RATE = 8000
time = torch.arange(RATE // 2) / RATE
wave = torch.stack([torch.sin(2 * math.pi * 440 * time) * torch.exp(-3 * time),
                    torch.cos(2 * math.pi * 800 * time**1.1)]) * 0.7
torch.manual_seed(0)
noisy = wave + 0.05 * torch.randn_like(wave)


def summary(x):
    x = torch.view_as_real(x) if x.is_complex() else x
    return [list(x.shape), x.mean().item(), x.std().item()]


out = {"transforms": {name: summary(transform(noisy)) for name, transform in {
    "spectrogram": transforms.Spectrogram(n_fft=256, hop_length=64),
    "mel": transforms.MelSpectrogram(RATE, n_fft=256, n_mels=32),
    "mfcc": transforms.MFCC(RATE, n_mfcc=13, melkwargs={"n_fft": 256, "n_mels": 32}),
    "lfcc": transforms.LFCC(RATE, n_lfcc=10, speckwargs={"n_fft": 256}),
    "resample": transforms.Resample(RATE, 6000),
    "fade": transforms.Fade(400, 400),
    "loudness": transforms.Vol(0.5),
    "centroid": transforms.SpectralCentroid(RATE, n_fft=256),
}.items()}}
out["mu_law"] = F.mu_law_encoding(noisy, 256).float().mean().item()
codes = F.mu_law_encoding(noisy, 256)
out["decoded"] = summary(F.mu_law_decoding(codes, 256))

spectrum = transforms.Spectrogram(n_fft=256, hop_length=64, power=None)(wave)
out["stretched"] = summary(transforms.TimeStretch(64, n_freq=129)(spectrum, 1.2))
out["inverse"] = summary(transforms.InverseSpectrogram(n_fft=256, hop_length=64)(spectrum))
torch.manual_seed(1)
out["griffin_lim"] = summary(F.griffinlim(spectrum.abs(), torch.hann_window(256), 256, 64, 256,
                                          1.0, 4, 0.99, None, False))
torch.manual_seed(2)
out["masked"] = summary(transforms.FrequencyMasking(20)(spectrum.abs()))
out["pitch"] = summary(F.pitch_shift(wave, RATE, 2, n_fft=256))
out["detected"] = F.detect_pitch_frequency(wave, RATE)[:, 5].tolist()

out["filters"] = {
    "lowpass": summary(F.lowpass_biquad(noisy, RATE, 1000.0)),
    "equalizer": summary(F.equalizer_biquad(noisy, RATE, 500.0, 6.0)),
    "treble": summary(F.treble_biquad(noisy, RATE, 5.0)),
    "lfilter": summary(F.lfilter(noisy, torch.tensor([1.0, -0.5, 0.2]),
                                 torch.tensor([0.3, 0.2, 0.1]))),
    "filtfilt": summary(F.filtfilt(noisy, torch.tensor([1.0, -0.5]), torch.tensor([0.5, 0.2]))),
    "overdrive": summary(F.overdrive(noisy)),
    "phaser": summary(F.phaser(wave[:, :400], RATE)),
    "contrast": summary(F.contrast(noisy)),
    "dcshift": summary(F.dcshift(noisy, 0.1)),
    "flanger": summary(F.flanger(wave[:, :200], RATE)),
    "convolved": summary(F.fftconvolve(noisy, noisy[:, :50])),
    "snr": summary(F.add_noise(wave, noisy - wave, torch.tensor([10.0, 5.0]))),
    "deltas": summary(F.compute_deltas(spectrum.abs())),
    "cmn": summary(F.sliding_window_cmn(spectrum.abs().mT)),
}
coefficients = torch.tensor([1.0, -0.5, 0.2], requires_grad=True)
F.lfilter(noisy, coefficients, torch.tensor([0.3, 0.2, 0.1])).square().mean().backward()
out["gradient"] = coefficients.grad.tolist()

torch.manual_seed(3)
logits = torch.randn(2, 6, 4, 5, requires_grad=True)
lengths = torch.tensor([6, 5], dtype=torch.int32), torch.tensor([3, 2], dtype=torch.int32)
loss = F.rnnt_loss(logits, torch.tensor([[1, 2, 3], [2, 2, 0]], dtype=torch.int32), *lengths,
                   blank=4)
loss.backward()
out["rnnt"] = [loss.item(), logits.grad.norm().item()]
labels, scores = F.forced_align(torch.randn(1, 20, 6).log_softmax(-1), torch.tensor([[1, 2, 2, 5]]))
out["aligned"] = [labels.tolist(), [(s.token, s.start, s.end)
                                    for s in F.merge_tokens(labels[0], scores[0].exp())]]
out["edit"] = F.edit_distance("kitten", "sitting")

torch.manual_seed(4)
model = models.Wav2Letter(num_classes=10, input_type="waveform", num_features=1).eval()
conformer = models.Conformer(16, 4, 32, 2, 7).eval()
wav2vec = models.wav2vec2_model(
    extractor_mode="layer_norm", extractor_conv_layer_config=[(16, 10, 5), (16, 8, 4)],
    extractor_conv_bias=True, encoder_embed_dim=24, encoder_projection_dropout=0.0,
    encoder_pos_conv_kernel=15, encoder_pos_conv_groups=4, encoder_num_layers=2,
    encoder_num_heads=4, encoder_attention_dropout=0.0, encoder_ff_interm_features=48,
    encoder_ff_interm_dropout=0.0, encoder_dropout=0.0, encoder_layer_norm_first=True,
    encoder_layer_drop=0.0, aux_num_out=12)
with torch.no_grad():
    out["wav2letter"] = summary(model(noisy[:, None]))
    out["conformer"] = summary(conformer(torch.randn(2, 30, 16), torch.tensor([30, 20]))[0])
    out["wav2vec2"] = summary(wav2vec.eval()(noisy)[0])
tasnet = models.ConvTasNet(2, 8, 16, 3, 8, 16, 2, 1)
loss = (tasnet(noisy[:, None, :1000]) - noisy[:, None, :1000]).square().mean()
loss.backward()
out["tasnet"] = [loss.item(), float(sum(p.grad.norm() for p in tasnet.parameters()))]
print(json.dumps(out))
