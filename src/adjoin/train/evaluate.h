#pragma once

#include <functional>
#include <string>
#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/data/loader.h"
#include "adjoin/io/model_file.h"
#include "adjoin/tensor/weights.h"
#include "adjoin/train/group.h"
#include "adjoin/train/trainer.h"

namespace adjoin::train {

/// How well a network does on a split.
struct Evaluation {
  double top1 = 0;  ///< percent
  double top5 = 0;  ///< percent; of all classes where there are fewer than five
  double loss = 0;  ///< cross entropy, the mean over the images
  int64_t images = 0;
  int64_t unreadable = 0;
  double seconds = 0;

  double images_per_second() const {
    return seconds > 0 ? static_cast<double>(images) / seconds : 0;
  }
};

template <class Visitor>
void fields(Visitor& visit, Evaluation& evaluation) {
  visit("top1", evaluation.top1, Range{0, 100});
  visit("top5", evaluation.top5, Range{0, 100});
  visit("loss", evaluation.loss);
  visit("images", evaluation.images, Range{0, 1e15});
  visit("unreadable", evaluation.unreadable, Range{0, 1e15});
  visit("seconds", evaluation.seconds, Range{0, 1e15});
}

/// What a run says of a network it trained: {"top1","top5","loss","params","macs","file"}.
Json network_json(const ModelSpec& spec, const Evaluation& evaluation, const std::string& file);

/// Labels mean what a model was trained for only where the class names agree: Error(kData), which
/// calls the model `name`, where they do not, or the split has more classes.
void check_classes(const io::ModelHeader& header, const data::Split& split,
                   const std::string& name);

struct EvaluatedNetwork {
  const ModelSpec& spec;
  Weights weights;
  std::string name;  ///< for messages
};

/// Takes note of answers one by one.
class Answers {
 public:
  virtual ~Answers() = default;
  /// Logits (b, classes) of each network. Images with a label of -1 could not be read.
  virtual void add(const data::Batch& batch, const std::vector<torch::Tensor>& logits) = 0;
  /// All of this process are there; what those of the others came to may be added.
  virtual void finish(Group& group) = 0;
};

/// Several networks on the same images. Error(kNumeric) when a loss is NaN or infinite. Every image
/// once, shared out over the processes; the same numbers on all. `progress` is told of batches
/// done.
std::vector<Evaluation> evaluate(const std::vector<EvaluatedNetwork>& networks,
                                 data::Loader& loader, const Compute& compute, Group& group,
                                 const std::function<void(int64_t)>& progress = {},
                                 Answers* answers = nullptr);

}  // namespace adjoin::train
