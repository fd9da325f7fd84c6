#include "adjoin/train/buckets.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <functional>
#include <mutex>

#include "adjoin/core/error.h"

namespace adjoin::train {
namespace {

/// Elements [begin, end) of the flat buffer that share a fate, and the leaves with a part in them.
struct LeafRange {
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<size_t> leaves;

  /// Backward runs against the order of the leaves: the first one is the last to be ready.
  size_t last_ready() const { return *std::min_element(leaves.begin(), leaves.end()); }
};

LeafRange range_of(const torch::Tensor& view, const torch::Tensor& flat, size_t leaf) {
  if (!view.defined() || !view.is_alias_of(flat) || view.scalar_type() != flat.scalar_type()) {
    throw Error(ErrorKind::kInternal, "leaf " + std::to_string(leaf) +
                                          " must have a gradient that is a view of the flat one");
  }
  LeafRange range = {view.storage_offset() - flat.storage_offset(), 0, {leaf}};
  range.end = range.begin + 1;
  for (int64_t i = 0; i < view.dim(); ++i) range.end += (view.size(i) - 1) * view.stride(i);
  if (view.numel() == 0) range.end = range.begin;
  if (range.begin < 0 || range.end > flat.numel()) {
    throw Error(ErrorKind::kInternal,
                "the gradient of leaf " + std::to_string(leaf) + " reaches out of the flat one");
  }
  return range;
}

/// Ranges in the order of the buffer, those that overlap as one; gaps go to the range before.
std::vector<LeafRange> disjoint_ranges(std::vector<LeafRange> ranges, int64_t numel) {
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const LeafRange& a, const LeafRange& b) { return a.begin < b.begin; });
  std::vector<LeafRange> merged;
  for (const LeafRange& range : ranges) {
    if (!merged.empty() && range.begin < merged.back().end) {
      LeafRange& last = merged.back();
      last.end = std::max(last.end, range.end);
      last.leaves.insert(last.leaves.end(), range.leaves.begin(), range.leaves.end());
    } else {
      merged.push_back(range);
    }
  }
  for (size_t i = 0; i < merged.size(); ++i) {
    merged[i].end = i + 1 < merged.size() ? merged[i + 1].begin : numel;
  }
  if (!merged.empty()) merged.front().begin = 0;
  return merged;
}

/// Neighbours joined up to `most` elements, in the order in which backward makes them ready. Where
/// that order turns, another group of the optimizer begins.
std::vector<LeafRange> join_ranges(const std::vector<LeafRange>& ranges, int64_t most) {
  std::vector<LeafRange> buckets;
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    const bool fits = !buckets.empty() && buckets.back().end - range->begin <= most &&
                      range->last_ready() < buckets.back().last_ready();
    if (!fits) {
      buckets.push_back(*range);
      continue;
    }
    LeafRange& bucket = buckets.back();
    bucket.begin = range->begin;
    bucket.leaves.insert(bucket.leaves.end(), range->leaves.begin(), range->leaves.end());
  }
  std::sort(buckets.begin(), buckets.end(),
            [](const LeafRange& a, const LeafRange& b) { return a.last_ready() > b.last_ready(); });
  return buckets;
}

}  // namespace

struct GradientBuckets::Impl {
  struct Leaf {
    torch::Tensor tensor;
    torch::Tensor view;  ///< its gradient's place
    std::shared_ptr<torch::autograd::Node> accumulator;
    uintptr_t hook = 0;
    size_t bucket = 0;
    bool is_ready = false;
  };
  struct Bucket {
    torch::Tensor values;
    size_t leaves = 0;
    size_t missing = 0;
  };

  Group* group = nullptr;
  std::vector<Leaf> leaves;
  std::vector<Bucket> buckets;

  mutable std::mutex mutex;  // guards all below, and what leaves and buckets say of a step
  bool is_open = false;
  std::vector<std::unique_ptr<Group::Pending>> pending;
  std::exception_ptr failure;

