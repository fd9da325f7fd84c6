#pragma once

// Small training runs from end to end, and what must be equal between two of them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <sstream>
#include <thread>

#include "adjoin/io/safetensors.h"
#include "cli/commands.h"
#include "support/temp_folder.h"

namespace adjoin {

/// Three epochs of eight steps on generated images, a log line every step and a checkpoint every
/// third.
inline Words small_run(const std::string& model, const std::string& output) {
  return {"train",
          "--model",
          model,
          "--data",
          "synthetic:1x28x28x10x256",
          "--limit-val",
          "40",
          "--epochs",
          "3",
          "--batch-size",
          "32",
          "--warmup-epochs",
          "1",
          "--drop-path",
          "0.1",
          "--model-ema",
          "--model-ema-decay",
          "0.9",
          "--workers",
          "2",
          "--log-interval",
          "1",
          "--checkpoint-interval",
          "3",
          "--device",
          "cpu",
          "--output",
          output};
}

inline std::vector<Json> log_of(const std::string& run) {
  std::istringstream text(read_text_file(run + "/log.jsonl", size_t{1} << 24));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) {
    Json json = parse_json(line, "log.jsonl");
    for (const char* key : {"time", "seconds", "images_per_second"}) json.erase(key);
    lines.push_back(std::move(json));
  }
  return lines;
}

/// Complete lines of a log that may not be there yet.
inline int64_t log_lines(const std::string& run) {
  std::ifstream file(run + "/log.jsonl");
  int64_t count = 0;
  for (std::string line; std::getline(file, line);) count += file.eof() ? 0 : 1;
  return count;
}

/// Waits until `is_so` or the program ends; false when it ended first.
inline bool wait_until(RunningProgram& program, const std::function<bool()>& is_so) {
  while (!is_so()) {
    if (program.is_over()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

/// Whether the program has a file without a name open: what it is writing, not yet in its place.
inline bool is_writing_a_file(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd/";
  for (int descriptor = 3; descriptor < 64; ++descriptor) {
    std::array<char, 512> target{};
    const auto length =
        readlink((folder + std::to_string(descriptor)).c_str(), target.data(), target.size() - 1);
    if (length > 0 && std::string(target.data()).find("/#") != std::string::npos) return true;
  }
  return false;
}

/// Every tensor of two safetensors files, bit for bit.
inline void expect_equal_tensors(const std::string& a, const std::string& b) {
  const io::TensorFile one = io::read_safetensors(io::map_file(a));
  const io::TensorFile two = io::read_safetensors(io::map_file(b));
  ASSERT_EQ(one.tensors.size(), two.tensors.size());
  for (const auto& [name, tensor] : one.tensors) {
    const auto found = two.tensors.find(name);
    ASSERT_NE(found, two.tensors.end()) << name;
    ASSERT_EQ(tensor.reach(), found->second.reach()) << name;
    EXPECT_EQ(std::memcmp(tensor.data, found->second.data, tensor.reach()), 0) << name;
  }
}

/// Weights, optimizer, averages, logs and tables of two runs.
inline void expect_equal_runs(const std::string& a, const std::string& b) {
  expect_equal_tensors(a + "/last.ckpt", b + "/last.ckpt");
  for (const char* name : {"/model.safetensors", "/best.safetensors", "/summary.csv"}) {
    EXPECT_EQ(read_text_file(a + name, size_t{1} << 26), read_text_file(b + name, size_t{1} << 26))
        << name;
  }
  EXPECT_EQ(log_of(a), log_of(b));
}

}  // namespace adjoin
