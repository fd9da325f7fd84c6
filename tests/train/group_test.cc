// Processes that sum tensors, and what they say when one of them is missing, dies or hangs.
#include "adjoin/train/group.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "adjoin/train/backend.h"
#include "support/expect_error.h"
#include "train/ranks.h"

namespace adjoin::train {

using std::chrono::milliseconds;

namespace {

Group join(const Patience& patience = {}) {
  return Group::join(launch_from_environment(), torch::kCPU, patience);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Values of any number of bits; the last ones tell in which order they were added.
torch::Tensor values_of(int rank, torch::ScalarType type) {
  auto values = torch::arange(1, 1001, torch::kFloat64);
  return (values.sqrt() * (rank + 1) * 1e3).to(type);
}

std::string bits(const torch::Tensor& tensor) {
  const auto bytes = tensor.contiguous();
  return fmt::format("{:02x}\n",
                     fmt::join(static_cast<const uint8_t*>(bytes.data_ptr()),
                               static_cast<const uint8_t*>(bytes.data_ptr()) + bytes.nbytes(), ""));
}

}  // namespace

std::string play_meeting() {
  Group group = join();
  const auto sum = torch::tensor(int64_t{group.rank() + 1});
  group.sum(sum);
  return fmt::format("process {} of {}: {}\n", group.rank(), group.size(), sum.item<int64_t>());
}

std::string play_sums() {
  Group group = join();
  const int n = group.size();
  std::string text;
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kInt64}) {
    const auto sum = values_of(group.rank(), type);
    group.sum(sum);
    text += bits(sum);
    const double error =
        (sum.to(torch::kFloat64) - values_of(0, torch::kFloat64) * (n * (n + 1) / 2))
            .abs()
            .max()
            .item<double>();
    if (error > (type == torch::kFloat64 ? 1e-9 : type == torch::kInt64 ? n : 0.1)) {
      text += fmt::format("rank {} is off by {}\n", group.rank(), error);
    }
  }
  auto grid = torch::zeros({4, 6}, torch::kFloat64);
  grid.slice(1, 1, 3).fill_(group.rank() + 1);
  group.sum(grid.slice(1, 1, 3).requires_grad_());  // neither contiguous nor without gradients
  text += fmt::format("{} ", grid.sum().item<double>());
  auto scalar = torch::tensor(int64_t{group.rank() + 7});
  group.broadcast(scalar);
  text += fmt::format("{} ", scalar.item<int64_t>());
  group.sum(torch::empty({0}));
  const auto a = torch::ones({5}), b = torch::ones({3}) * 2;
  const auto first = group.start_sum(a), second = group.start_sum(b);
  second->wait();
  first->wait();
  group.barrier();
  return text + fmt::format("{} {}\n", a.sum().item<float>(), b.sum().item<float>());
}

std::string play_sums_until_one_dies() {
  Group group = join();
  const auto values = torch::ones({1 << 20});
  for (int step = 0; step < 1000; ++step) {
    if (step == 3 && group.rank() == 0) raise(SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    try {
      group.sum(values);
    } catch (const Error& e) {
      return fmt::format("error {} after {:.1f} s: {}", static_cast<int>(e.kind()),
                         seconds_since(start), e.what());
    }
  }
  return "nothing happened";
}

std::string play_sums_until_one_is_suspended() {
  Group group = join({.to_answer = milliseconds(1500)});
  group.barrier();
  if (group.rank() == 1) raise(SIGSTOP);
  group.sum(torch::ones({100}));
  return "nothing happened";
}

namespace {

class GroupTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Group::is_available(torch::kCPU)) GTEST_SKIP() << "this build has no Gloo";
  }
};

TEST_F(GroupTest, AProcessAloneHasItsSumsAtOnce) {
  Group group = Group::join({}, torch::kCPU);
  const auto values = torch::ones({3});
  group.sum(values);
  group.broadcast(values);
  group.barrier();
  group.start_sum(values)->wait();
  EXPECT_TRUE(torch::equal(values, torch::ones({3})));
  EXPECT_TRUE(group.is_first());
}

TEST_F(GroupTest, ThreeProcessesHaveTheSameSumsBitForBit) {
  Ranks ranks("sums", 3);
  const ProgramResult first = ranks.finish(0);
  EXPECT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_TRUE(first.out.ends_with("\n48 7 15 18\n")) << first.out;
  EXPECT_FALSE(contains(first.out, "off")) << first.out;
  for (int rank = 1; rank < 3; ++rank) {
    const ProgramResult other = ranks.finish(rank);
    EXPECT_EQ(other.exit_code, 0) << other.out << other.err;
    EXPECT_EQ(other.out, first.out) << "rank " << rank;
  }
}

