#include "adjoin/nn/attention/linformer.h"

#include "adjoin/nn/attention/softmax.h"

namespace adjoin::nn {

torch::Tensor linformer_attention(const torch::Tensor& q, const torch::Tensor& k,
                                  const torch::Tensor& v, const torch::Tensor& keys,
                                  const torch::Tensor& values, double scale) {
  const auto summed = [](const torch::Tensor& weights, const torch::Tensor& x) {
    return torch::matmul(weights.transpose(-2, -1), x);  // (.., H, k, d)
  };
  return plain_attention(q, summed(keys, k), summed(values, v), scale, {});
}

}  // namespace adjoin::nn
