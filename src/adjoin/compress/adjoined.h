#pragma once

// Adjoined training: the large network learns from labels, the small ones inside its weights learn
// to answer as it does (methods of the adjoined-network thesis, equations 3.2 to 3.4):
//
//   loss = CE(labels, p) + lambda(t) sum over the small networks of KL(p || q)
//
// p and q are softmax outputs of the large network and of a small one. The gradient flows through
// both unless the teacher is detached.

#include <memory>

#include "adjoin/core/fields.h"
#include "adjoin/train/objective.h"

namespace adjoin::compress {

/// How lambda rises over a run, t from 0 to 1.
enum class LambdaKind {
  kQuadratic,  ///< min(4 t^2, 1)
  kLagged,     ///< the same one epoch late, as in the code the method comes from
  kLinear,     ///< min(2 t, 1)
  kConstant,   ///< 1
};

enum class KlKind {
  kForward,    ///< KL(p || q)
  kSymmetric,  ///< the mean of KL(p || q) and KL(q || p)
};

}  // namespace adjoin::compress

namespace adjoin {

template <>
inline constexpr auto kEnumNames<compress::LambdaKind> =
    std::to_array<EnumName<compress::LambdaKind>>({{"quadratic", compress::LambdaKind::kQuadratic},
                                                   {"lagged", compress::LambdaKind::kLagged},
                                                   {"linear", compress::LambdaKind::kLinear},
                                                   {"constant", compress::LambdaKind::kConstant}});

template <>
inline constexpr auto kEnumNames<compress::KlKind> = std::to_array<EnumName<compress::KlKind>>(
    {{"forward", compress::KlKind::kForward}, {"symmetric", compress::KlKind::kSymmetric}});

}  // namespace adjoin

namespace adjoin::compress {

struct AdjoinedOptions {
  LambdaKind lambda = LambdaKind::kQuadratic;
  double lambda_max = 1;
  KlKind kl = KlKind::kForward;
  double kl_tau = 1;
  double small_ce = 0;
  bool detach_teacher = false;
};

template <class Visitor>
void fields(Visitor& visit, AdjoinedOptions& options) {
  visit("lambda", options.lambda, {},
        "how the weight of KL rises over the run: quadratic (to half of it), lagged (one epoch "
        "later), linear or constant");
  visit("lambda_max", options.lambda_max, Range{0, 1e6}, "where it ends");
  visit("kl", options.kl, {}, "forward (large to small) or symmetric");
  visit("kl_tau", options.kl_tau, Range{1e-3, 1e3}, "temperature of both outputs in KL");
  visit("small_ce", options.small_ce, Range{0, 1e6},
        "weight of the labels' own loss on the small networks");
  visit("detach_teacher", options.detach_teacher, {},
        "KL does not change the large network through its own output");
}

/// lambda at a time (0-d, of any device) in a run of `epochs`.
torch::Tensor lambda_at(const AdjoinedOptions& options, const torch::Tensor& time, int64_t epochs);

/// Whether lambda has reached its end.
bool is_lambda_full(const AdjoinedOptions& options, double time, int64_t epochs);

/// The mean over the images of how far the small network's answers are from the large one's, times
/// tau^2: 0-d.
torch::Tensor answer_distance(const AdjoinedOptions& options, const torch::Tensor& large,
                              const torch::Tensor& small);

class AdjoinedObjective : public train::Objective {
 public:
  /// `large`: what the large network learns by. `names`: of the small ones, for the log.
  AdjoinedObjective(const AdjoinedOptions& options, std::unique_ptr<train::Objective> large,
                    std::vector<std::string> names, int64_t epochs);

  train::Loss operator()(const std::vector<train::Branch>& networks, const data::Batch& batch,
                         const torch::Tensor& time) const override;
  std::vector<std::string> terms() const override;

 private:
  AdjoinedOptions options_;
  std::unique_ptr<train::Objective> large_;
  std::vector<std::string> names_;
  int64_t epochs_;
};

}  // namespace adjoin::compress
