#include "adjoin/train/group.h"

#include <fmt/format.h>

#include <future>
#include <thread>

#include "adjoin/core/error.h"
#include "adjoin/train/backend.h"
#include "adjoin/train/meeting.h"
#include "adjoin/train/peers.h"

namespace adjoin::train {

struct Group::Impl {
  Launch launch;
  Patience patience;
  std::vector<std::string> peers;
  c10::intrusive_ptr<c10d::Store> store;  // before the backend, which ends first
  std::shared_ptr<Backend> backend;       // null for a process alone

  /// What `act` gives; whatever c10d and the backends throw becomes one sentence.
  template <class Act>
  auto guarded(Act act) const {
    try {
      return act();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& failure) {
      throw Error(ErrorKind::kIo, sentence(reason_of(failure)));
    }
  }

  std::string sentence(const std::string& reason) const {
    bool is_timeout = false;
    for (const char* word : {"imed out", "imeout", "iming out"}) {
      is_timeout = is_timeout || reason.find(word) != std::string::npos;
    }
    const double seconds = std::chrono::duration<double>(patience.to_answer).count();
    return explain({launch.rank, peers, is_timeout, seconds, reason});
  }
};

/// A tensor on its way: where it has to be copied to come onto the backend's device, and back.
class Group::Transfer : public Group::Pending {
 public:
  enum class Kind { kSum, kBroadcast };

  Transfer(std::shared_ptr<Impl> impl, Kind kind, const torch::Tensor& tensor)
      : impl_(std::move(impl)), tensor_(tensor.detach()) {
    const auto type = tensor_.scalar_type();
    if (type != torch::kFloat32 && type != torch::kFloat64 && type != torch::kInt64) {
      throw Error(ErrorKind::kInternal,
                  fmt::format("processes exchange float32, float64 and int64 tensors, not {}",
                              c10::toString(type)));
    }
    if (!impl_->backend || tensor_.numel() == 0) return;
    sent_ = tensor_.to(impl_->backend->device()).contiguous();
    work_ = impl_->guarded([&] {
      return kind == Kind::kSum ? impl_->backend->start_sum(sent_)
                                : impl_->backend->start_broadcast(sent_);
    });
  }

  void wait() override {
    if (!work_) return;
    impl_->guarded([&] { impl_->backend->wait(*work_); });
    work_.reset();
    if (!sent_.is_same(tensor_)) tensor_.copy_(sent_);
  }

 private:
  std::shared_ptr<Impl> impl_;
  torch::Tensor tensor_;
  torch::Tensor sent_;
  c10::intrusive_ptr<c10d::Work> work_;
};

namespace {

std::shared_ptr<Backend> connect(const Launch& launch, torch::Device device,
                                 const Patience& patience,
                                 const c10::intrusive_ptr<c10d::Store>& store) {
  try {
    const BackendOptions options = {&launch, store, patience.to_answer, device};
    auto backend = device.is_cuda() ? make_nccl(options) : make_gloo(options);
    // NCCL connects in its first call; it shall fail here.
    const auto work =
        backend->start_sum(torch::zeros({1}, torch::dtype(torch::kInt64).device(device)));
    backend->wait(*work);
    return backend;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& failure) {
    throw Error(ErrorKind::kIo,
                fmt::format("the {} processes met at {} but process {} cannot reach the others: {}",
                            launch.size, place_of(launch), launch.rank, reason_of(failure)));
  }
}

}  // namespace

Group::Group() : impl_(std::make_shared<Impl>()) {}
Group::Group(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Group::~Group() = default;
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;

bool Group::is_available(torch::Device device) {
  return device.is_cuda() ? has_nccl() : has_gloo();
}

Group Group::join(const Launch& launch, torch::Device device, const Patience& patience) {
  if (launch.size == 1) return {};
  if (!is_available(device)) {
    throw Error(ErrorKind::kMissingPart,
                fmt::format("{} processes need {}, which this build of LibTorch lacks headers for: "
                            "start one process",
                            launch.size, device.is_cuda() ? "NCCL" : "Gloo"));
  }
  std::packaged_task<std::shared_ptr<Impl>()> task([launch, device, patience] {
    Meeting meeting = meet(launch, patience.to_meet);
    auto impl = std::make_shared<Impl>();
    *impl = {launch, patience, std::move(meeting.peers), std::move(meeting.store), nullptr};
    impl->backend = connect(launch, device, patience, impl->store);
    return impl;
  });
  // On a thread that can be left behind: c10d may wait for good for the answer of a stranger.
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  constexpr auto kGrace = std::chrono::seconds(1);  // the thread knows more about what failed
  if (result.wait_for(patience.to_meet + kGrace) != std::future_status::ready) {
    throw Error(
        ErrorKind::kIo,
        fmt::format("{} gave process {} of {} no answer within {}: another program may "
                    "listen there; set MASTER_PORT to a free port for all processes",
                    place_of(launch), launch.rank, launch.size, in_seconds(patience.to_meet)));
  }
  return Group(result.get());
}

int Group::rank() const { return impl_->launch.rank; }
int Group::size() const { return impl_->launch.size; }

void Group::sum(const torch::Tensor& tensor) { start_sum(tensor)->wait(); }

std::unique_ptr<Group::Pending> Group::start_sum(const torch::Tensor& tensor) {
  return std::make_unique<Transfer>(impl_, Transfer::Kind::kSum, tensor);
}

void Group::broadcast(const torch::Tensor& tensor) {
  Transfer(impl_, Transfer::Kind::kBroadcast, tensor).wait();
}

void Group::barrier() {
  if (impl_->backend) sum(torch::zeros({1}, torch::kInt64));
}

}  // namespace adjoin::train
