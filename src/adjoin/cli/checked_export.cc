#include "adjoin/cli/checked_export.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "adjoin/cli/run_command.h"
#include "adjoin/core/atomic_file.h"
#include "adjoin/core/error.h"
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

constexpr std::string_view kWorkshop = ".adjoin-export-";

/// The lock of a folder, which ends with the process. Not where the file system has none.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    is_locked_ = descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    is_anothers_ = descriptor_ >= 0 && !is_locked_ && errno == EWOULDBLOCK;
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool is_locked() const { return is_locked_; }
  bool is_anothers() const { return is_anothers_; }
  bool is_our_users() const {
    struct stat status {};
    return ::fstat(descriptor_, &status) == 0 && status.st_uid == ::geteuid();
  }

 private:
  int descriptor_;
  bool is_locked_ = false;
  bool is_anothers_ = false;
};

/// A folder beside a file to come, gone when the object is: what is checked there and then moved
/// replaces an older file only when it is good. What killed processes left beside it is cleared.
class Workshop {
 public:
  explicit Workshop(const std::string& path) : target_(path) {
    for (const char* ending : {"", ".data"}) AtomicFile(path + ending);  // refuses what is no file
    clear_others();
    do {
      std::string name = (target_.parent_path() / (std::string(kWorkshop) + "XXXXXX")).string();
      if (::mkdtemp(name.data()) == nullptr) {
        throw Error(ErrorKind::kIo,
                    fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
      }
      folder_ = name;
      lock_.emplace(folder_);
      // Who clears up may have taken it before it was locked.
    } while (lock_->is_anothers() || !std::filesystem::exists(folder_));
  }
  ~Workshop() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
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
      std::error_code failure;
      const uintmax_t size = std::filesystem::file_size(made, failure);
      const bool is_data = *ending != '\0';
      if (failure && is_data) {
        ::unlink((target_.string() + ending).c_str());  // of an older export
        continue;
      }
      bytes += size;
      std::filesystem::rename(made, target_.string() + ending, failure);
      if (failure) {
        throw Error(ErrorKind::kIo, fmt::format("{}{}: cannot be written: {}", target_.string(),
                                                ending, failure.message()));
      }
    }
    return static_cast<int64_t>(bytes);
  }

 private:
  /// Folders that nobody is at any more. What cannot be removed stays.
  void clear_others() const {
    const std::filesystem::path beside = target_.has_parent_path() ? target_.parent_path() : ".";
    std::error_code failure;
    std::filesystem::directory_iterator entry(beside, failure);
    for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
      const std::filesystem::path& path = entry->path();
      if (!path.filename().string().starts_with(kWorkshop)) continue;
      const FolderLock lock(path);
      std::error_code ignored;
      if (lock.is_locked() && lock.is_our_users()) std::filesystem::remove_all(path, ignored);
    }
  }

  std::filesystem::path target_;
  std::filesystem::path folder_;
  std::optional<FolderLock> lock_;
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
