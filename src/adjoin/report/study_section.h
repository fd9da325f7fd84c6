#pragma once

#include <string>

#include "adjoin/report/study_view.h"

namespace adjoin::report {

/// The part of a page that shows a study: how its trials went, what they reach at which cost, where
/// they are in the learned embedding, and the winner. Empty without trials.
std::string study_section(const StudyView& study);

}  // namespace adjoin::report
