#include "adjoin/search/lstm.h"

namespace adjoin::search {
namespace {

/// (2 lstms, sequences, steps, features) -> (2 lstms, sequences, steps, hidden)
torch::Tensor forward_in_time(const LstmLayer& layer, const torch::Tensor& x) {
  const int64_t hidden = layer.recurrent.size(1);
  const auto gates = torch::baddbmm(layer.bias, x.flatten(1, 2), layer.input)
                         .view({x.size(0), x.size(1), x.size(2), 4 * hidden});
  auto out = torch::zeros({x.size(0), x.size(1), hidden}, x.options());
  auto cell = out;
  std::vector<torch::Tensor> outs;
  for (const auto& gate : gates.unbind(2)) {
    const auto sum = torch::baddbmm(gate, out, layer.recurrent);
    const auto open = torch::sigmoid(sum.narrow(2, 0, 3 * hidden)).chunk(3, 2);
    const auto fresh = torch::tanh(sum.narrow(2, 3 * hidden, hidden));
    cell = torch::addcmul(open[0] * fresh, open[1], cell);
    out = open[2] * torch::tanh(cell);
    outs.push_back(out);
  }
  return torch::stack(outs, 2);
}

}  // namespace

LstmLayer LstmLayer::only(int64_t which) const {
  const auto mine = [&](const torch::Tensor& all) { return all.narrow(0, 2 * which, 2); };
  return {mine(input), mine(recurrent), mine(bias)};
}

torch::Tensor bidirectional(const LstmLayer& layer, const torch::Tensor& x) {
  const auto both = torch::stack({x, x.flip(2)}, 1).flatten(0, 1);
  const auto read = forward_in_time(layer, both);
  const auto pairs = read.view({x.size(0), 2, x.size(1), x.size(2), read.size(3)});
  return torch::cat({pairs.select(1, 0), pairs.select(1, 1).flip(2)}, -1);
}

}  // namespace adjoin::search
