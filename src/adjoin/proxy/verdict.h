#pragma once

// What scores are worth beside accuracies that were measured.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace adjoin::proxy {

/// Measured accuracies of architectures, one column or more.
struct Truth {
  std::vector<std::string> columns;
  std::map<std::string, std::vector<double>> rows;  ///< by name, a number per column
};

/// A CSV with a heading, the names in its first column. Error(kData) naming the line and what is
/// wrong there: a name that came before, a number that is missing or none.
Truth read_truth(const std::string& path);

/// Scores of one proxy, or a count that stands for one, by architecture.
struct Scores {
  std::string name;
  std::vector<double> values;
};

struct Verdict {
  std::string proxy;
  double spearman = 0;
  double low = 0;  ///< 95 % of the correlations of samples drawn with replacement lie from here
  double high = 0;
  double kendall = 0;
  double partial_given_params = 0;
  double regret_1 = 0;  ///< what is lost by taking the one with the highest score
  double regret_5 = 0;  ///< or the best of five
  size_t architectures = 0;
  size_t not_finite = 0;  ///< scores that are no numbers, left out
};

/// `params` and `truth` have an entry per architecture, as every Scores has.
std::vector<Verdict> verdicts(const std::vector<Scores>& all, std::span<const double> params,
                              std::span<const double> truth, uint64_t seed = 0);

}  // namespace adjoin::proxy