  /// A gradient has come. Failures wait for finish(): this runs inside backward.
  void mark(size_t index) {
    const std::lock_guard lock(mutex);
    if (!is_open || failure) return;
    try {
      Leaf& leaf = leaves[index];
      if (leaf.is_ready) {
        throw Error(ErrorKind::kInternal,
                    "leaf " + std::to_string(index) + " got a second gradient before finish()");
      }
      keep_view(leaf);
      leaf.is_ready = true;
      --buckets[leaf.bucket].missing;
      while (pending.size() < buckets.size() && buckets[pending.size()].missing == 0) send_next();
    } catch (...) {
      failure = std::current_exception();
    }
  }

  /// Autograd adds in place to a gradient that is there. To one that was reset, or when it records
  /// a graph of gradients, it makes a new tensor: its values belong into the buffer.
  static void keep_view(Leaf& leaf) {
    const torch::Tensor& grad = leaf.tensor.grad();
    if (grad.defined() && grad.data_ptr() == leaf.view.data_ptr()) return;
    const torch::NoGradGuard no_grad;
    if (grad.defined()) leaf.view.copy_(grad);
    leaf.tensor.mutable_grad() = leaf.view;
  }

  void send_next() { pending.push_back(group->start_sum(buckets[pending.size()].values)); }
};

namespace {

/// Tells the buckets that a leaf's gradient has been added up.
class ReadyHook : public torch::autograd::FunctionPostHook {
 public:
  explicit ReadyHook(std::function<void()> act) : act_(std::move(act)) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    act_();
    return outputs;
  }

 private:
  std::function<void()> act_;
};

}  // namespace

GradientBuckets::GradientBuckets(Group& group, const std::vector<torch::Tensor>& leaves,
                                 const torch::Tensor& flat, int64_t bytes)
    : impl_(std::make_shared<Impl>()) {
  impl_->group = &group;
  if (group.size() == 1 || leaves.empty()) return;
  if (flat.dim() != 1 || !flat.is_contiguous()) {
    throw Error(ErrorKind::kInternal, "the flat gradient must be 1-d and contiguous");
  }
  std::vector<LeafRange> ranges;
  for (size_t i = 0; i < leaves.size(); ++i) {
    ranges.push_back(range_of(leaves[i].grad(), flat, i));
    impl_->leaves.push_back({leaves[i], leaves[i].grad(), nullptr, 0, 0, false});
  }
  ranges = disjoint_ranges(std::move(ranges), flat.numel());
  for (const LeafRange& range :
       join_ranges(ranges, std::max<int64_t>(bytes / flat.element_size(), 1))) {
    for (const size_t leaf : range.leaves) impl_->leaves[leaf].bucket = impl_->buckets.size();
    const auto values = flat.detach().slice(0, range.begin, range.end);
    impl_->buckets.push_back({values, range.leaves.size(), 0});
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    Impl::Leaf& leaf = impl_->leaves[i];
    leaf.accumulator = torch::autograd::impl::grad_accumulator(leaf.tensor);
    if (!leaf.accumulator) {
      throw Error(ErrorKind::kInternal, "leaf " + std::to_string(i) + " must require a gradient");
    }
    leaf.hook = leaf.accumulator->add_post_hook(
        std::make_unique<ReadyHook>([impl = std::weak_ptr<Impl>(impl_), i] {
          if (const auto alive = impl.lock()) alive->mark(i);
        }));
  }
}

GradientBuckets::~GradientBuckets() {
  for (const Impl::Leaf& leaf : impl_->leaves) {
    if (leaf.accumulator) leaf.accumulator->del_post_hook(leaf.hook);
  }
}

void GradientBuckets::begin() {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->is_open) throw Error(ErrorKind::kInternal, "begin() was called twice");
  impl_->is_open = true;
  impl_->failure = nullptr;
  impl_->pending.clear();
  for (Impl::Leaf& leaf : impl_->leaves) leaf.is_ready = false;
  for (Impl::Bucket& bucket : impl_->buckets) bucket.missing = bucket.leaves;
}

void GradientBuckets::finish() {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->is_open) throw Error(ErrorKind::kInternal, "finish() was called without begin()");
  impl_->is_open = false;
  if (impl_->failure) std::rethrow_exception(impl_->failure);
  while (impl_->pending.size() < impl_->buckets.size()) impl_->send_next();
  for (const auto& sum : impl_->pending) sum->wait();
}

size_t GradientBuckets::count() const { return impl_->buckets.size(); }

size_t GradientBuckets::sent() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->pending.size();
}

}  // namespace adjoin::train
