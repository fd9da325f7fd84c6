#include "adjoin/cli/choice_options.h"

#include "adjoin/cli/arguments.h"
#include "adjoin/core/fields.h"

namespace adjoin::cli {

ChoiceText ChoiceOptions::text() const {
  ChoiceText result{alpha, alphas, keep};
  from_json(geometry, result.geometry, "--geometry");
  return result;
}

void add_choice_options(CLI::App& app, ChoiceOptions& options) {
  const std::string group = "Choice of the small network";
  app.add_option("--alpha", options.alpha, "divide heads and hidden units of every block by this")
      ->check(whole_number(1, 1'000'000))
      ->type_name("A")
      ->group(group);
  app.add_option("--alphas", options.alphas,
                 "one factor per block, or @FILE.json with a list, an architecture or a spec")
      ->type_name("A,A,..|@FILE")
      ->group(group);
  app.add_option("--keep", options.keep,
                 "keep this share of heads (rounded) and hidden units (a multiple of 8)")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--geometry", options.geometry,
                 "kept: the residual width stays; narrow: it is divided too, by one alpha")
      ->type_name("kept|narrow")
      ->capture_default_str()
      ->group(group);
}

}  // namespace adjoin::cli
