#pragma once

// What a step minimises: a strategy over the networks that are trained together. The plain loss and
// distillation are here; adjoined training is another one, in compress/.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adjoin/data/loader.h"
#include "adjoin/io/model_file.h"
#include "adjoin/models/forward.h"
#include "adjoin/nn/context.h"
#include "adjoin/tensor/weights.h"
#include "adjoin/train/config.h"

namespace adjoin::train {

/// A network as one argument of a forward pass.
struct Branch {
  const ModelSpec& spec;
  const Weights& weights;
  nn::Context context = {};
  bool shares_embedding = false;  ///< it makes the same tokens of images as the first network
  torch::Tensor tokens = {};      ///< these, once they are made

  models::Output answer(const torch::Tensor& images) const;
};

/// What the forward pass of a batch, or of a part of one, gives.
struct Loss {
  torch::Tensor value;                    ///< 0-d, the mean over the images; backward starts here
  std::vector<torch::Tensor> logits;      ///< (b, classes) of each network
  std::vector<torch::Tensor> terms = {};  ///< 0-d each, as Objective::terms names them
};

class Objective {
 public:
  virtual ~Objective() = default;

  /// `networks` begins with the large one. `time` is the share of the run that is done when the
  /// epoch begins, 0-d on the device: what changes over a run is computed from it there.
  virtual Loss operator()(const std::vector<Branch>& networks, const data::Batch& batch,
                          const torch::Tensor& time) const = 0;

  /// Names of the parts of the loss that the log shows.
  virtual std::vector<std::string> terms() const { return {}; }
};

/// Logits as loss functions want them: float32 or wider.
torch::Tensor wide(const torch::Tensor& logits);

/// Cross entropy against soft targets (b, classes), the mean over the images, 0-d.
torch::Tensor soft_cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets);

class PlainObjective : public Objective {
 public:
  /// A distilled DeiT without a teacher learns with both heads.
  Loss operator()(const std::vector<Branch>& networks, const data::Batch& batch,
                  const torch::Tensor& time) const override;
};

struct DistillationOptions {
  DistillationKind kind = DistillationKind::kSoft;
  double alpha = 0.5;
  double tau = 1;
};

/// (1 - alpha) x cross entropy + alpha x what the teacher says (Touvron et al. 2021, as in DeiT's
/// code: soft is tau^2 KL / (b x classes)). A distilled network listens with its second head.
class DistillationObjective : public Objective {
 public:
  /// Error(kConfig) unless teacher and network take the same images and name as many classes. The
  /// teacher's own normalisation is used: images are converted.
  DistillationObjective(const DistillationOptions& options, io::ModelHeader teacher,
                        Weights teacher_weights, const io::ModelHeader& network);

  Loss operator()(const std::vector<Branch>& networks, const data::Batch& batch,
                  const torch::Tensor& time) const override;

 private:
  torch::Tensor teach(const torch::Tensor& images) const;

  DistillationOptions options_;
  io::ModelHeader teacher_;
  Weights weights_;
  torch::Tensor gain_;   // (1, C, 1, 1); undefined where both normalise alike
  torch::Tensor shift_;  // images of the teacher = images x gain + shift
  mutable nn::Constants constants_;
};

/// KL, cross entropy with the teacher's choice, or mean squared difference: 0-d.
torch::Tensor distillation_loss(DistillationKind kind, double tau, const torch::Tensor& student,
                                const torch::Tensor& teacher);

}  // namespace adjoin::train
