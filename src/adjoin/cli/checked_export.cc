#include "adjoin/cli/checked_export.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "adjoin/cli/run_command.h"
#include "adjoin/core/atomic_file.h"
#include "adjoin/core/error.h"
#include "adjoin/core/hash.h"
#include "adjoin/data/transform.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/onnx_run.h"

namespace adjoin::cli {
namespace {

constexpr int64_t kImages = 16;      // computed on both sides
constexpr double kTolerance = 1e-4;  // of logits, in units of the largest
constexpr uint64_t kSeed = 0;

struct Comparison {
  double difference = 0;  ///< largest of a logit
  double largest = 0;     ///< logit
  int64_t agree = 0;      ///< images with the same answer

  bool is_good() const {
    return difference <= kTolerance * std::max(largest, 1.0) && agree == kImages;
  }
};

torch::Tensor random_pixels(const ModelSpec& spec) {
  torch::manual_seed(kSeed);
  return torch::randint(0, 256, {kImages, spec.img_size, spec.img_size, spec.in_chans})
      .to(torch::kUInt8);
}

Comparison compare(const std::string& path, const models::Model& model, bool has_preprocessing) {
  const torch::NoGradGuard no_grad;
  const ModelSpec& spec = model.header.spec;
  const auto pixels = random_pixels(spec);
  const auto images = data::normalised(pixels.permute({0, 3, 1, 2}).to(torch::kFloat32).div(255),
                                       model.header.preprocessing);
  Comparison result;
  constexpr int64_t kPart = 4;
  for (int64_t i = 0; i < kImages; i += kPart) {
    const auto part = images.narrow(0, i, kPart);
    const auto wanted = models::forward(spec, model.weights, part).logits();
    const auto got = models::run_onnx(path, has_preprocessing ? pixels.narrow(0, i, kPart) : part);
    const auto largest = [](const torch::Tensor& t) { return t.abs().max().item<double>(); };
    // A NaN must stay: std::max would lose it.
    const double difference = largest(got - wanted);
    if (!(difference <= result.difference)) result.difference = difference;
    result.largest = std::max(result.largest, largest(wanted));
    result.agree += (got.argmax(1) == wanted.argmax(1)).sum().item<int64_t>();
  }
  return result;
}

/// A folder beside a file to come, gone when the object is: what is checked there and then moved
/// replaces an older file only when it is good. One a file: what a process that was killed left in
/// it is cleared by the next.
class Workshop {
 public:
  explicit Workshop(const std::string& path) : target_(path) {
    for (const char* ending : {"", ".data"}) AtomicFile(path + ending);  // refuses what is no file
    // The name leaves out that of the file, which may be as long as names can be.
    folder_ = target_.parent_path() /
              fmt::format(".adjoin-export-{:016x}", fnv1a(target_.filename().string()));
    while (!take()) {
    }
    for (const auto& left : std::filesystem::directory_iterator(folder_)) {
      std::filesystem::remove_all(left.path());
    }
  }
  ~Workshop() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    ::close(lock_);
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  /// The file under its own name.
  std::string path() const { return folder_ / target_.filename(); }

  /// Moves all files to their place, the first one last; returns their bytes.
  int64_t deliver() const {
    uintmax_t bytes = 0;
    for (const char* ending : {".data", ""}) {
      const std::filesystem::path made = path() + ending;
      if (!std::filesystem::exists(made)) {
        ::unlink((target_.string() + ending).c_str());  // of an older export
        continue;
      }
      bytes += std::filesystem::file_size(made);
      std::error_code failure;
      std::filesystem::rename(made, target_.string() + ending, failure);
      if (failure) {
        throw Error(ErrorKind::kIo, fmt::format("{}{}: cannot be written: {}", target_.string(),
                                                ending, failure.message()));
      }
    }
    return static_cast<int64_t>(bytes);
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot be written: {}", target_.string(), std::strerror(errno)));
  }

  /// Whether the folder is there and ours; not where its last owner took it away meanwhile.
  bool take() {
    if (::mkdir(folder_.c_str(), 0777) != 0 && errno != EEXIST) refuse();
    lock_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);  // NOLINT
    if (lock_ < 0 && errno != ENOENT) refuse();
    if (lock_ < 0) return false;
    // Some file systems have no locks: then it is ours.
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(lock_);
      throw Error(ErrorKind::kIo, target_.string() + ": another program is writing it");
    }
    struct stat ours {};
    struct stat there {};
    const bool is_there = ::fstat(lock_, &ours) == 0 && ::stat(folder_.c_str(), &there) == 0 &&
                          ours.st_ino == there.st_ino;
    if (!is_there) ::close(lock_);
    return is_there;
  }

  std::filesystem::path target_;
  std::filesystem::path folder_;
  int lock_ = -1;
};

}  // namespace

CheckedExport checked_export(models::Model model, const std::string& path,
                             const io::OnnxOptions& options, const StopSignal& stop) {
  model.weights = model.weights.to(torch::kCPU, torch::kFloat32);
  const auto values = [&](const std::string& name) {
    const auto tensor = model.weights.at(name).contiguous();
    const float* data = tensor.data_ptr<float>();
    return std::vector<float>(data, data + tensor.numel());
  };
  const Workshop workshop(path);
  io::export_onnx(workshop.path(), model.header, values, options);
  if (stop.received() != 0) throw Stopped{stop.received()};
  const Comparison found = compare(workshop.path(), model, options.has_preprocessing);
  if (!found.is_good()) {
    throw Error(ErrorKind::kNumeric,
                fmt::format("{}: computed from the file, logits differ by {:.1e} and {} of {} "
                            "answers agree; nothing was written",
                            path, found.difference, found.agree, kImages));
  }
  if (stop.received() != 0) throw Stopped{stop.received()};
  return {workshop.deliver(), kImages, found.agree, found.difference};
}

}  // namespace adjoin::cli
