#pragma once

#include <string>
#include <vector>

#include "adjoin/report/run_view.h"

namespace adjoin::report {

/// What a run saw inside its networks: a line per layer over the epochs, for each network, and all
/// networks over depth as they were seen last. `networks` have their colours by their order. Empty
/// where nothing was seen.
std::string inspect_section(const std::vector<InspectionView>& seen,
                            const std::vector<NetworkView>& networks);

}  // namespace adjoin::report
