// Our kernels on a GPU beside the same layers on the CPU in float64.
#include <fmt/format.h>

#include "adjoin/nn/attention/heads.h"
#include "adjoin/nn/gelu.h"
#include "adjoin/nn/residual.h"
#include "adjoin/tensor/device.h"
#include "support/seeded_test.h"

namespace adjoin::nn {
namespace {

struct Precision {
  const char* name;
  torch::ScalarType weights;
  bool has_autocast;
  double tolerance;
};

class GpuKernelTest : public SeededTest,
                      public testing::WithParamInterface<std::tuple<Precision, int64_t>> {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU is visible to this LibTorch";
    prepare_torch(1);
  }

  static Precision precision() { return std::get<0>(GetParam()); }
  static int64_t width() { return std::get<1>(GetParam()); }

  void make(const std::string& name, at::IntArrayRef shape) {
    cpu_.set(name, randn64(shape));
    names_.push_back(name);
  }

  using Layer = std::function<torch::Tensor(const Weights&)>;

  /// The output of a layer and its gradients for all tensors, in float64.
  std::vector<torch::Tensor> results(const Layer& layer, torch::Device device,
                                     torch::ScalarType type, bool has_autocast) {
    Weights weights;
    std::vector<torch::Tensor> leaves;
    for (const std::string& name : names_) {
      leaves.push_back(cpu_.at(name).to(device, type).requires_grad_());
      weights.set(name, leaves.back());
    }
    torch::Tensor out;
    {
      const Autocast autocast(device, has_autocast);
      out = layer(weights);
    }
    const auto direction = torch::linspace(-1, 1, out.numel(), torch::kFloat64).view(out.sizes());
    auto all =
        torch::autograd::grad({out}, leaves, {direction.to(out.device(), out.scalar_type())});
    all.insert(all.begin(), out.detach());
    for (torch::Tensor& one : all) one = one.to(torch::kCPU, torch::kFloat64);
    return all;
  }

  void expect_as_on_the_cpu(const Layer& layer) {
    const auto wanted = results(layer, torch::kCPU, torch::kFloat64, false);
    const auto got = results(layer, torch::Device(torch::kCUDA, 0), precision().weights,
                             precision().has_autocast);
    for (size_t i = 0; i < got.size(); ++i) {
      const double error = ((got[i] - wanted[i]).norm() / wanted[i].norm()).item<double>();
      EXPECT_LT(error, precision().tolerance) << (i == 0 ? "output" : names_[i - 1]);
    }
  }

 private:
  Weights cpu_;
  std::vector<std::string> names_;
};

TEST_P(GpuKernelTest, SumAndNorm) {
  constexpr int64_t kImages = 70, kTokens = 49;
  make("x", {kImages, kTokens, width()});
  make("norm.weight", {width()});
  make("norm.bias", {width()});
  make("fc.weight", {width(), 12});
  make("fc.bias", {width()});
  make("input", {kImages, kTokens, 12});
  const auto tokens = torch::randperm(kTokens).to(torch::kInt32);
  const auto places = tokens.argsort().to(torch::kInt32);
  for (const bool is_reordered : {false, true}) {
    expect_as_on_the_cpu([&](const Weights& weights) {
      const auto device = weights.at("x").device();
      Stream stream{weights.at("x")};
      stream.branch = projected(weights, "fc.", weights.at("input"), {});
      TokenOrder order;
      if (is_reordered) {
        order = {tokens.to(device), places.to(device)};
        stream.branch->order = order;
        stream.branch->scale = torch::arange(kImages).remainder(3).to(weights.at("x").options());
      }
      const auto norm = next_norm(stream, weights, "norm.", 1e-6, {}, order);
      return torch::cat({norm.to(stream.sum.scalar_type()), stream.sum}, 1);
    });
  }
}

TEST_P(GpuKernelTest, NormAlone) {
  make("x", {3, 50, width()});
  make("norm.weight", {width()});
  make("norm.bias", {width()});
  expect_as_on_the_cpu([&](const Weights& weights) {
    Stream stream{weights.at("x")};
    return next_norm(stream, weights, "norm.", 1e-6, {});
  });
}

TEST_P(GpuKernelTest, Gelu) {
  make("x", {9, 65, 16});
  make("fc.weight", {width(), 16});
  make("fc.bias", {width()});
  expect_as_on_the_cpu(
      [&](const Weights& weights) { return linear_gelu(weights, "fc.", weights.at("x")); });
}

TEST_P(GpuKernelTest, Heads) {
  make("x", {9, 65, 16});
  make("qkv.weight", {3 * width(), 16});
  make("qkv.bias", {3 * width()});
  for (const int64_t heads : {int64_t{1}, width() % 4 == 0 ? 4 : width()}) {
    expect_as_on_the_cpu([&](const Weights& weights) {
      const auto parts = project_heads(weights, "qkv.", weights.at("x"), heads);
      return torch::cat({parts[0] * 2, parts[1], parts[2].square()}, 2);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Widths, GpuKernelTest,
    testing::Combine(testing::Values(Precision{"Float64", torch::kFloat64, false, 1e-12},
                                     Precision{"Float32", torch::kFloat32, false, 1e-5},
                                     Precision{"Bfloat16", torch::kFloat32, true, 2e-2}),
                     testing::Values(7, 30, 64, 192, 256, 384, 768, 1022, 1024, 1100)),
    [](const auto& p) {
      return fmt::format("{}Width{}", std::get<0>(p.param).name, std::get<1>(p.param));
    });

}  // namespace
}  // namespace adjoin::nn
