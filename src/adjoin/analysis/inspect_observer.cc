#include "adjoin/analysis/inspect_observer.h"

namespace adjoin::analysis {
namespace {

constexpr int64_t kImages = 16;

}  // namespace

Json InspectObserver::epoch_fields(const train::EpochEnd& end) {
  if ((end.position.epoch + 1) % interval_ != 0 && !end.is_last) return Json::object();
  InspectOptions options;
  options.is_brief = true;
  Json all = Json::array();
  for (const train::EvaluatedNetwork& network : end.networks) {
    const Sample sample{
        sample_.images.to(network.weights.begin()->second.scalar_type()), sample_.labels, {}};
    const Inspection seen = inspect({network.spec, network.weights}, sample, options);
    all.push_back({{"name", network.name}, {"layers", brief_json(seen)}});
  }
  return {{"inspect", {{"batch", sample_.images.size(0)}, {"networks", all}}}};
}

void add_inspect_observer(train::Job& job) {
  if (job.config.inspect_interval == 0) return;
  const int64_t images = std::min(kImages, job.data.val.size());
  job.observers.push_back(std::make_shared<InspectObserver>(
      fixed_sample(job.data.val, job.header, images, job.compute.device),
      job.config.inspect_interval));
}

}  // namespace adjoin::analysis
