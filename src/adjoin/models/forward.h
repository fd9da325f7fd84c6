#pragma once

// The forward pass of any network: a function of spec, weights, images and context.
//
//   Weights weights = models::init(spec, /*seed=*/0);
//   torch::Tensor logits = models::forward(spec, weights, images).logits();

#include "adjoin/nn/context.h"
#include "adjoin/spec/model_spec.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::models {

/// What the head(s) say of each image, (B, classes).
struct Output {
  torch::Tensor cls;
  torch::Tensor dist;  ///< DeiT's distillation head; undefined elsewhere

  /// The network's answer: the mean where there are two heads.
  torch::Tensor logits() const { return dist.defined() ? (cls + dist) / 2 : cls; }
};

/// Images (B, C, H, W) through the network. Stages and blocks are reported to `context.tap` under
/// their tensor prefixes: "patch_embed", "blocks.0", "layers.1.downsample", "norm".
Output forward(const ModelSpec& spec, const Weights& weights, const torch::Tensor& images,
               const nn::Context& context = {});

/// The two halves of it: images as the tokens (B, N, C) that enter the first block, and those
/// tokens through blocks and head(s). Networks with the same embedding can share the first.
torch::Tensor embed(const ModelSpec& spec, const Weights& weights, const torch::Tensor& images,
                    const nn::Context& context = {});
Output answer(const ModelSpec& spec, const Weights& weights, const torch::Tensor& tokens,
              const nn::Context& context = {});

// The families, for these.
torch::Tensor embed_family(const ModelSpec& spec, const VitSpec& vit, const Weights& weights,
                           const torch::Tensor& images, const nn::Context& context);
torch::Tensor embed_family(const ModelSpec& spec, const T2tSpec& t2t, const Weights& weights,
                           const torch::Tensor& images, const nn::Context& context);
torch::Tensor embed_family(const ModelSpec& spec, const SwinSpec& swin, const Weights& weights,
                           const torch::Tensor& images, const nn::Context& context);
Output answer_family(const ModelSpec& spec, const SwinSpec& swin, const Weights& weights,
                     const torch::Tensor& tokens, const nn::Context& context);

/// What ViT and T2T share: class token(s) and positions on patch tokens (B, N, C); blocks, norm and
/// head(s).
torch::Tensor with_class_tokens(const Weights& weights, const torch::Tensor& patches,
                                const nn::Context& context);
Output token_answer(const ModelSpec& spec, PoolKind pool, const Weights& weights,
                    const torch::Tensor& tokens, const nn::Context& context);

}  // namespace adjoin::models
