#pragma once

// What networks say of single images while they are evaluated, for reports.

#include <map>
#include <string>
#include <vector>

#include "adjoin/io/model_file.h"
#include "adjoin/train/evaluate.h"

namespace adjoin::train {

/// Class by class how many images there are and how many answers are right, and a few images with
/// the answers to them.
class Predictions : public Answers {
 public:
  Predictions(const io::ModelHeader& header, std::vector<std::string> networks);

  void add(const data::Batch& batch, const std::vector<torch::Tensor>& logits) override;
  void finish(Group& group) override;

  /// {"classes": [names], "images": [per class], "correct": {NETWORK: [percent per class]},
  ///  "samples": [{"image": "data:..", "label": 3, "answers": {NETWORK: {"class": 3,
  ///  "probability": 0.9}}}]}. The same in every process, but for the samples, which are those of
  /// the process itself.
  Json to_json() const;

 private:
  void add_samples(const data::Batch& batch, const std::vector<torch::Tensor>& logits);

  const io::ModelHeader& header_;
  std::vector<std::string> networks_;
  torch::Tensor sums_;  ///< (networks + 1, classes): right answers of each, then images
  std::map<int64_t, int64_t> taken_;  ///< samples of a class
  std::vector<Json> samples_;
};

}  // namespace adjoin::train
