#include "adjoin/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace adjoin::data {

Rng stream(uint64_t seed, Stream use, std::initializer_list<uint64_t> parts) {
  return Rng(stream_key(stream_key(seed, {static_cast<uint64_t>(use)}), parts));
}

Rng sample_stream(uint64_t seed, Stream use, int64_t epoch, const Sample& sample) {
  return stream(seed, use,
                {static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample.image),
                 static_cast<uint64_t>(sample.repeat)});
}

Slice rank_slice(int64_t count, int64_t rank, int64_t world) {
  const int64_t pairs = (count + 1) / 2;  // the last may be a single
  if (pairs < world) return {count * rank / world, count * (rank + 1) / world};
  return {2 * (pairs * rank / world), std::min(count, 2 * (pairs * (rank + 1) / world))};
}

Sampler::Sampler(const SamplerOptions& options)
    : options_(options), batch_(std::min(options.batch_size, options.images)) {}

int64_t Sampler::steps() const {
  if (batch_ == 0) return 0;
  return options_.is_training ? options_.images / batch_ : (options_.images + batch_ - 1) / batch_;
}

int64_t Sampler::batch_size(int64_t step) const {
  return std::min(batch_, options_.images - step * batch_);
}

void Sampler::begin(int64_t epoch) {
  epoch_ = epoch;
  order_.resize(static_cast<size_t>(options_.images));
  std::iota(order_.begin(), order_.end(), 0);
  if (!options_.is_training) return;
  Rng rng = stream(options_.seed, Stream::kOrder, {static_cast<uint64_t>(epoch)});
  for (size_t left = order_.size(); left > 1; --left) {  // Fisher-Yates
    std::swap(order_[left - 1], order_[static_cast<size_t>(rng.below(static_cast<int64_t>(left)))]);
  }
}

std::vector<Sample> Sampler::part(int64_t step) const {
  const Slice slice = rank_slice(batch_size(step), options_.rank, options_.world);
  std::vector<Sample> samples;
  samples.reserve(static_cast<size_t>(slice.end - slice.begin));
  for (int64_t p = slice.begin; p < slice.end; ++p) samples.push_back(sample(step, p));
  return samples;
}

Sample Sampler::sample(int64_t step, int64_t position) const {
  const int64_t repeats = options_.is_training ? options_.aug_repeats : 1;
  int64_t place = position;
  if (repeats > 1) {
    // Neighbours are mixed with each other: they come from the two halves of the batch, else an
    // image would mostly be mixed with itself.
    place = position % 2 == 0 ? position / 2 : (batch_size(step) + 1) / 2 + position / 2;
  }
  const int64_t in_epoch = step * batch_ + place;
  return {order_[static_cast<size_t>(in_epoch / repeats)], in_epoch % repeats};
}

}  // namespace adjoin::data
