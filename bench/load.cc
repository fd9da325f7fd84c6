// Opens one model file and prints, as JSON, how long that took and how much memory became ours:
// the worker of bench/load.py.
#include "adjoin/models/load.h"

#include <chrono>
#include <fstream>
#include <iostream>

#include "adjoin/core/error.h"
#include "adjoin/tensor/device.h"

namespace {

/// Memory of this process that is no file's, in bytes.
int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) * 1024;
  }
  throw adjoin::Error(adjoin::ErrorKind::kInternal, "/proc/self/status has no RssAnon");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: bench_load FILE\n";
    return 2;
  }
  try {
    using Clock = std::chrono::steady_clock;
    const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
    adjoin::prepare_torch(2);
    torch::zeros({1000}).sum();  // the first operator starts the threads
    const int64_t before = anonymous_bytes();
    const auto start = Clock::now();
    const adjoin::models::Model model = adjoin::models::load(argv[1]);
    const auto loaded = Clock::now();
    double total = 0;
    int64_t bytes = 0;
    for (const auto& [name, tensor] : model.weights) {
      total += tensor.sum().item<double>();
      bytes += static_cast<int64_t>(tensor.nbytes());
    }
    const auto touched = Clock::now();
    std::cout << adjoin::Json{{"load_s", seconds(loaded - start)},
                              {"load_and_read_s", seconds(touched - start)},
                              {"weight_bytes", bytes},
                              {"own_bytes", anonymous_bytes() - before},
                              {"sum", total}}
                     .dump()
              << '\n';
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "bench_load: " << e.what() << '\n';
    return 1;
  }
}
