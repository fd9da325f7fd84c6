// Several processes that train one network together, found by torchrun's variables.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <cmath>
#include <memory>

#include "cli/train_runs.h"

namespace adjoin {
namespace {

/// A port nobody listens on at this moment.
int free_port() {
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(handle, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port is free");
  }
  close(handle);
  return ntohs(address.sin_port);
}

using Processes = std::vector<std::unique_ptr<RunningProgram>>;

Processes start(int count, const Words& args) {
  const std::string port = std::to_string(free_port());
  Processes processes;
  for (int rank = 0; rank < count; ++rank) {
    const std::string number = std::to_string(rank);
    processes.push_back(std::make_unique<RunningProgram>(
        ADJOIN_BINARY, args,
        Words{"RANK=" + number, "LOCAL_RANK=" + number, "WORLD_SIZE=" + std::to_string(count),
              "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "OMP_NUM_THREADS=1"}));
  }
  return processes;
}

/// Twenty steps with everything random but drop-path, in float64.
Words twenty_steps(const std::string& output) {
  return {"train",
          "--model",
          "vit_mini_28",
          "--data",
          "synthetic:1x28x28x10x160",
          "--limit-val",
          "37",
          "--epochs",
          "4",
          "--batch-size",
          "32",
          "--opt",
          "sgd",
          "--lr",
          "0.05",
          "--warmup-epochs",
          "1",
          "--dtype",
          "float64",
          "--mixup",
          "0.8",
          "--cutmix",
          "1",
          "--reprob",
          "0.3",
          "--device",
          "cpu",
          "--log-interval",
          "1",
          "--checkpoint-interval",
          "2",
          "--output",
          output};
}

double largest_gap(const std::string& a, const std::string& b) {
  const io::TensorFile one = io::read_safetensors(io::map_file(a));
  const io::TensorFile two = io::read_safetensors(io::map_file(b));
  double most = 0;
  for (const auto& [name, tensor] : one.tensors) {
    const auto* x = reinterpret_cast<const double*>(tensor.data);
    const auto* y = reinterpret_cast<const double*>(two.tensors.at(name).data);
    for (int64_t i = 0; i < tensor.numel(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  }
  return most;
}

TEST(ProcessesTest, TwoComputeWhatOneDoes) {
  const TempFolder folder;
  ASSERT_EQ(adjoin(twenty_steps(folder / "one")).exit_code, 0);
  for (auto& process : start(2, twenty_steps(folder / "two"))) {
    const ProgramResult result = process->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_LT(largest_gap(folder / "one/model.safetensors", folder / "two/model.safetensors"), 1e-6);
  const auto one = log_of(folder / "one");
  const auto two = log_of(folder / "two");
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].at("kind"), two[i].at("kind"));
    if (one[i].at("kind") != "epoch") continue;
    EXPECT_EQ(two[i].at("images"), 37) << "not every image was counted once";
    EXPECT_EQ(one[i].at("eval_top1"), two[i].at("eval_top1"));
    EXPECT_NEAR(one[i].at("eval_loss").get<double>(), two[i].at("eval_loss").get<double>(), 1e-6);
  }
}

TEST(ProcessesTest, TwoCompressAsOneDoes) {
  const TempFolder folder;
  const auto compression = [&](const std::string& output) {
    Words args = twenty_steps(output);
    args[0] = "compress";
    args.insert(args.end(), {"--alpha", "2,8", "--separate-norms", "--lambda", "constant"});
    return args;
  };
  ASSERT_EQ(adjoin(compression(folder / "one")).exit_code, 0);
  for (auto& process : start(2, compression(folder / "two"))) {
    const ProgramResult result = process->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  for (const std::string name : {"large", "small-2", "small-8"}) {
    const std::string file = "/" + name + ".safetensors";
    EXPECT_LT(largest_gap(folder / ("one" + file), folder / ("two" + file)), 1e-6) << name;
  }
}

TEST(ProcessesTest, TwoSearchAsOneDoes) {
  const TempFolder folder;
  const auto search = [&](const std::string& output, const Words& way) {
    Words args = twenty_steps(output);
    args[0] = "search";
    args.insert(args.end(), {"--search-epochs", "1", "--epochs", "1", "--target-macs", "0.5x"});
    args.insert(args.end(), way.begin(), way.end());
    return args;
  };
  const std::vector<Words> ways = {{"--noise", "gumbel-frozen", "--lambda", "constant"},
                                   {"--method", "random", "--trials", "2", "--budget-minutes", "9"},
                                   {"--method", "uniform"}};
  for (size_t i = 0; i < ways.size(); ++i) {
    const std::string one = folder / ("one" + std::to_string(i));
    const std::string two = folder / ("two" + std::to_string(i));
    ASSERT_EQ(adjoin(search(one, ways[i])).exit_code, 0);
    for (auto& process : start(2, search(two, ways[i]))) {
      const ProgramResult result = process->wait();
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
    EXPECT_EQ(read_file(one + "/architecture.json"), read_file(two + "/architecture.json"));
    for (const std::string name : {"/large.safetensors", "/small.safetensors"}) {
      EXPECT_LT(largest_gap(one + name, two + name), 1e-6) << name;
    }
  }
}

TEST(ProcessesTest, WhenOneDiesTheOtherStopsWithASentenceAndOneAloneGoesOn) {
  const TempFolder folder;
  const auto many_steps = [](const std::string& output) {
    Words args = twenty_steps(output);
    args.insert(args.end(), {"--epochs", "12"});  // long enough to be stopped on a busy machine
    return args;
  };
  ASSERT_EQ(adjoin(many_steps(folder / "one")).exit_code, 0);
  const std::string run = folder / "two";
  Processes processes = start(2, many_steps(run));
  ASSERT_TRUE(wait_until(*processes[0], [&] { return log_lines(run) >= 7; }))
      << processes[0]->wait().err;
  processes[1]->signal(SIGKILL);
  const auto killed = std::chrono::steady_clock::now();
  const ProgramResult left = processes[0]->wait();
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - killed;
  EXPECT_LT(waited.count(), 60);
  EXPECT_EQ(left.exit_code, 3) << left.err;
  EXPECT_NE(left.err.find("process"), std::string::npos) << left.err;
  Words args = many_steps(run);
  args.emplace_back("--resume");
  const ProgramResult alone = adjoin(args);
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_LT(largest_gap(folder / "one/model.safetensors", run + "/model.safetensors"), 1e-6);
}

TEST(ProcessesTest, ASignalToOneStopsAllAndTheRunGoesOnWithAnyNumber) {
  const TempFolder folder;
  // Reports and checkpoints at different steps: sums of several processes are under way.
  const auto run_words = [&](const std::string& output, bool is_resumed) {
    Words args = twenty_steps(output);
    args.insert(args.end(), {"--log-interval", "3", "--batch-size", "31", "--epochs", "12"});
    if (is_resumed) args.emplace_back("--resume");
    return args;
  };
  ASSERT_EQ(adjoin(run_words(folder / "one", false)).exit_code, 0);
  const std::string run = folder / "r";
  Processes processes = start(2, run_words(run, false));
  ASSERT_TRUE(wait_until(*processes[1], [&] { return log_lines(run) >= 2; }))
      << processes[1]->wait().err;
  processes[1]->signal(SIGTERM);
  for (auto& process : processes) EXPECT_EQ(process->wait().exit_code, 128 + SIGTERM);
  for (auto& process : start(3, run_words(run, true))) {
    const ProgramResult result = process->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_LT(largest_gap(folder / "one/model.safetensors", run + "/model.safetensors"), 1e-6);
  const auto one = log_of(folder / "one");
  const auto several = log_of(run);
  ASSERT_EQ(one.size(), several.size());
  for (size_t i = 0; i < one.size(); ++i) {
    for (const char* key : {"loss", "accuracy", "grad_norm", "train_loss", "eval_loss"}) {
      if (!one[i].contains(key)) continue;
      EXPECT_NEAR(one[i].at(key).get<double>(), several[i].at(key).get<double>(), 1e-6)
          << key << " of line " << i;
    }
  }
}

}  // namespace
}  // namespace adjoin
