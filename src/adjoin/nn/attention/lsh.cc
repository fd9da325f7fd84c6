#include "adjoin/nn/attention/lsh.h"

#include <limits>

#include "adjoin/tensor/device.h"
#include "adjoin/tensor/widened.h"

namespace adjoin::nn {
namespace {

/// The tokens of every round sorted by bucket, those of one bucket in their order, the filling
/// last.
///
/// (B, H, N, d) -> (B, H, rounds, padded), int64
torch::Tensor sorted_tokens(const torch::Tensor& q, const torch::Tensor& rotations,
                            int64_t padded) {
  const torch::NoGradGuard no_grad;
  const int64_t rounds = rotations.size(0);
  const int64_t half = rotations.size(2);
  const auto directions = rotations.permute({1, 0, 2}).reshape({q.size(3), rounds * half});
  const auto turned =
      torch::matmul(q.detach(), directions).unflatten(-1, {rounds, half});  // (B, H, N, r, half)
  const auto bucket = torch::cat({turned, -turned}, -1).argmax(-1).transpose(2, 3);
  const auto filled = torch::constant_pad_nd(bucket, {0, padded - q.size(2)}, 2 * half);
  const auto place = torch::arange(padded, filled.options());
  return (filled * padded + place).argsort(int64_t{-1});
}

}  // namespace

torch::Tensor lsh_attention(const torch::Tensor& q_in, const torch::Tensor& v_in,
                            const torch::Tensor& rotations, const Mixer& mixer, double scale) {
  const Autocast exact(q_in.device(), false);  // a bucket must not depend on the type
  const auto q = widened(q_in);
  const auto v = widened(v_in);
  const int64_t tokens = q.size(2);
  const int64_t chunks = lsh_chunks(mixer, tokens);
  const int64_t padded = chunks * mixer.chunk;
  const auto order = sorted_tokens(q, widened(rotations), padded);  // (B, H, r, padded)

  const auto sorted = [&](const torch::Tensor& x) {  // (B, H, r, chunks, chunk, d)
    const auto filled = torch::constant_pad_nd(x, {0, 0, 0, padded - tokens});
    return filled.unsqueeze(2)
        .expand({-1, -1, mixer.rounds, -1, -1})
        .gather(3, order.unsqueeze(-1).expand({-1, -1, -1, -1, x.size(3)}))
        .unflatten(3, {chunks, mixer.chunk});
  };
  const auto with_before = [](const torch::Tensor& x, int64_t dim) {
    return torch::cat({x, x.roll(1, 3)}, dim);
  };
  const auto length = torch::sqrt(q.square().sum(-1, true) + 1e-24);
  const auto places = order.unflatten(3, {chunks, mixer.chunk});  // (B, H, r, chunks, chunk)
  const auto asking = places.unsqueeze(-1);
  const auto asked = with_before(places, 4).unsqueeze(-2);
  auto scores =
      torch::matmul(sorted(q * scale), with_before(sorted(q / length), 4).transpose(-2, -1));
  auto is_hidden = asked >= tokens;
  if (mixer.is_causal) is_hidden = is_hidden | (asked > asking);
  scores = scores.masked_fill(is_hidden, -std::numeric_limits<double>::infinity())
               .masked_fill(asked == asking, kSelfScore);
  const auto found = torch::logsumexp(scores, {-1}, /*keepdim=*/true);
  const auto mixed = torch::matmul(torch::exp(scores - found), with_before(sorted(v), 4));

  const auto back =
      order.argsort(int64_t{-1}).narrow(3, 0, tokens).unsqueeze(-1);  // (B, H, r, N, 1)
  const auto unsorted = [&](const torch::Tensor& x) {
    return x.flatten(3, 4).gather(3, back.expand({-1, -1, -1, -1, x.size(5)}));
  };
  const auto share = torch::softmax(unsorted(found), 2);
  return (share * unsorted(mixed)).sum(2).to(v_in.scalar_type());
}

}  // namespace adjoin::nn
