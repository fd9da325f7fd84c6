#pragma once

// Bidirectional LSTMs (Hochreiter and Schmidhuber 1997) of one shape side by side: small ones take
// little longer together than one alone.

#include "adjoin/tensor/torch.h"

namespace adjoin::search {

/// A layer of several. Along the first axis the two directions of each follow one another; the
/// gates are in, keep, out, and what is new.
struct LstmLayer {
  torch::Tensor input;      ///< (2 lstms, features, 4 hidden)
  torch::Tensor recurrent;  ///< (2 lstms, hidden, 4 hidden)
  torch::Tensor bias;       ///< (2 lstms, 1, 4 hidden)

  /// One of them, as a view.
  LstmLayer only(int64_t which) const;
};

/// (lstms, sequences, steps, features) -> (lstms, sequences, steps, 2 hidden)
torch::Tensor bidirectional(const LstmLayer& layer, const torch::Tensor& x);

}  // namespace adjoin::search
