#pragma once

// What networks say of single images, for reports.

#include <vector>

#include "adjoin/io/model_file.h"
#include "adjoin/train/evaluate.h"

namespace adjoin::train {

/// {"classes": [names], "images": [per class], "correct": {NETWORK: [percent per class]},
///  "samples": [{"image": "data:..", "label": 3, "answers": {NETWORK: {"class": 3, "probability":
///  0.9}}}]}: of all images of a split, and a few of them. The same in every process, but for the
/// samples, which are those of the process itself.
Json predictions(const std::vector<EvaluatedNetwork>& networks, data::Loader& loader,
                 const io::ModelHeader& header, const Compute& compute, Group& group);

}  // namespace adjoin::train
