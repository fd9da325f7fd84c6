// ADJOIN_HAS_GLOO comes from CMake: the gloo headers must be those LibTorch was built with.
#include "adjoin/core/error.h"
#include "adjoin/train/backend.h"

#ifdef ADJOIN_HAS_GLOO
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "adjoin/train/network.h"
#endif

namespace adjoin::train {

#ifdef ADJOIN_HAS_GLOO

namespace {

using c10d::ProcessGroupGloo;

class GlooBackend : public Backend {
 public:
  explicit GlooBackend(c10::intrusive_ptr<ProcessGroupGloo> group) : group_(std::move(group)) {}

  torch::Device device() const override { return torch::kCPU; }

  c10::intrusive_ptr<c10d::Work> start_sum(torch::Tensor tensor) override {
    std::vector<at::Tensor> tensors = {std::move(tensor)};
    return group_->allreduce(tensors);
  }

  c10::intrusive_ptr<c10d::Work> start_broadcast(torch::Tensor tensor) override {
    std::vector<at::Tensor> tensors = {std::move(tensor)};
    return group_->broadcast(tensors);
  }

  void wait(c10d::Work& work) override { work.wait(); }

 private:
  c10::intrusive_ptr<ProcessGroupGloo> group_;
};

/// The devices a user asks for, or the one that reaches process 0.
void add_devices(const Launch& launch, ProcessGroupGloo::Options& options) {
  const char* wanted = std::getenv("GLOO_SOCKET_IFNAME");
  if (wanted == nullptr || *wanted == '\0') {
    options.devices.push_back(
        ProcessGroupGloo::createDeviceForHostname(own_address(launch.address, launch.port)));
    return;
  }
  std::string names = wanted;
  for (size_t from = 0; from <= names.size();) {
    const size_t end = std::min(names.find(',', from), names.size());
    const std::string name = names.substr(from, end - from);
    if (!has_interface(name)) {
      throw Error(
          ErrorKind::kUsage,
          "GLOO_SOCKET_IFNAME: this machine has no network interface \"" + one_line(name) + "\"");
    }
    options.devices.push_back(ProcessGroupGloo::createDeviceForInterface(name));
    from = end + 1;
  }
}

}  // namespace

bool has_gloo() { return true; }

std::shared_ptr<Backend> make_gloo(const BackendOptions& options) {
  auto gloo = ProcessGroupGloo::Options::create(options.timeout);
  add_devices(*options.launch, *gloo);
  return std::make_shared<GlooBackend>(c10::make_intrusive<ProcessGroupGloo>(
      options.store, options.launch->rank, options.launch->size, gloo));
}

#else

bool has_gloo() { return false; }

std::shared_ptr<Backend> make_gloo(const BackendOptions&) {
  throw Error(ErrorKind::kInternal, "this build has no Gloo");
}

#endif

}  // namespace adjoin::train
