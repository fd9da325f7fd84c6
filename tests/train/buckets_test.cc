// Gradients that are summed while backward runs are those of one process with the whole batch.
#include "adjoin/train/buckets.h"

#include <fmt/format.h>

#include <atomic>

#include "adjoin/core/hash.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/spec/catalog.h"
#include "support/expect_error.h"
#include "train/ranks.h"

namespace adjoin::train {
namespace {

constexpr int64_t kBatch = 6;

/// A real network whose gradients lie in one buffer, as the trainer has them: tensors with weight
/// decay first, then the others.
struct Network {
  ModelSpec spec = catalog_spec("vit_mini_28");
  Weights weights = models::init(spec, 1).to(torch::kCPU, torch::kFloat64);
  std::vector<torch::Tensor> leaves;
  torch::Tensor flat;

  /// `has_unused`: another head between the blocks and the real one, without a part in the output.
  explicit Network(bool has_unused = false) {
    models::require_gradients(spec, weights);
    std::vector<bool> has_decay;
    for (const TensorInfo& info : tensors(spec)) {
      if (has_unused && info.name == "head.weight") {
        leaves.push_back(torch::ones({10, 64}, torch::kFloat64).requires_grad_());
        has_decay.push_back(true);
      }
      if (!info.is_trained) continue;
      leaves.push_back(weights.at(info.name));
      has_decay.push_back(info.has_decay);
    }
    int64_t numel = 0;
    for (const torch::Tensor& leaf : leaves) numel += leaf.numel();
    flat = torch::zeros(numel, torch::kFloat64);
    int64_t offset = 0;
    for (const bool decay : {true, false}) {
      for (size_t i = 0; i < leaves.size(); ++i) {
        if (has_decay[i] != decay) continue;
        leaves[i].mutable_grad() =
            flat.slice(0, offset, offset + leaves[i].numel()).view(leaves[i].sizes());
        offset += leaves[i].numel();
      }
    }
  }

