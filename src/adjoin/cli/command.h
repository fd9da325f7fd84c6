#pragma once

// A verb of the program. `main` prints help from the same table it dispatches on.

#include <span>
#include <string>
#include <string_view>

namespace adjoin::cli {

/// What follows the verb, in the order given; `_` in flag names already written as `-`.
using Args = std::span<const std::string>;

struct Command {
  std::string_view name;
  std::string_view usage;  ///< what follows the name
  std::string_view summary;
  int (*run)(Args args);  ///< null: the verb is in the LibTorch part, loaded when it is needed
};

// Commands that need no LibTorch.
int run_cost(Args args);
int run_models(Args args);
int run_report(Args args);

// Commands of the LibTorch part.
int run_bench(Args args);
int run_compress(Args args);
int run_convert(Args args);
int run_emd(Args args);
int run_evaluate(Args args);
int run_export(Args args);
int run_extract(Args args);
int run_inspect(Args args);
int run_predict(Args args);
int run_rank(Args args);
int run_search(Args args);
int run_train(Args args);
int run_verify(Args args);

/// Loads the LibTorch part of the program and runs one of its verbs. Error(kMissingPart) when this
/// installation has none.
int run_torch_command(std::string_view name, Args args);

}  // namespace adjoin::cli
