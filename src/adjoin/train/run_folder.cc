#include "adjoin/train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "adjoin/core/atomic_file.h"
#include "adjoin/core/error.h"
#include "adjoin/core/place.h"

namespace adjoin::train {
namespace {

[[noreturn]] void throw_io(const std::string& path, const char* what) {
  throw Error(ErrorKind::kIo, fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

}  // namespace

std::string default_run_folder(const std::string& model) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return fmt::format("runs/{}-{}", text.data(), model);
}

RunFolder::RunFolder(std::string path, bool may_exist) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  make_folders(path_);
  const std::string name = path_ + "/log.jsonl";
  const bool is_new = place_at(name) == Place::kNothing;
  log_ = open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);  // NOLINT(*-vararg)
  if (log_ < 0) throw_io(name, "cannot be written");
  if (flock(log_, LOCK_EX | LOCK_NB) != 0) {
    close(log_);
    throw Error(ErrorKind::kIo,
                path_ +
                    ": another run is writing to this folder; wait until it ends, or choose "
                    "another --output");
  }
  if (!may_exist && !is_new && has_checkpoint()) {
    close(log_);
    throw Error(ErrorKind::kUsage, path_ +
                                       ": holds a run already; go on with it by --resume, or "
                                       "choose another --output");
  }
}

RunFolder::~RunFolder() {
  if (log_ >= 0) close(log_);
}

bool RunFolder::has_checkpoint() const { return place_at(*this / "last.ckpt") == Place::kFile; }

void RunFolder::log(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(log_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_io(*this / "log.jsonl", "cannot be written");
    done += static_cast<size_t>(count);
  }
}

int64_t RunFolder::sync_log() {
  struct stat status {};
  if (fsync(log_) != 0 || fstat(log_, &status) != 0) {
    throw_io(*this / "log.jsonl", "cannot be written");
  }
  return status.st_size;
}

void RunFolder::cut_log(int64_t bytes) {
  const std::string name = *this / "log.jsonl";
  struct stat status {};
  if (fstat(log_, &status) != 0) throw_io(name, "cannot be read");
  if (status.st_size < bytes) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: is {} bytes long, but the checkpoint was made when it had {}; it "
                            "was cut or replaced since",
                            name, status.st_size, bytes));
  }
  if (ftruncate(log_, bytes) != 0) throw_io(name, "cannot be cut");
}

void RunFolder::write(const std::string& name, const std::string& text) const {
  AtomicFile file(*this / name);
  file.write(text);
  file.commit();
}

}  // namespace adjoin::train
