#include "adjoin/nn/attention/relative.h"

#include <fmt/format.h>

#include "adjoin/spec/relative.h"

namespace adjoin::nn {
namespace {

/// Places along the rows of the grid, or along its columns.
enum class Along { kRows, kColumns };

/// Each place of the grid times the matrix of its row or column.
///
/// (B, H, s, s, K), (s, K, M) -> (B, H, s, s, M)
torch::Tensor times(const torch::Tensor& x, const torch::Tensor& matrices, Along along) {
  const int64_t s = matrices.size(0);
  const auto leading =
      along == Along::kRows ? x.permute({2, 0, 1, 3, 4}) : x.permute({3, 0, 1, 2, 4});
  const auto product = torch::bmm(leading.reshape({s, -1, x.size(4)}), matrices)
                           .view({s, x.size(0), x.size(1), s, matrices.size(2)});
  return along == Along::kRows ? product.permute({1, 2, 0, 3, 4})
                               : product.permute({1, 2, 3, 0, 4});
}

}  // namespace

torch::Tensor relative_attention(const Weights& weights, const std::string& prefix,
                                 const torch::Tensor& q, const torch::Tensor& k,
                                 const torch::Tensor& v, double scale, int64_t distance,
                                 const Context& context) {
  const TokenGrid grid = token_grid(q.size(2));
  const int64_t classes = grid.classes;
  const int64_t patches = grid.patches();
  const int64_t s = grid.side;
  const std::vector<int64_t> lead = {q.size(0), q.size(1)};
  const auto shaped = [&](const torch::Tensor& x, std::vector<int64_t> rest) {
    rest.insert(rest.begin(), lead.begin(), lead.end());
    return x.reshape(rest);
  };
  const auto index =
      constant(context, fmt::format("relative {} {} {}", s, distance, q.device().str()), [&] {
        return torch::tensor(relative_table_rows(s, distance), torch::kInt64).to(q.device());
      });
  const auto table = [&](size_t which) { return weights.at(prefix + kRelativeTables[which]); };
  const auto vectors = [&](size_t which) {  // (side, side + 1, d)
    return table(which).index_select(0, index).view({s, s + 1, q.size(3)});
  };

  const auto scaled = q * scale;
  const auto queries = shaped(scaled.slice(2, classes), {s, s, q.size(3)});
  const auto by_row = times(queries, vectors(0).transpose(1, 2), Along::kRows);
  const auto by_column = times(queries, vectors(1).transpose(1, 2), Along::kColumns);
  const auto of_patches =
      by_row.slice(4, 0, s).unsqueeze(5) + by_column.slice(4, 0, s).unsqueeze(4);
  const auto of_classes =
      (by_row.slice(4, s) + by_column.slice(4, s)).expand({-1, -1, s, s, classes});
  const auto bias = torch::cat(
      {shaped(of_classes, {patches, classes}), shaped(of_patches, {patches, patches})}, 3);
  // What a class token asks is the same of all keys and leaves its softmax as it is.
  const auto scores = torch::matmul(scaled, k.transpose(-2, -1));
  const auto seen = torch::softmax(scores + torch::constant_pad_nd(bias, {0, 0, classes, 0}), -1);

  const auto by_patches = seen.slice(2, classes);
  const auto seen_patches = shaped(by_patches.slice(3, classes), {s, s, s, s});
  const auto seen_classes = shaped(by_patches.slice(3, 0, classes).sum(3), {s, s, 1});
  const auto in_rows = torch::cat({seen_patches.sum(5), seen_classes}, 4);  // (B, H, s, s, s + 1)
  const auto in_columns = torch::cat({seen_patches.sum(4), seen_classes}, 4);
  const auto values =
      times(in_rows, vectors(2), Along::kRows) + times(in_columns, vectors(3), Along::kColumns);
  const auto of_class = (table(2).select(0, 0) + table(3).select(0, 0)).to(values.scalar_type());
  const auto mixed = torch::matmul(seen, v);
  return mixed + torch::cat({of_class.expand({lead[0], lead[1], classes, -1}),
                             shaped(values, {patches, q.size(3)})},
                            2);
}

}  // namespace adjoin::nn
