#include "adjoin/proxy/ranking.h"

#include <malloc.h>

#include <cmath>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "adjoin/core/rng.h"
#include "adjoin/core/stopwatch.h"
#include "adjoin/models/init.h"
#include "adjoin/tensor/device.h"

namespace adjoin::proxy {
namespace {

constexpr size_t kArchitecturesPerTrim = 20;

/// Mean and standard deviation; NaN where one of the values is.
std::pair<double, double> summary(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  if (values.size() < 2) return {mean, 0};
  return {mean, std::sqrt(squares / static_cast<double>(values.size() - 1))};
}

/// Results that come in any order, handed on in theirs.
class InOrder {
 public:
  explicit InOrder(const std::function<bool(const Scored&)>& take) : take_(take) {}

  /// The next architecture to compute; nothing when all are given out, or nobody wants more.
  std::optional<size_t> next(size_t count) {
    const std::lock_guard lock(mutex_);
    if (is_over_ || given_ == count) return std::nullopt;
    return given_++;
  }

  void add(size_t index, Scored scored) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(index, std::move(scored));
    while (!is_over_ && !waiting_.empty() && waiting_.begin()->first == taken_) {
      const Scored first = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      ++taken_;
      try {
        is_over_ = !take_(first);
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }

  void end(const std::exception_ptr& failure) {
    const std::lock_guard lock(mutex_);
    fail(failure);
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void fail(const std::exception_ptr& failure) {
    if (!failure_) failure_ = failure;
    is_over_ = true;
  }

  const std::function<bool(const Scored&)>& take_;
  std::mutex mutex_;
  std::map<size_t, Scored> waiting_;
  size_t given_ = 0;
  size_t taken_ = 0;
  bool is_over_ = false;
  std::exception_ptr failure_;
};

}  // namespace

Scored score(const ModelSpec& spec, const RankOptions& options, const BatchSource& batches) {
  const size_t count = options.proxies.size();
  Scored result{spec.name, 0, 0, {}, {}, std::vector<double>(count, 0)};
  std::vector<std::vector<double>> values(count);
  const std::vector<Sample> all = batches(spec);
  for (const uint64_t seed : options.seeds) {
    const Subject subject = subject_of(spec, models::init(spec, seed));
    result.params = subject.params;
    result.macs = subject.macs;
    for (size_t first = 0; first < all.size(); ++first) {
      std::vector<Sample> turned(all.begin() + static_cast<int64_t>(first), all.end());
      turned.insert(turned.end(), all.begin(), all.begin() + static_cast<int64_t>(first));
      Probe probe(subject, std::move(turned));
      for (size_t k = 0; k < count; ++k) {
        const Stopwatch watch;
        values[k].push_back(options.proxies[k]->score(probe));
        result.seconds[k] += watch.seconds();
      }
    }
  }
  for (const auto& one : values) {
    const auto [mean, spread] = summary(one);
    result.scores.push_back(mean);
    result.spreads.push_back(spread);
  }
  return result;
}

void score_all(const std::vector<ModelSpec>& networks, const RankOptions& options,
               const BatchSource& batches, const std::function<bool(const Scored&)>& take) {
  const Threads one_each(1);  // architectures share the cores out
  InOrder results(take);
  const auto work = [&] {
    try {
      at::set_num_threads(1);
      while (const auto index = results.next(networks.size())) {
        results.add(*index, score(networks[*index], options, batches));
        // What lies free between pieces that are still used would add up over thousands.
        if (*index % kArchitecturesPerTrim == 0) malloc_trim(0);
      }
    } catch (...) {
      results.end(std::current_exception());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < options.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  results.rethrow();
}

std::vector<Sample> random_batches(const ModelSpec& spec, int64_t size, int64_t count,
                                   uint64_t seed) {
  std::vector<Sample> result;
  for (int64_t b = 0; b < count; ++b) {
    Rng rng(stream_key(seed, {0x6261746368, static_cast<uint64_t>(b)}));
    Sample sample{torch::empty({size, spec.in_chans, spec.img_size, spec.img_size}),
                  torch::empty({size}, torch::kInt64)};
    auto* pixels = sample.images.data_ptr<float>();
    for (int64_t i = 0; i < sample.images.numel(); ++i) {
      pixels[i] = static_cast<float>(rng.normal());
    }
    auto* labels = sample.labels.data_ptr<int64_t>();
    for (int64_t i = 0; i < size; ++i) labels[i] = rng.below(spec.num_classes);
    result.push_back(std::move(sample));
  }
  return result;
}

}  // namespace adjoin::proxy
