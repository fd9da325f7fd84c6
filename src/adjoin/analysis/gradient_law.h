#pragma once

// How the gradient of the last MLP grows with depth and width at the start of training, by where
// the norms stand: theorem 4 of the supplement of VTCA, after Xiong et al. (2020). Measured on
// stacks of our own blocks with Xavier weights, hidden units as many as channels, 16 random tokens
// and cross entropy at every token.

#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/spec/norms.h"

namespace adjoin::analysis {

struct GradientLawOptions {
  std::vector<int64_t> depths = {2, 4, 8, 16, 32};
  int64_t width_of_depths = 128;
  std::vector<int64_t> widths = {32, 64, 128, 256};
  int64_t depth_of_widths = 8;
  int64_t seeds = 4;
};

struct GradientLaw {
  NormPlacement norm = NormPlacement::kPre;
  std::vector<double> by_depth;  ///< mean |dL/dW2| of the last block, of options.depths
  std::vector<double> by_width;
  double depth_slope = 0;  ///< of logarithms, least squares
  double width_slope = 0;
};

GradientLaw gradient_law(NormPlacement norm, const GradientLawOptions& options);

/// The slope of log y over log x.
double log_slope(const std::vector<int64_t>& x, const std::vector<double>& y);

/// {"norm","depth_slope","width_slope","depths","gradients_by_depth",..}
Json to_json(const GradientLaw& law, const GradientLawOptions& options);

}  // namespace adjoin::analysis
