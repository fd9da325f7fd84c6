#include "adjoin/tensor/device.h"

#include <ATen/autocast_mode.h>

#include "adjoin/core/error.h"

namespace adjoin {
namespace {

// LibTorch 2.4 gave autocast one set of functions for all devices.
bool autocast_enabled(torch::DeviceType type) {
#if ADJOIN_TORCH >= 20400
  return at::autocast::is_autocast_enabled(type);
#else
  return type == torch::kCUDA ? at::autocast::is_enabled() : at::autocast::is_cpu_enabled();
#endif
}

void set_autocast(torch::DeviceType type, bool is_on) {
#if ADJOIN_TORCH >= 20400
  at::autocast::set_autocast_enabled(type, is_on);
  at::autocast::set_autocast_dtype(type, torch::kBFloat16);
#else
  if (type == torch::kCUDA) {
    at::autocast::set_enabled(is_on);
    at::autocast::set_autocast_gpu_dtype(torch::kBFloat16);
  } else {
    at::autocast::set_cpu_enabled(is_on);
    at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
  }
#endif
}

}  // namespace

torch::Device parse_device(const std::string& text) {
  const bool is_cuda = text == "cuda" || text.starts_with("cuda:");
  if (text != "cpu" && !is_cuda) {
    throw Error(ErrorKind::kUsage,
                "--device: unknown device \"" + text + "\"; legal: cpu, cuda, cuda:N");
  }
  if (!is_cuda) return torch::kCPU;
  const auto count = torch::cuda::device_count();
  const std::string index = text.size() > 5 ? text.substr(5) : "0";
  if (text.size() == 5 || index.find_first_not_of("0123456789") != std::string::npos ||
      index.size() > 3) {
    throw Error(ErrorKind::kUsage, "--device: \"" + text + "\" must be cuda or cuda:N");
  }
  if (count == 0) {
    throw Error(
        ErrorKind::kMissingPart,
        "--device: no GPU is visible to this LibTorch; a CUDA build of LibTorch and an NVIDIA "
        "driver are needed");
  }
  const int number = std::stoi(index);
  if (number >= static_cast<int>(count)) {
    throw Error(ErrorKind::kUsage, "--device: \"" + text + "\", but the GPUs are cuda:0 to cuda:" +
                                       std::to_string(count - 1));
  }
  return {torch::kCUDA, static_cast<torch::DeviceIndex>(number)};
}

torch::Device choose_device(const std::string& text, int local_rank) {
  if (text != "auto" && text != "cuda") return parse_device(text);
  if (text == "auto" && torch::cuda::device_count() == 0) return torch::kCPU;
  return parse_device("cuda:" + std::to_string(local_rank));
}

bool is_out_of_memory(const std::exception& failure) {
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) return true;
  const std::string what = failure.what();
  return what.find("out of memory") != std::string::npos ||
         what.find("can't allocate memory") != std::string::npos ||
         what.find("not enough memory") != std::string::npos;
}

bool is_autocast_on(torch::Device device) { return autocast_enabled(device.type()); }

torch::ScalarType parse_stored_dtype(const std::string& text) {
  if (text == "float16" || text == "half") return torch::kFloat16;
  if (text == "float32" || text == "float64" || text == "bf16" || text == "bfloat16") {
    return parse_dtype(text);
  }
  throw Error(ErrorKind::kUsage,
              "--dtype: unknown type \"" + text + "\"; legal: float32, float64, float16, bf16");
}

torch::ScalarType parse_dtype(const std::string& text) {
  if (text == "float32") return torch::kFloat32;
  if (text == "float64") return torch::kFloat64;
  if (text == "bf16" || text == "bfloat16") return torch::kBFloat16;
  throw Error(ErrorKind::kUsage,
              "--dtype: unknown type \"" + text + "\"; legal: float32, float64, bf16");
}

void prepare_torch(int threads) {
  at::set_num_threads(threads);
#if ADJOIN_TORCH < 20900  // from 2.9 on float32 products are exact unless asked otherwise
  at::globalContext().setAllowTF32CuBLAS(false);
#endif
  at::globalContext().setAllowTF32CuDNN(false);
}

Threads::Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }

Threads::~Threads() { at::set_num_threads(before_); }

Autocast::Autocast(torch::Device device, bool is_on)
    : type_(device.type()), was_on_(autocast_enabled(type_)) {
  set_autocast(type_, is_on);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  set_autocast(type_, was_on_);
}

}  // namespace adjoin
