#pragma once

// Everything a user can say about a search: what it may choose, what it must not exceed, how it
// looks, and all of the training that follows.

#include <string>
#include <vector>

#include "adjoin/compress/config.h"
#include "adjoin/search/bayes.h"
#include "adjoin/search/dan.h"

namespace adjoin::search {

enum class Method {
  kDan,      ///< learned together with the network
  kRandom,   ///< the best of some drawn at random
  kEvolve,   ///< changes of the best so far (Real et al. 2019)
  kUniform,  ///< no search: all blocks alike
  kBayes,    ///< blocks removed, widths and skips, proposed by what was learned from trials
};

}  // namespace adjoin::search

namespace adjoin {

template <>
inline constexpr auto kEnumNames<search::Method> =
    std::to_array<EnumName<search::Method>>({{"dan", search::Method::kDan},
                                             {"random", search::Method::kRandom},
                                             {"evolve", search::Method::kEvolve},
                                             {"uniform", search::Method::kUniform},
                                             {"bayes", search::Method::kBayes}});

}  // namespace adjoin

namespace adjoin::search {

struct SearchConfig {
  Method method = Method::kDan;
  std::string target_macs;
  std::string target_params;
  std::string target_bytes;
  std::vector<int64_t> candidates;
  int64_t search_epochs = 0;
  std::string search_data;
  double search_fraction = 0.1;
  DanOptions dan;
  BayesOptions bayes;
  int64_t trials = 10;
  double budget_minutes = 0;
  std::string score;
  std::string prefilter;
  int64_t prefilter_of = 10;
  bool retrain = true;
  compress::CompressConfig compress;  ///< of the training that follows; the search says how small
};

template <class Visitor>
void fields(Visitor& visit, SearchConfig& config) {
  visit("method", config.method, {},
        "dan (learned with the network), bayes (also removes blocks and adds skips), random, "
        "evolve, or uniform: all blocks alike");
  visit("target_macs", config.target_macs, {},
        "most MACs: 0.45x of the large network, or 300M, 1.2G");
  visit("target_params", config.target_params, {}, "most parameters, said likewise");
  visit("target_bytes", config.target_bytes, {},
        "most bytes of the weights in float32: 0.5x, 20M; four times the parameters");
  visit("candidates", config.candidates, {},
        "factors a block may be divided by (default: the divisors of the smallest number of heads, "
        "up to 8)");
  visit("search_epochs", config.search_epochs, Range{0, 1e6},
        "epochs of the search, or of each trial; 0: as --epochs, a trial a tenth of them");
  visit("search_data", config.search_data, {}, "what to search on (default: --data)");
  visit("search_fraction", config.search_fraction, Range{0.001, 0.9},
        "share of the training images that a search is judged by and does not learn from");
  fields(visit, config.dan);
  visit("trials", config.trials, Range{1, 1e6}, "random, evolve, bayes: networks that are tried");
  visit("budget_minutes", config.budget_minutes, Range{0, 1e9},
        "random, evolve, bayes: begin no trial when the others took so long together; 0: no limit");
  fields(visit, config.bayes);
  visit("score", config.score, {},
        "random, evolve: networks are not trained but judged by this proxy (docs/rank.md)");
  visit("prefilter", config.prefilter, {},
        "random, evolve: of several networks only the best by this proxy is tried");
  visit("prefilter_of", config.prefilter_of, Range{2, 1e6}, "of so many");
  visit("retrain", config.retrain, {},
        "train what was found: together with the large network, or as --final-training says");
  visit("order", config.compress.order, {},
        "with --from: put the most important heads and hidden units first, by magnitude or taylor");
  visit("order_images", config.compress.order_images, Range{1, 1e6},
        "taylor: measured on so many images");
  visit("separate_norms", config.compress.separate_norms, {},
        "the small network has norms of its own when it is trained; else the large one's");
  fields(visit, config.compress.adjoined);
  visit("stop_when_within", config.compress.stop_when_within, Range{0, 100},
        "end when lambda is full and the small network is at most so many percent points of top1 "
        "below the large one; 0: off");
  fields(visit, config.compress.train);
}

/// Error(kConfig) naming the two fields that cannot stand together, or one that is missing.
void check(const SearchConfig& config);

/// Fields of --method bayes that no trial reads, only an adjoined training of what was found.
std::vector<std::string> final_fields();

/// How --method bayes trains what it found: the words, and the settings that are not as usual.
std::string final_way(const SearchConfig& config);

/// Whether a method trains or scores networks one by one.
bool has_trials(Method method);

/// A sentence for each field that is set and that nothing reads, beside the others.
std::vector<std::string> without_effect(const SearchConfig& config);

}  // namespace adjoin::search
