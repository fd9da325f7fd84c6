#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <set>
#include <string>

#include "adjoin/cost/cost.h"
#include "adjoin/tensor/torch.h"

namespace adjoin {

/// Counts the multiply-accumulates of every matrix product LibTorch executes while it lives, on all
/// threads, by a profiler callback that reads the operands' shapes.
class MacCounter {
 public:
  MacCounter() {
    total().store(0);
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&MacCounter::on_function)
                                        .needsInputs(true)
                                        .scopes({at::RecordScope::FUNCTION}));
  }
  ~MacCounter() { at::removeCallback(handle_); }
  MacCounter(const MacCounter&) = delete;
  MacCounter& operator=(const MacCounter&) = delete;

  int64_t macs() const { return total().load(); }

 private:
  static std::atomic<int64_t>& total() {
    static std::atomic<int64_t> count;
    return count;
  }

  /// The two factors are the last two tensors among the operands of these ops.
  static std::unique_ptr<at::ObserverContext> on_function(const at::RecordFunction& function) {
    static const std::set<std::string> kProducts = {"aten::mm", "aten::addmm", "aten::bmm",
                                                    "aten::baddbmm"};
    static const std::set<std::string> kOther = {"aten::convolution", "aten::dot", "aten::mv",
                                                 "aten::addmv", "aten::addbmm"};
    const std::string name = function.name();
    if (name == "adjoin::attend_small") {
      const auto& q = function.inputs()[0].toTensor();  // (G, N, d)
      total() += 2 * q.numel() * q.size(1);
      return nullptr;
    }
    // Of LibTorch 2.x on CPUs.
    if (name == "aten::_scaled_dot_product_flash_attention_for_cpu") {
      const auto inputs = function.inputs();
      total() += 2 * inputs[0].toTensor().numel() * inputs[1].toTensor().size(-2);
      return nullptr;
    }
    if (name == "aten::_fft_r2c") {
      const auto& x = function.inputs()[0].toTensor();  // weights have four axes, and count nothing
      if (x.dim() == 3) total() += x.numel() / x.size(2) * fourier_macs(x.size(2));
      return nullptr;
    }
    if (name == "aten::_fft_c2r") {
      const auto& x = function.inputs()[0].toTensor();
      total() += x.numel() / x.size(2) * fourier_macs(function.inputs()[3].toInt());
      return nullptr;
    }
    if (kOther.contains(name)) throw std::logic_error("MacCounter does not count " + name);
    if (!kProducts.contains(name)) return nullptr;
    const auto inputs = function.inputs();
    const size_t first = name.find("add") == std::string::npos ? 0 : 1;
    const auto& a = inputs[first].toTensor();
    const auto& b = inputs[first + 1].toTensor();
    total() += a.numel() * b.size(-1) * (a.is_complex() ? 4 : 1);
    return nullptr;
  }

  at::CallbackHandle handle_;
};

}  // namespace adjoin
