#include "adjoin/analysis/gradient_law.h"

#include <gtest/gtest.h>

namespace adjoin::analysis {
namespace {

TEST(GradientLawTest, DepthAndWidthGiveTheSlopesOfTheorem4) {
  const GradientLawOptions options;
  for (const NormPlacement norm :
       {NormPlacement::kPre, NormPlacement::kPost, NormPlacement::kResPost}) {
    const GradientLaw law = gradient_law(norm, options);
    const auto name = enum_name(norm);
    if (norm == NormPlacement::kPost) {
      EXPECT_LT(std::abs(law.depth_slope), 0.2) << name;
    } else {
      EXPECT_GT(law.depth_slope, -0.6) << name;
      EXPECT_LT(law.depth_slope, -0.38) << name;
    }
    EXPECT_GT(law.width_slope, 0.4) << name;
    EXPECT_LT(law.width_slope, 0.65) << name;
  }
}

TEST(GradientLawTest, TheSlopeOfAPowerIsItsExponent) {
  EXPECT_NEAR(log_slope({2, 4, 8}, {3, 3 * 4, 3 * 16}), 2, 1e-12);
}

}  // namespace
}  // namespace adjoin::analysis
