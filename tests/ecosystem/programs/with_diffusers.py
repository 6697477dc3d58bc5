"""diffusers: training of a small UNet, schedulers, pipelines and autoencoders."""
# needs: diffusers, transformers
# tolerance: 5e-3
import json

import diffusers
import torch

torch.manual_seed(0)
unet = diffusers.UNet2DModel(
    sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32),
    norm_num_groups=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"))
noise_schedule = diffusers.DDPMScheduler(num_train_timesteps=50)
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
losses = []
for _ in range(3):
    clean, noise = torch.rand(2, 3, 16, 16) * 2 - 1, torch.randn(2, 3, 16, 16)
    steps = torch.randint(0, 50, (2,))
    noisy = noise_schedule.add_noise(clean, noise, steps)
    loss = torch.nn.functional.mse_loss(unet(noisy, steps).sample, noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
unet.eval()

sampled = {}
for name in ("DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler",
             "EulerAncestralDiscreteScheduler", "DPMSolverMultistepScheduler",
             "HeunDiscreteScheduler",
             "LMSDiscreteScheduler", "UniPCMultistepScheduler", "KDPM2DiscreteScheduler"):
    schedule = getattr(diffusers, name)(num_train_timesteps=50)
    schedule.set_timesteps(5)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, 3, 16, 16, generator=generator) * schedule.init_noise_sigma
    takes_generator = "generator" in schedule.step.__code__.co_varnames
    with torch.no_grad():
        for t in schedule.timesteps:
            predicted = unet(schedule.scale_model_input(x, t), t).sample
            x = schedule.step(predicted, t, x,
                              **({"generator": generator} if takes_generator else {})).prev_sample
    sampled[name] = [x.mean().item(), x.std().item()]
pipeline = diffusers.DDPMPipeline(unet=unet, scheduler=noise_schedule)
pipeline.set_progress_bar_config(disable=True)
images = pipeline(batch_size=1, num_inference_steps=4, output_type="np",
                  generator=torch.Generator().manual_seed(2)).images
pipeline.save_pretrained("pipeline")
again = diffusers.DDPMPipeline.from_pretrained("pipeline")
same = all(torch.equal(a, b) for a, b in zip(unet.parameters(), again.unet.parameters()))

torch.manual_seed(3)
vae = diffusers.AutoencoderKL(
    in_channels=3, out_channels=3, block_out_channels=(16, 16), latent_channels=4,
    norm_num_groups=8, down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2)
posterior = vae.encode(torch.rand(1, 3, 16, 16)).latent_dist
decoded = vae.decode(posterior.mean).sample
(decoded.square().mean() + posterior.kl().mean()).backward()
conditional = diffusers.UNet2DConditionModel(
    sample_size=8, in_channels=4, out_channels=4, block_out_channels=(16, 32), layers_per_block=1,
    cross_attention_dim=16, norm_num_groups=8, attention_head_dim=8,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")).eval()
with torch.no_grad():
    guided = conditional(torch.randn(1, 4, 8, 8), 5, torch.randn(1, 7, 16)).sample
average = diffusers.training_utils.EMAModel(unet.parameters(), decay=0.9)
average.step(unet.parameters())
print(json.dumps({
    "losses": losses, "sampled": sampled, "pipeline": [float(images.mean()), float(images.std())],
    "saved": same, "decoded": decoded.std().item(),
    "gradient": float(sum(p.grad.norm() for p in vae.parameters() if p.grad is not None)),
    "guided": [guided.mean().item(), guided.std().item()],
}))
