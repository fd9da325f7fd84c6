#include "adjoin/train/objective.h"

#include <fmt/format.h>

#include "adjoin/core/error.h"

namespace adjoin::train {
namespace {

torch::Tensor per_channel(const std::vector<double>& values, const torch::Tensor& like) {
  return torch::tensor(values, torch::kFloat64).view({1, -1, 1, 1}).to(like.options());
}

}  // namespace

torch::Tensor wide(const torch::Tensor& logits) {
  return logits.element_size() >= 4 ? logits : logits.to(torch::kFloat32);
}

models::Output Branch::answer(const torch::Tensor& images) const {
  return tokens.defined() ? models::answer(spec, weights, tokens, context)
                          : models::forward(spec, weights, images, context);
}

torch::Tensor soft_cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets) {
  const auto x = wide(logits);
  return -(targets.to(x.scalar_type()) * torch::log_softmax(x, -1)).sum(-1).mean();
}

Loss PlainObjective::operator()(const std::vector<Branch>& networks, const data::Batch& batch,
                                const torch::Tensor& /*time*/) const {
  const Branch& network = networks[0];
  const auto output = network.answer(batch.images);
  auto loss = soft_cross_entropy(output.cls, batch.targets);
  if (output.dist.defined()) loss = (loss + soft_cross_entropy(output.dist, batch.targets)) / 2;
  return {loss, {output.logits()}};
}

torch::Tensor distillation_loss(DistillationKind kind, double tau, const torch::Tensor& student,
                                const torch::Tensor& teacher) {
  const auto s = wide(student);
  const auto t = wide(teacher);
  switch (kind) {
    case DistillationKind::kNone: break;
    case DistillationKind::kSoft: {
      const auto log_p = torch::log_softmax(s / tau, -1);
      const auto log_q = torch::log_softmax(t / tau, -1);
      return (log_q.exp() * (log_q - log_p)).sum() * (tau * tau) / static_cast<double>(s.numel());
    }
    case DistillationKind::kHard: return torch::nn::functional::cross_entropy(s, t.argmax(-1));
    case DistillationKind::kMse: return torch::mse_loss(s, t.to(s.scalar_type()));
  }
  throw Error(ErrorKind::kInternal, "a distillation loss without a kind");
}

DistillationObjective::DistillationObjective(const DistillationOptions& options,
                                             io::ModelHeader teacher, Weights teacher_weights,
                                             const io::ModelHeader& network)
    : options_(options), teacher_(std::move(teacher)), weights_(std::move(teacher_weights)) {
  const ModelSpec& t = teacher_.spec;
  const ModelSpec& s = network.spec;
  const auto refuse = [&](const char* what, int64_t theirs, int64_t ours) {
    throw Error(ErrorKind::kConfig,
                fmt::format("teacher: {} has {} {}, the network {}", t.name, what, theirs, ours));
  };
  if (t.img_size != s.img_size) refuse("img_size", t.img_size, s.img_size);
  if (t.in_chans != s.in_chans) refuse("in_chans", t.in_chans, s.in_chans);
  if (t.num_classes != s.num_classes) refuse("num_classes", t.num_classes, s.num_classes);
  const Preprocessing& theirs = teacher_.preprocessing;
  const Preprocessing& ours = network.preprocessing;
  if (theirs.mean == ours.mean && theirs.std == ours.std) return;
  const torch::Tensor like = weights_.begin()->second;
  const auto their_std = per_channel(theirs.std, like);
  gain_ = per_channel(ours.std, like) / their_std;
  shift_ = (per_channel(ours.mean, like) - per_channel(theirs.mean, like)) / their_std;
}

torch::Tensor DistillationObjective::teach(const torch::Tensor& images) const {
  const torch::NoGradGuard no_grad;
  nn::Context context;
  context.constants = &constants_;
  const auto input = gain_.defined() ? images * gain_ + shift_ : images;
  return models::forward(teacher_.spec, weights_, input, context).logits();
}

Loss DistillationObjective::operator()(const std::vector<Branch>& networks,
                                       const data::Batch& batch,
                                       const torch::Tensor& /*time*/) const {
  const Branch& network = networks[0];
  const auto output = network.answer(batch.images);
  const auto& student = output.dist.defined() ? output.dist : output.cls;
  const auto taught = distillation_loss(options_.kind, options_.tau, student, teach(batch.images));
  const auto plain = soft_cross_entropy(output.cls, batch.targets);
  return {plain * (1 - options_.alpha) + taught * options_.alpha, {output.logits()}};
}

}  // namespace adjoin::train
