#pragma once

// Earth mover's distance: the least total cost of turning one set of masses into another,
//
//   min sum_ij gamma_ij d_ij   with gamma >= 0, row sums a, column sums b,
//
// solved exactly by the network simplex, with the dual values that prove it. The distance is that
// total: it is not divided by the mass, so masses that sum to 1 give the Wasserstein distance.
//
//   const Transport result = earth_movers_distance(from, to, GroundCost::kL2);
//   result.distance - result.gap;   // no plan costs less

#include <array>
#include <cstdint>
#include <vector>

#include "adjoin/core/fields.h"

namespace adjoin::analysis {

/// What moving one unit of mass between two points costs: sum |x_k - y_k|, its Euclidean length, or
/// the square of that.
enum class GroundCost { kL1, kL2, kSquaredL2 };

/// Points and the mass at each.
struct Masses {
  std::vector<double> mass;    // N
  std::vector<double> points;  // N x dim, row-major
  int64_t dim = 0;
};

/// Mass that goes from one point to another, in the unit of the masses.
struct Shipment {
  int64_t from = 0;
  int64_t to = 0;
  double mass = 0;
};

/// A plan of least cost and its proof.
struct Transport {
  double distance = 0;  ///< sum of mass x cost over the plan
  /// By `from`, then `to`; fewer than rows + columns of them. Its row and column sums are the
  /// masses: exactly where masses are whole numbers, else to rounding, the lighter side scaled up
  /// to the sum of the heavier.
  std::vector<Shipment> plan;
  /// One value per point, u_i + v_j <= d_ij but for rounding, with equality where mass moves.
  std::vector<double> u, v;
  double gap = 0;  ///< distance - (sum u a + sum v b): at most so much more than the best plan
};

/// Most pairs of points: what the solver keeps of each takes some 80 bytes.
inline constexpr int64_t kMostPairs = int64_t{1} << 26;

/// Whether this build can compute it; without, the functions below throw Error(kMissingPart).
bool has_emd();

/// The distance between masses at points. Masses that are all whole numbers (their sum at most
/// 2^53) must have equal sums and give a plan of whole numbers; others must balance within 1e-9 of
/// their sum. Error(kData) for what is no such problem.
Transport earth_movers_distance(const Masses& from, const Masses& to, GroundCost cost);

/// The same where `costs` says what each pair costs: from x to, row-major, none negative.
Transport transport(const std::vector<double>& from, const std::vector<double>& to,
                    const std::vector<double>& costs);

}  // namespace adjoin::analysis

namespace adjoin {

template <>
inline constexpr auto kEnumNames<analysis::GroundCost> =
    std::to_array<EnumName<analysis::GroundCost>>({{"l1", analysis::GroundCost::kL1},
                                                   {"l2", analysis::GroundCost::kL2},
                                                   {"sql2", analysis::GroundCost::kSquaredL2}});

}  // namespace adjoin
