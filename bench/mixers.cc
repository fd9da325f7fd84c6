// The C++ side of mixers.py: one mixer on queries, keys and values of so many tokens, timed on
// request. One JSON object per line in and out.
#include <chrono>
#include <cmath>
#include <fstream>

#include "adjoin/cost/cost.h"
#include "adjoin/nn/attention/linear_attention.h"
#include "adjoin/nn/attention/linformer.h"
#include "adjoin/nn/attention/lsh.h"
#include "adjoin/nn/attention/softmax.h"
#include "adjoin/nn/attention/sparse.h"
#include "adjoin/tensor/device.h"
#include "bench/worker.h"

namespace adjoin {
namespace {

/// Kilobytes of a line of /proc/self/status.
int64_t memory_kib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1));
  }
  return 0;
}

class Worker {
 public:
  Json load(const Json& request) {
    prepare_torch(request.at("threads").get<int>());
    tokens_ = request.at("tokens").get<int64_t>();
    const auto heads = request.at("heads").get<int64_t>();
    const auto dim = request.at("dim").get<int64_t>();
    MixerKind kind{};
    from_json(request.at("kind"), kind, "kind");
    mixer_ = default_mixer(kind, tokens_);
    mixer_.is_causal = request.at("causal").get<bool>();
    scale_ = 1 / std::sqrt(static_cast<double>(dim));
    for (torch::Tensor* x : {&q_, &k_, &v_}) {
      *x = torch::randn({1, heads, tokens_, dim}).requires_grad_(true);
    }
    keys_ = torch::randn({tokens_, std::max<int64_t>(mixer_.k, 1)}) / std::sqrt(double(tokens_));
    rotations_ =
        torch::randn({std::max<int64_t>(mixer_.rounds, 1), dim,
                      mixer_.kind == MixerKind::kLsh ? lsh_chunks(mixer_, tokens_) / 2 : 1});
    context_.constants = &constants_;
    const Macs counted = macs({"mixer", op({heads, dim, scale_}), {0}, {tokens_, heads * dim}});
    return {{"mixer", to_json(mixer_)},
            {"macs", counted.total()},
            {"macs_attention", counted.attention_qk + counted.attention_av},
            {"steps", sequential_steps(mixer_, tokens_)}};
  }

  Json run(const std::string& mode) {
    const int64_t before = memory_kib("VmRSS");
    const auto start = std::chrono::steady_clock::now();
    if (mode == "train") {
      torch::autograd::grad({forward().sum()}, inputs());
    } else {
      const torch::NoGradGuard no_grad;
      forward();
    }
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return {{"ms", elapsed.count()}, {"peak_kib", memory_kib("VmHWM") - before}};
  }

 private:
  OpDetail op(const Heads& heads) const {
    switch (mixer_.kind) {
      case MixerKind::kLinformer: return LinformerOp{heads, {}, "e", "f", mixer_.k, false};
      case MixerKind::kSparseStrided:
      case MixerKind::kSparseFixed: return SparseOp{heads, mixer_};
      case MixerKind::kLsh: return LshOp{heads, mixer_, "rotations"};
      case MixerKind::kLinear:
      case MixerKind::kRecurrent: return LinearMixerOp{heads, mixer_, {}};
      case MixerKind::kSoftmax:
      case MixerKind::kRelative: break;
    }
    return AttentionOp{heads.heads, heads.head_dim, heads.scale, {}, "", {}};
  }

  std::vector<torch::Tensor> inputs() const {
    if (mixer_.kind == MixerKind::kLsh) return {q_, v_};
    return {q_, k_, v_};
  }

  torch::Tensor forward() {
    switch (mixer_.kind) {
      case MixerKind::kLinformer: return nn::linformer_attention(q_, k_, v_, keys_, keys_, scale_);
      case MixerKind::kSparseStrided:
      case MixerKind::kSparseFixed:
        return nn::sparse_attention(q_, k_, v_, mixer_, scale_, context_);
      case MixerKind::kLsh: return nn::lsh_attention(q_, v_, rotations_, mixer_, scale_);
      case MixerKind::kLinear:
      case MixerKind::kRecurrent: return nn::linear_attention(q_, k_, v_, mixer_);
      case MixerKind::kSoftmax:
      case MixerKind::kRelative: break;
    }
    return nn::scaled_dot_product(q_, k_, v_, scale_, {}, {});
  }

  int64_t tokens_ = 0;
  Mixer mixer_;
  double scale_ = 1;
  torch::Tensor q_, k_, v_, keys_, rotations_;
  nn::Constants constants_;
  nn::Context context_;
};

}  // namespace
}  // namespace adjoin

int main() {
  adjoin::Worker worker;
  return adjoin::bench::serve([&](const std::string& op, const adjoin::Json& request) {
    return op == "load" ? worker.load(request) : worker.run(op);
  });
}
