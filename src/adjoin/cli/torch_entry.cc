// The LibTorch part of the program: its own table of verbs behind one C symbol.
#include <algorithm>
#include <cstring>
#include <iostream>

#include "adjoin/cli/command.h"
#include "adjoin/cli/torch_part.h"
#include "adjoin/core/error.h"
#include "adjoin/core/threads.h"
#include "adjoin/tensor/device.h"

namespace {

using adjoin::Error;
using adjoin::ErrorKind;
using adjoin::cli::Command;

constexpr Command kCommands[] = {
    {"compress", "", "", adjoin::cli::run_compress}, {"convert", "", "", adjoin::cli::run_convert},
    {"extract", "", "", adjoin::cli::run_extract},   {"train", "", "", adjoin::cli::run_train},
    {"evaluate", "", "", adjoin::cli::run_evaluate}, {"predict", "", "", adjoin::cli::run_predict},
    {"verify", "", "", adjoin::cli::run_verify},     {"export", "", "", adjoin::cli::run_export},
    {"bench", "", "", adjoin::cli::run_bench},       {"search", "", "", adjoin::cli::run_search},
    {"rank", "", "", adjoin::cli::run_rank},         {"inspect", "", "", adjoin::cli::run_inspect},
    {"emd", "", "", adjoin::cli::run_emd},
};

/// The first line: LibTorch's messages go on with advice and traces.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Error described(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& e) {
    return e;
  } catch (const c10::Error& e) {
    const std::string what = first_line(e.what_without_backtrace());
    if (adjoin::is_out_of_memory(e)) return {ErrorKind::kMemory, "out of memory: " + what};
    return {ErrorKind::kInternal, "LibTorch: " + what};
  } catch (const std::bad_alloc&) {
    return {ErrorKind::kMemory, "out of memory"};
  } catch (const std::exception& e) {
    return {ErrorKind::kInternal, "internal: " + first_line(e.what())};
  }
}

int run(const std::string& name, const std::vector<std::string>& args) {
  for (const Command& c : kCommands) {
    if (c.name == name) return c.run(args);
  }
  throw Error(ErrorKind::kInternal, "the LibTorch part has no command " + name);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int adjoin_torch_command(
    const char* command, int count, const char* const* args, char* message, int message_size,
    int* kind) {
  try {
    adjoin::keep_freed_memory();
    adjoin::prepare_torch(adjoin::default_threads());
    const int status = run(command, std::vector<std::string>(args, args + count));
    std::cout.flush();
    return status;
  } catch (...) {
    const Error error = described(std::current_exception());
    std::cout.flush();
    std::string what = error.what();
    constexpr std::string_view kCut = " .. (cut)";
    const auto most = static_cast<size_t>(message_size) - 1;
    if (what.size() > most) what.replace(most - kCut.size(), std::string::npos, kCut);
    std::strcpy(message, what.c_str());
    *kind = static_cast<int>(error.kind());
    return adjoin::cli::kFailed;
  }
}
