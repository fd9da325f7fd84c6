// The program: a table of verbs. It is linked without LibTorch, so that verbs which do not compute
// start at once and the OpenMP runtime is loaded only after it was told how to wait.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <vector>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/build_info.h"
#include "adjoin/cli/command.h"
#include "adjoin/core/error.h"
#include "adjoin/core/suggest.h"
#include "adjoin/core/threads.h"

namespace {

using adjoin::Error;
using adjoin::ErrorKind;
using adjoin::cli::Command;

constexpr Command kCommands[] = {
    {"models", "[MODEL|FILE]", "the catalog, or the whole spec of a model",
     adjoin::cli::run_models},
    {"cost", "MODEL|FILE", "parameters, MACs and bytes, block by block", adjoin::cli::run_cost},
    {"extract", "FILE OUT", "the small network out of a large one, as a model file", nullptr},
    {"convert", "IN OUT", "a .pth, .safetensors or Hub folder as a model file", nullptr},
    {"export", "FILE OUT.onnx", "a model as ONNX, checked by computing it again", nullptr},
    {"train", "--model M --data D", "one network on images with labels, through crashes", nullptr},
    {"compress", "--model M --data D --alpha A",
     "a large network and small ones inside its weights, together", nullptr},
    {"search", "--model M --data D --target-macs 0.45x",
     "how much of every block to keep, for what can be afforded", nullptr},
    {"rank", "--archs FILE --proxies P,Q", "architectures scored before training, with a verdict",
     nullptr},
    {"inspect", "FILE|MODEL [FILE2] --data D",
     "rank collapse, attention, gradients and paths, layer by layer", nullptr},
    {"emd", "A.csv B.csv", "earth mover's distance, with plan and certificate", nullptr},
    {"evaluate", "FILE --data D", "the accuracy of a model", nullptr},
    {"predict", "FILE INPUT...", "what a model says of images", nullptr},
    {"bench", "FILE|MODEL...", "latency and throughput, side by side", nullptr},
    {"report", "RUN...", "runs as pages, or as the table of a paper", adjoin::cli::run_report},
    {"verify", "GOLDEN...", "our forward pass beside outputs of the authors' own code", nullptr},
};

int print_help() {
  fmt::print("adjoin compresses vision transformers.\n\nusage: adjoin COMMAND [ARGUMENTS]\n\n");
  size_t width = 0;
  for (const Command& c : kCommands) width = std::max(width, c.name.size() + c.usage.size() + 3);
  const auto line = [&](const std::string& what, std::string_view says) {
    fmt::print("  {:<{}}{}\n", what, width, says);
  };
  for (const Command& c : kCommands) line(fmt::format("{} {}", c.name, c.usage), c.summary);
  fmt::print("\n");
  line("COMMAND --help", "the arguments of a command");
  line("--version", "this program and the parts built in");
  line("--help", "this page");
  return 0;
}

int print_version() {
  fmt::print("adjoin {}\n", adjoin::cli::kVersion);
  for (const auto& [part, version] : adjoin::cli::kParts) fmt::print("  {:<16}{}\n", part, version);
  return 0;
}

int dispatch(const std::vector<std::string>& args) {
  const bool is_help = !args.empty() && args[0] == "help";
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || (is_help && args.size() == 1)) {
    return print_help();
  }
  if (is_help) return dispatch({args[1], "--help"});
  if (args[0] == "--version" || args[0] == "version") return print_version();
  const adjoin::cli::Args rest = adjoin::cli::Args(args).subspan(1);
  std::vector<std::string> names;
  for (const Command& c : kCommands) {
    if (c.name == args[0]) {
      return c.run != nullptr ? c.run(rest) : adjoin::cli::run_torch_command(c.name, rest);
    }
    names.emplace_back(c.name);
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("unknown command \"{}\"{}", args[0], adjoin::suggestion(args[0], names)));
}

/// Of what is thrown where nobody can catch it, such as while LibTorch is loaded: the type says
/// enough where memory ran out.
[[noreturn]] void end_badly() {
  std::string what = "internal: ended by what nothing caught";
  try {
    if (const auto cause = std::current_exception()) std::rethrow_exception(cause);
  } catch (const std::bad_alloc&) {
    what = "out of memory";
  } catch (const std::exception& e) {
    what = fmt::format("internal: {}", e.what());
  } catch (...) {  // of no type of ours: what was said first stays
  }
  std::cerr << "adjoin: error: " << adjoin::one_line(what) << std::endl;
  _exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_badly);
  adjoin::let_waiting_threads_sleep();
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error like a full disk
  std::vector<std::string> args(argv + 1, argv + argc);
  for (std::string& arg : args) {
    if (arg == "--") break;  // what follows are no flags
    arg = adjoin::cli::normalized_flag(std::move(arg));
  }
  try {
    const int status = dispatch(args);
    if (!std::cout.flush() || std::fflush(stdout) != 0) {
      throw Error(ErrorKind::kIo, "standard output cannot be written to");
    }
    return status;
  } catch (const Error& e) {
    std::cout.flush();
    std::cerr << "adjoin: error: " << adjoin::one_line(e.what()) << '\n';
    return adjoin::exit_code(e.kind());
  } catch (const std::bad_alloc&) {
    std::cerr << "adjoin: error: out of memory\n";
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "adjoin: error: internal: " << adjoin::one_line(e.what()) << '\n';
    return 1;
  }
}
