// Reads thousands of broken files. Each must be refused with Error(kData) or give tensors of which
// every byte can be touched, within a bound of memory and time.
//
//   adjoin_fuzz [--files 20000] [--seed 1] [--format NAME]
//
// What is done to file n depends on the seed, the format and n alone. A file that fails is written
// to fuzz-failure-FORMAT-N.bin in the working folder.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "adjoin/core/error.h"
#include "adjoin/core/hash.h"
#include "adjoin/core/table.h"
#include "fuzz/count_memory.h"
#include "fuzz/formats.h"
#include "io/make_safetensors.h"
#include "io/walk_tensor.h"

// There when a sanitizer is linked in.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace adjoin::fuzz {
namespace {

constexpr unsigned kMostSeconds = 2;

struct Options {
  size_t files = 20000;
  uint64_t seed = 1;
  std::string format;
};

struct Outcome {
  bool is_accepted = false;
  int64_t peak = 0;
  std::string failure;  ///< empty when all is well
};

struct Tally {
  size_t accepted = 0;
  size_t refused = 0;
  size_t failed = 0;
  double worst_ratio = 0;
};

/// The file at hand, for whoever has to write it down when the program dies.
struct Current {
  const char* name = nullptr;
  const char* bytes = nullptr;
  size_t size = 0;
};
Current current;

/// Calls only what a signal handler may.
void save_current() {
  if (current.name == nullptr) return;
  const int file = open(current.name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) return;
  size_t done = 0;
  while (done < current.size) {
    const ssize_t count = write(file, current.bytes + done, current.size - done);
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  close(file);
  constexpr char kText[] = "adjoin_fuzz: broken by the file ";
  if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0) return;
  if (write(STDERR_FILENO, current.name, std::strlen(current.name)) < 0) return;
  if (write(STDERR_FILENO, "\n", 1) < 0) return;
}

void on_signal(int) {
  save_current();
  _exit(1);
}

void catch_deaths() {
  std::signal(SIGPROF, on_signal);
  std::signal(SIGABRT, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(save_current);
  } else {
    std::signal(SIGSEGV, on_signal);
    std::signal(SIGBUS, on_signal);
  }
}

/// Counts this process' own time: other work on the machine must not make a file look slow.
void set_time_limit(int seconds) {
  const itimerval limit{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

/// Keeps the sum from being optimised away.
volatile unsigned touched = 0;

void touch(const io::TensorFile& file) {
  unsigned sum = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const size_t size = io::item_size(tensor.dtype);
    io::walk(tensor, [&](const std::byte* item) {
      for (size_t i = 0; i < size; ++i) sum += static_cast<unsigned>(item[i]);
    });
  }
  touched = sum;
}

Outcome try_file(const Format& format, const std::string& bytes) {
  Outcome outcome;
  io::FileBytes file = io::own_bytes("file", io::to_bytes(bytes));
  start_counting();
  try {
    const io::TensorFile result = format.parse(file);
    outcome.peak = peak_bytes();
    touch(result);
    outcome.is_accepted = true;
  } catch (const Error& e) {
    outcome.peak = peak_bytes();
    if (e.kind() != ErrorKind::kData) outcome.failure = "an Error of another kind: ";
    if (!std::string_view(e.what()).starts_with("file: ")) outcome.failure += "no origin: ";
    if (!outcome.failure.empty()) outcome.failure += e.what();
  } catch (const std::exception& e) {
    outcome.failure = std::string("another exception: ") + e.what();
  }
  const auto allowed = static_cast<int64_t>(2 * bytes.size() + format.slack);
  if (outcome.peak > allowed) {
    outcome.failure = fmt::format("{} bytes of memory, {} allowed", outcome.peak, allowed);
  }
  return outcome;
}

/// Half of the files are sound around a broken core, the others are broken as a whole.
std::string broken_file(const Format& format, const std::vector<std::string>& cores,
                        std::span<const std::string> tokens, Random& random) {
  constexpr size_t kMostBreaks = 4;
  const auto draw = [&]() -> const std::string& {
    return random.one_in(64) ? cores.back() : cores[random.below(cores.size() - 1)];
  };
  const size_t breaks = random.one_in(2) ? 1 : 1 + random.below(kMostBreaks);
  std::string file = draw();
  if (random.one_in(2)) {
    for (size_t i = 0; i < breaks; ++i) mutate(file, {0, file.size()}, draw(), tokens, random);
    return format.wrap(file);
  }
  file = format.wrap(file);
  const bool is_focused = random.one_in(2);
  for (size_t i = 0; i < breaks; ++i) {
    const Region region = is_focused ? format.focus(file) : Region{0, file.size()};
    mutate(file, region, format.wrap(draw()), tokens, random);
  }
  if (random.one_in(2)) format.repair(file);
  return file;
}

/// Sound files must be read: a fuzzer that is refused at the door tests nothing.
bool check_cores(const Format& format, const std::vector<std::string>& cores) {
  bool is_fine = true;
  for (size_t i = 0; i + 1 < cores.size(); ++i) {
    const Outcome outcome = try_file(format, format.wrap(cores[i]));
    if (outcome.is_accepted && outcome.failure.empty()) continue;
    fmt::print(stderr, "adjoin_fuzz: sound file {} of {} is refused\n", i, format.name);
    is_fine = false;
  }
  return is_fine;
}

Tally run_format(const Format& format, const Options& options) {
  Tally tally;
  const std::vector<std::string> cores = format.cores();
  const std::vector<std::string> tokens = format.tokens();
  if (!check_cores(format, cores)) ++tally.failed;
  for (size_t n = 0; n < options.files; ++n) {
    Random random(splitmix64(options.seed) ^ splitmix64(fnv1a(format.name) + n));
    const std::string file = broken_file(format, cores, tokens, random);
    const std::string name = fmt::format("fuzz-failure-{}-{}.bin", format.name, n);
    current = {name.c_str(), file.data(), file.size()};
    set_time_limit(kMostSeconds);
    const Outcome outcome = try_file(format, file);
    set_time_limit(0);
    ++(outcome.is_accepted ? tally.accepted : tally.refused);
    const auto allowed = static_cast<double>(2 * file.size() + format.slack);
    tally.worst_ratio = std::max(tally.worst_ratio, static_cast<double>(outcome.peak) / allowed);
    if (!outcome.failure.empty()) {
      ++tally.failed;
      save_current();
      fmt::print(stderr, "adjoin_fuzz: seed {}, {} file {}: {}\n", options.seed, format.name, n,
                 one_line(outcome.failure));
    }
    current = {};
  }
  return tally;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const char* value = i + 1 < argc ? argv[++i] : nullptr;
    char* end = nullptr;
    const bool is_number =
        value != nullptr && std::isdigit(static_cast<unsigned char>(*value)) != 0;
    const uint64_t number = is_number ? std::strtoull(value, &end, 10) : 0;
    const bool is_whole = is_number && *end == '\0';
    if (flag == "--files" && is_whole) {
      options.files = number;
    } else if (flag == "--seed" && is_whole) {
      options.seed = number;
    } else if (flag == "--format" && value != nullptr) {
      options.format = value;
    } else {
      throw Error(ErrorKind::kUsage, "usage: adjoin_fuzz [--files N] [--seed N] [--format NAME]");
    }
  }
  const auto has_name = [&](const Format& format) { return format.name == options.format; };
  if (!options.format.empty() && !std::any_of(formats().begin(), formats().end(), has_name)) {
    throw Error(ErrorKind::kUsage, "there is no format " + options.format);
  }
  return options;
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  catch_deaths();
  Table table({"format", ">files", ">accepted", ">refused", ">failed", ">peak of allowed memory"});
  size_t failed = 0;
  for (const Format& format : formats()) {
    if (!options.format.empty() && options.format != format.name) continue;
    const Tally tally = run_format(format, options);
    failed += tally.failed;
    table.add({std::string(format.name), with_commas(static_cast<int64_t>(options.files)),
               with_commas(static_cast<int64_t>(tally.accepted)),
               with_commas(static_cast<int64_t>(tally.refused)), std::to_string(tally.failed),
               fmt::format("{:.2f}", tally.worst_ratio)});
  }
  fmt::print("{}", table.text());
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace adjoin::fuzz

int main(int argc, char** argv) {
  try {
    return adjoin::fuzz::run(argc, argv);
  } catch (const adjoin::Error& e) {
    fmt::print(stderr, "adjoin_fuzz: {}\n", e.what());
    return adjoin::exit_code(e.kind());
  }
}