  /// Of images [begin, end) of the batch, scaled by the whole batch.
  torch::Tensor loss(int64_t begin, int64_t end) const {
    const auto pixels = torch::arange(kBatch * 28 * 28, torch::kFloat64);
    const auto images = (pixels * 0.37).sin().view({kBatch, 1, 28, 28}).slice(0, begin, end);
    const auto labels = torch::arange(kBatch, torch::kInt64).slice(0, begin, end);
    const auto logits = models::forward(spec, weights, images).logits();
    return torch::nll_loss(logits.log_softmax(1), labels, {}, at::Reduction::Sum) / kBatch;
  }
};

std::string check(const char* name, const torch::Tensor& summed, const torch::Tensor& whole) {
  const double error =
      (summed - whole).abs().max().item<double>() / whole.abs().max().item<double>();
  const std::string_view bytes(static_cast<const char*>(summed.data_ptr()), summed.nbytes());
  return fmt::format("{} {} {:x}\n", name,
                     error <= 1e-12 ? "equal" : fmt::format("off by {}", error), fnv1a(bytes));
}

/// One step in buckets of this size; also how many had been sent when backward came to the first
/// leaf.
std::string network_step(Group& group, const char* name, int64_t bytes, bool has_unused) {
  Network network(has_unused), alone(has_unused);
  alone.loss(0, kBatch).backward();
  GradientBuckets buckets(group, network.leaves, network.flat, bytes);
  std::atomic<size_t> sent_before_the_end = 0;
  network.leaves.front().register_hook(
      [&](const torch::Tensor&) { sent_before_the_end = buckets.sent(); });
  const int64_t share = kBatch / group.size();
  for (int step = 0; step < 2; ++step) {
    network.flat.zero_();
    buckets.begin();
    network.loss(group.rank() * share, (group.rank() + 1) * share).backward();
    buckets.finish();
  }
  return fmt::format("{} of {} ", sent_before_the_end.load(), buckets.count()) +
         check(name, network.flat, alone.flat);
}

/// Two halves of each rank's share, of which only the second is sent.
std::string accumulated_step(Group& group) {
  Network network, alone;
  alone.loss(0, kBatch).backward();
  GradientBuckets buckets(group, network.leaves, network.flat, 1 << 16);
  const int64_t share = kBatch / group.size(), start = group.rank() * share;
  network.loss(start, start + 1).backward();
  for (torch::Tensor& leaf : network.leaves) {
    if (!leaf.grad().is_alias_of(network.flat)) return "a gradient left the buffer\n";
  }
  buckets.begin();
  network.loss(start + 1, start + share).backward();
  buckets.finish();
  return check("accumulated", network.flat, alone.flat);
}

/// A small weight inside a large one: its gradient is a strided part of the large one's.
std::string nested_step(Group& group) {
  const auto large = torch::arange(48, torch::kFloat64).view({8, 6}).requires_grad_();
  const auto other = torch::ones({5}, torch::kFloat64).requires_grad_();
  const auto small = large.detach().slice(1, 0, 3).requires_grad_();
  const auto flat = torch::zeros({48 + 5}, torch::kFloat64);
  large.mutable_grad() = flat.slice(0, 0, 48).view({8, 6});
  other.mutable_grad() = flat.slice(0, 48, 53);
  small.mutable_grad() = large.grad().slice(1, 0, 3);
  GradientBuckets buckets(group, {large, other, small}, flat, 8);
  buckets.begin();
  (small.sum() * (group.rank() + 1) + large.square().sum() * other.sum()).backward();
  buckets.finish();
  const auto n = static_cast<double>(group.size());
  auto whole = torch::empty({53}, torch::kFloat64);
  whole.slice(0, 0, 48).view({8, 6}).copy_(large.detach() * 10 * n);
  whole.slice(0, 0, 48).view({8, 6}).slice(1, 0, 3) += n * (n + 1) / 2;
  whole.slice(0, 48, 53).fill_(large.detach().square().sum().item<double>() * n);
  return check("nested", flat, whole);
}

/// A gradient that was taken away comes back as a part of the buffer.
std::string lost_view_step(Group& group) {
  const auto leaf = torch::ones({4}, torch::kFloat64).requires_grad_();
  const auto flat = torch::zeros({4}, torch::kFloat64);
  leaf.mutable_grad() = flat.slice(0, 0, 4);
  GradientBuckets buckets(group, {leaf}, flat);
  leaf.mutable_grad().reset();
  buckets.begin();
  (leaf.sum() * 3).backward();
  buckets.finish();
  if (!leaf.grad().is_alias_of(flat)) return "the view is lost\n";
  return check("restored", flat, torch::full({4}, 3.0 * group.size(), torch::kFloat64));
}

std::string second_gradient(Group& group) {
  const auto leaf = torch::ones({4}, torch::kFloat64).requires_grad_();
  const auto flat = torch::zeros({4}, torch::kFloat64);
  leaf.mutable_grad() = flat.slice(0, 0, 4);
  GradientBuckets buckets(group, {leaf}, flat);
  buckets.begin();
  leaf.sum().backward();
  leaf.sum().backward();
  try {
    buckets.finish();
  } catch (const Error& e) {
    return std::string(e.what()) + "\n";
  }
  return "no error\n";
}

}  // namespace

std::string play_gradients() {
  Group group = Group::join(launch_from_environment(), torch::kCPU);
  std::string text = network_step(group, "one", int64_t{1} << 30, false);
  text += network_step(group, "many", 1, false);
  text += network_step(group, "unused", 1 << 16, true);
  text += accumulated_step(group);
  text += nested_step(group);
  text += lost_view_step(group);
  return text + second_gradient(group);
}

namespace {

TEST(GradientBucketsTest, TwoProcessesHaveTheGradientsOfOneWithTheWholeBatch) {
  if (!Group::is_available(torch::kCPU)) GTEST_SKIP() << "this build has no Gloo";
  Ranks ranks("gradients", 2);
  const ProgramResult first = ranks.finish(0);
  const ProgramResult second = ranks.finish(1);
  EXPECT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_EQ(first.out, second.out) << second.err;
  for (const char* part : {"one equal", "many equal", "unused equal", "accumulated equal",
                           "nested equal", "restored equal", "got a second gradient"}) {
    EXPECT_TRUE(contains(first.out, part)) << part << " is not in: " << first.out;
  }
  // One bucket per optimizer group at least, one per tensor at most; with many, most are on their
  // way before backward has come to the first leaf.
  size_t few = 0, few_sent = 0, many = 0, many_sent = 0;
  ASSERT_EQ(std::sscanf(first.out.c_str(), "%zu of %zu one %*s %*s %zu of %zu", &few_sent, &few,
                        &many_sent, &many),
            4)
      << first.out;
  EXPECT_EQ(few, 2U);
  EXPECT_EQ(few_sent, 0U);
  EXPECT_EQ(many, Network().leaves.size());
  EXPECT_GT(many_sent, many / 2);
  EXPECT_LT(many_sent, many);
}

TEST(GradientBucketsTest, AProcessAloneHasNoHooks) {
  Network network;
  Group group;
  GradientBuckets buckets(group, network.leaves, network.flat);
  buckets.begin();
  network.loss(0, kBatch).backward();
  buckets.finish();
  EXPECT_EQ(buckets.count(), 0U);
  const auto accumulator = torch::autograd::impl::grad_accumulator(network.leaves.front());
  EXPECT_TRUE(accumulator->post_hooks().empty());
}

}  // namespace
}  // namespace adjoin::train
