#pragma once

// Parts of a JSON value of which any may be missing, null or of another type: then there is
// nothing.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adjoin/core/json.h"

namespace adjoin::report {

/// A finite number.
std::optional<double> number_of(const Json& value);
std::optional<double> number_at(const Json& object, std::string_view key);

std::string text_at(const Json& object, std::string_view key);

/// The sentences of a list; what is no text is left out.
std::vector<std::string> texts_at(const Json& object, std::string_view key);

/// A list, empty where there is none.
const Json& list_at(const Json& object, std::string_view key);

/// The numbers of a list in their order; what is none is NaN.
std::vector<double> numbers_of(const Json& list);
std::vector<double> numbers_at(const Json& object, std::string_view key);

/// Mean, least and most of the numbers among some values; NaN without any.
struct Spread {
  explicit Spread(const std::vector<double>& values);

  double mean, least, most;
};

/// An object, or null.
const Json& object_at(const Json& object, std::string_view key);

std::optional<bool> truth_at(const Json& object, std::string_view key);

}  // namespace adjoin::report
