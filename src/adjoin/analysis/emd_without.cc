// Where LEMON was not found: the command says what is missing.
#include "adjoin/analysis/emd.h"
#include "adjoin/core/error.h"

namespace adjoin::analysis {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorKind::kMissingPart,
              "this build has no earth mover's distance: install liblemon-dev and build again");
}

}  // namespace

bool has_emd() { return false; }

Transport earth_movers_distance(const Masses& /*from*/, const Masses& /*to*/, GroundCost /*cost*/) {
  refuse();
}

Transport transport(const std::vector<double>& /*from*/, const std::vector<double>& /*to*/,
                    const std::vector<double>& /*costs*/) {
  refuse();
}

}  // namespace adjoin::analysis