TEST_F(GroupTest, MpirunsProcessesMeet) {
  if (access("/usr/bin/mpirun", X_OK) != 0) GTEST_SKIP() << "no mpirun here";
  const std::string self = fmt::format("/proc/{}/exe", getpid());
  const ProgramResult result =
      run_program("/usr/bin/mpirun", {"--allow-run-as-root", "--oversubscribe", "-n", "2", "-x",
                                      "ADJOIN_TEST_ROLE=meeting", "-x", "OMP_NUM_THREADS=1", self});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "process 0 of 2: 3\n")) << result.out;
  EXPECT_TRUE(contains(result.out, "process 1 of 2: 3\n")) << result.out;
}

TEST_F(GroupTest, AKilledProcessIsNamedAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  Ranks ranks("sums_until_one_dies", 3);
  EXPECT_EQ(ranks.finish(0).exit_code, 128 + SIGKILL);  // the one that holds the store
  for (const int rank : {1, 2}) {
    const ProgramResult result = ranks.finish(rank);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(
        contains(result.out, fmt::format("error {} after", static_cast<int>(ErrorKind::kIo))))
        << result.out;
    EXPECT_TRUE(contains(result.out, " of 3 ")) << result.out;
    EXPECT_TRUE(contains(result.out, " gone: ")) << result.out;
  }
  EXPECT_LT(seconds_since(start), 30);
}

TEST_F(GroupTest, ASuspendedProcessIsGivenUp) {
  const auto start = std::chrono::steady_clock::now();
  Ranks ranks("sums_until_one_is_suspended", 2);
  const ProgramResult result = ranks.finish(0);
  EXPECT_EQ(result.exit_code, exit_code(ErrorKind::kIo)) << result.err;
  EXPECT_TRUE(contains(result.out, "process 1 of 2 did not answer within 1.5 s: suspended"))
      << result.out;
  EXPECT_LT(seconds_since(start), 30);
}

TEST_F(GroupTest, AProcessThatDoesNotComeIsNamed) {
  Launch launch = {.rank = 0, .size = 3, .address = "127.0.0.1", .port = free_port()};
  const Patience patience = {.to_meet = milliseconds(300)};
  const std::string place = fmt::format("127.0.0.1:{} within 0.3 s", launch.port);
  expect_error(ErrorKind::kIo, {"process 1 of 3 did not come to " + place},
               [&] { Group::join(launch, torch::kCPU, patience); });
  launch.rank = 2;
  expect_error(ErrorKind::kIo, {"process 0 of 3 did not come to " + place},
               [&] { Group::join(launch, torch::kCPU, patience); });
}

/// Something that listens at a port, takes connections and never says a word, until the program
/// ends: the process that gave it up still has a thread that waits for it.
int start_stranger() {
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  const int port = free_port();
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(handle, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(handle, 16) != 0) {
    throw std::runtime_error("cannot listen");
  }
  return port;
}

TEST_F(GroupTest, AStrangerAtThePortIsNoPeer) {
  Launch launch = {.rank = 0, .size = 2, .address = "127.0.0.1", .port = start_stranger()};
  const Patience patience = {.to_meet = milliseconds(300)};
  expect_error(ErrorKind::kIo, {"in use", std::to_string(launch.port), "MASTER_PORT"},
               [&] { Group::join(launch, torch::kCPU, patience); });
  launch.rank = 1;
  expect_error(ErrorKind::kIo, {"no answer within 0.3 s", "MASTER_PORT"},
               [&] { Group::join(launch, torch::kCPU, patience); });
}

TEST(BackendTest, NcclSumsWhatIsOnTheGpu) {
  if (!has_nccl() || torch::cuda::device_count() == 0) GTEST_SKIP() << "no NCCL here";
  const Launch alone;
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto backend =
      make_nccl({&alone, store, milliseconds(20000), torch::Device(torch::kCUDA, 0)});
  const auto values = torch::arange(1000, torch::dtype(torch::kFloat64).device(backend->device()));
  const auto sum = backend->start_sum(values);
  backend->wait(*sum);
  const auto copy = backend->start_broadcast(values);
  backend->wait(*copy);
  EXPECT_TRUE(torch::equal(values.cpu(), torch::arange(1000, torch::kFloat64)));
}

TEST_F(GroupTest, OtherTypesAreRefused) {
  Group group;
  expect_error(ErrorKind::kInternal, {"float32"},
               [&] { group.sum(torch::ones({2}, torch::kBFloat16)); });
}

}  // namespace
}  // namespace adjoin::train
