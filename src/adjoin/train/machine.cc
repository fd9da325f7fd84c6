#include "adjoin/train/machine.h"

#include <ATen/Version.h>
#include <fmt/format.h>

#include <cstdlib>

#include "adjoin/tensor/torch.h"

namespace adjoin::train {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// "AVX2": which of LibTorch's kernels run here.
std::string cpu_capability() {
  constexpr std::string_view kBefore = "CPU capability usage: ";
  const std::string config = at::show_config();
  const size_t found = config.find(kBefore);
  if (found == std::string::npos) return "";
  const size_t begin = found + kBefore.size();
  return config.substr(begin, config.find('\n', begin) - begin);
}

}  // namespace

Json machine() {
  return {{"threads", at::get_num_threads()},
          {"cpu_capability", cpu_capability()},
          {"torch", TORCH_VERSION},
          {"OPENBLAS_CORETYPE", variable("OPENBLAS_CORETYPE")},
          {"OPENBLAS_NUM_THREADS", variable("OPENBLAS_NUM_THREADS")}};
}

std::vector<std::string> machine_differences(const Json& then) {
  std::vector<std::string> differences;
  const Json now = machine();
  for (const auto& [key, value] : now.items()) {
    const Json before = then.is_object() ? then.value(key, Json()) : Json();
    if (before == value || before.is_null()) continue;
    differences.push_back(fmt::format(
        "{} was {} when the checkpoint was written and is {} now: the run goes on, but its last "
        "digits can differ",
        key, before.dump(), value.dump()));
  }
  return differences;
}

}  // namespace adjoin::train
