#pragma once

// Where and in which number format a network runs, as the user writes it.

#include <string>

#include "adjoin/tensor/torch.h"

namespace adjoin {

/// "cpu", "cuda", "cuda:1". Error(kUsage) for another word, Error(kMissingPart) when this build or
/// machine has no such device.
torch::Device parse_device(const std::string& text);

/// "auto": a GPU if this build and machine have one, else the CPU; otherwise as parse_device. Of
/// several processes on a machine each takes its own GPU.
torch::Device choose_device(const std::string& text, int local_rank = 0);

/// "float32", "float64" or "bf16" (also "bfloat16"). bf16 means autocast: weights, residual stream,
/// norms and softmax stay float32, products run in bfloat16.
torch::ScalarType parse_dtype(const std::string& text);

/// The types a model file can be stored in: "float32", "float64", "float16" or "bf16".
torch::ScalarType parse_stored_dtype(const std::string& text);

/// Sets the number of compute threads and turns off silent precision loss (TF32) in float32.
void prepare_torch(int threads);

/// Sets the number of compute threads for the life of the object.
class Threads {
 public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// Whether an exception of LibTorch says that memory ran out, on the CPU or a GPU.
bool is_out_of_memory(const std::exception& failure);

/// Whether autocast is on for a device in this thread.
bool is_autocast_on(torch::Device device);

/// Turns autocast to bfloat16 on or off on a device for the life of the object.
class Autocast {
 public:
  Autocast(torch::Device device, bool is_on);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  torch::DeviceType type_;
  bool was_on_;
};

}  // namespace adjoin
