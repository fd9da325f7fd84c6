#pragma once

// What a forward pass needs besides spec, weights and input.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "adjoin/tensor/torch.h"

namespace adjoin::nn {

/// Tensors that follow from a spec alone (window masks, relative positions), kept from one pass to
/// the next. One per thread of passes.
class Constants {
 public:
  /// The tensor `make` gives, made once per key.
  const torch::Tensor& get(const std::string& key, const std::function<torch::Tensor()>& make) {
    torch::Tensor& slot = kept_[key];
    if (!slot.defined()) slot = make();
    return slot;
  }

 private:
  std::map<std::string, torch::Tensor> kept_;
};

/// Called with the name of a block or stage and its output (B, N, C).
using Tap = std::function<void(std::string_view name, const torch::Tensor& value)>;

/// Computes a block, by its number, in another way: (B, N, C) -> (B, N, C).
using BlockFunction = std::function<torch::Tensor(size_t block, const torch::Tensor& x)>;

struct Context {
  bool is_training = false;
  bool is_recomputed = false;            ///< blocks are computed again in backward, see recompute.h
  bool is_differentiated_twice = false;  ///< gradients will be differentiated themselves
  double dropout = 0;                    ///< on embeddings, attention output and MLP, in training
  TorchOptional<torch::Generator> rng;   ///< of dropout and drop-path; LibTorch's default otherwise
  Tap tap;
  BlockFunction block;             ///< instead of the network's own blocks
  bool has_norms = true;           ///< else layer norms hand on what they get
  bool has_mlps = true;            ///< else blocks are attention alone
  bool has_skips = true;           ///< else nothing stands beside attention and MLP but shortcuts
  Constants* constants = nullptr;  ///< without it they are made anew in each pass

  void report(std::string_view name, const torch::Tensor& value) const {
    if (tap) tap(name, value);
  }
};

/// `constants.get(key, make)`, or `make()` where nothing is kept.
torch::Tensor constant(const Context& context, const std::string& key,
                       const std::function<torch::Tensor()>& make);

/// x with each value zeroed with chance `rate` and the rest scaled up; x itself outside training.
torch::Tensor dropout(const torch::Tensor& x, double rate, const Context& context);

/// Stochastic depth (Huang et al. 2016), as factors of the images' branches: 0 with chance `rate`,
/// else what keeps the mean; undefined where nothing is dropped.
///
/// (B), with the options of `like`
torch::Tensor drop_path(int64_t batch, const torch::Tensor& like, double rate,
                        const Context& context);

}  // namespace adjoin::nn
