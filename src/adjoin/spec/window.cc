#include "adjoin/spec/window.h"

namespace adjoin {
namespace {

/// Which of the three bands along a side, that a shift does not join, a position is in.
int64_t band(const Window& window, int64_t position) {
  return (position >= window.grid - window.size) + (position >= window.grid - window.shift);
}

/// Calls work(row, column) for the positions of the rolled grid, window by window.
template <class Work>
void for_each_position(const Window& window, Work work) {
  const int64_t side = window.grid / window.size;
  for (int64_t w = 0; w < side * side; ++w) {
    for (int64_t i = 0; i < window.tokens(); ++i) {
      work(w / side * window.size + i / window.size, w % side * window.size + i % window.size);
    }
  }
}

}  // namespace

std::vector<int32_t> window_tokens(const Window& window) {
  std::vector<int32_t> tokens;
  const auto before_roll = [&](int64_t position) {
    return (position + window.shift) % window.grid;
  };
  for_each_position(window, [&](int64_t row, int64_t column) {
    tokens.push_back(static_cast<int32_t>(before_roll(row) * window.grid + before_roll(column)));
  });
  return tokens;
}

std::vector<int32_t> window_places(const Window& window) {
  const std::vector<int32_t> tokens = window_tokens(window);
  std::vector<int32_t> places(tokens.size());
  for (size_t row = 0; row < tokens.size(); ++row) {
    places[static_cast<size_t>(tokens[row])] = static_cast<int32_t>(row);
  }
  return places;
}

std::vector<int64_t> relative_position_rows(int64_t size) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < size * size; ++i) {
    for (int64_t j = 0; j < size * size; ++j) {
      const int64_t dh = i / size - j / size;
      const int64_t dw = i % size - j % size;
      rows.push_back((dh + size - 1) * (2 * size - 1) + dw + size - 1);
    }
  }
  return rows;
}

std::vector<bool> strangers(const Window& window) {
  std::vector<int64_t> parts;
  for_each_position(window, [&](int64_t row, int64_t column) {
    parts.push_back(band(window, row) * 3 + band(window, column));
  });
  std::vector<bool> result;
  const auto count = static_cast<size_t>(window.tokens());
  for (size_t begin = 0; begin < parts.size(); begin += count) {
    for (size_t i = begin; i < begin + count; ++i) {
      for (size_t j = begin; j < begin + count; ++j) result.push_back(parts[i] != parts[j]);
    }
  }
  return result;
}

}  // namespace adjoin
