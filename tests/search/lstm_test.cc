#include "adjoin/search/lstm.h"

#include "support/gap.h"
#include "support/seeded_test.h"

namespace adjoin::search {
namespace {

/// Gates in the order of torch::nn::LSTM (in, keep, new, out) as rows, from ours as columns.
torch::Tensor their_rows(const torch::Tensor& columns) {
  const auto gates = columns.chunk(4, -1);
  return torch::cat({gates[0], gates[1], gates[3], gates[2]}, -1).t().contiguous();
}

class LstmTest : public SeededTest {};

TEST_F(LstmTest, SeveralSideBySideEqualThoseOfLibTorchOneByOne) {
  constexpr int64_t kLstms = 3, kFeatures = 5, kHidden = 4;
  const LstmLayer layer{randn64({2 * kLstms, kFeatures, 4 * kHidden}),
                        randn64({2 * kLstms, kHidden, 4 * kHidden}),
                        randn64({2 * kLstms, 1, 4 * kHidden})};
  const auto x = randn64({kLstms, 6, 7, kFeatures});
  const auto ours = bidirectional(layer, x);
  ASSERT_EQ(ours.sizes(), (std::vector<int64_t>{kLstms, 6, 7, 2 * kHidden}));
  const torch::NoGradGuard no_grad;
  for (int64_t i = 0; i < kLstms; ++i) {
    torch::nn::LSTM theirs(
        torch::nn::LSTMOptions(kFeatures, kHidden).batch_first(true).bidirectional(true));
    theirs->to(torch::kFloat64);
    const auto parameters = theirs->named_parameters();
    for (int64_t direction = 0; direction < 2; ++direction) {
      const std::string end = direction == 0 ? "_l0" : "_l0_reverse";
      const int64_t row = 2 * i + direction;
      parameters["weight_ih" + end].copy_(their_rows(layer.input[row]));
      parameters["weight_hh" + end].copy_(their_rows(layer.recurrent[row]));
      parameters["bias_ih" + end].copy_(their_rows(layer.bias[row]).squeeze(1));
      parameters["bias_hh" + end].zero_();
    }
    EXPECT_LT(gap(ours[i], std::get<0>(theirs->forward(x[i]))), 1e-12) << i;
    EXPECT_LT(gap(ours[i], bidirectional(layer.only(i), x.narrow(0, i, 1))[0]), 1e-12) << i;
  }
}

}  // namespace
}  // namespace adjoin::search
