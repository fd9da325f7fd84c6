#include "adjoin/spec/mixer.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace adjoin {

Mixer default_mixer(MixerKind kind, int64_t tokens) {
  constexpr int64_t kMost = 64;  // of what a token is compared with at once
  Mixer mixer{.kind = kind};
  switch (kind) {
    case MixerKind::kRelative: mixer.distance = 14; break;
    case MixerKind::kLinformer: mixer.k = std::clamp<int64_t>(tokens / 4, 1, kMost); break;
    case MixerKind::kSparseStrided:
    case MixerKind::kSparseFixed:
      mixer.stride = std::max<int64_t>(1, std::llround(std::sqrt(static_cast<double>(tokens))));
      if (kind == MixerKind::kSparseStrided) mixer.band = mixer.stride;
      if (kind == MixerKind::kSparseFixed) mixer.columns = 1;
      break;
    case MixerKind::kLsh:
      mixer.chunk = std::clamp<int64_t>(tokens / 8, 1, kMost);
      mixer.rounds = 4;
      break;
    case MixerKind::kSoftmax:
    case MixerKind::kLinear:
    case MixerKind::kRecurrent: break;
  }
  return mixer;
}

int64_t sequential_steps(const Mixer& mixer, int64_t tokens) {
  if (mixer.kind == MixerKind::kRecurrent) return tokens;
  if (mixer.kind == MixerKind::kLsh) return std::bit_width(static_cast<uint64_t>(tokens - 1));
  return 1;
}

}  // namespace adjoin
