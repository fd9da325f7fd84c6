#include "fuzz/mutate.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "adjoin/core/hash.h"

namespace adjoin::fuzz {
namespace {

constexpr size_t kMostGrowth = size_t{1} << 18;

struct Target {
  std::string& file;
  Region region;
  const std::string& other;
  std::span<const std::string> tokens;
  Random& random;

  size_t place() const { return region.begin + random.below(region.end - region.begin); }
  size_t length(size_t at) const {
    return 1 + random.below(std::min<size_t>(region.end - at, random.one_in(4) ? 4096 : 16));
  }
};

void flip_bits(Target& t) {
  for (size_t i = 1 + t.random.below(4); i > 0; --i) {
    t.file[t.place()] ^= static_cast<char>(1U << t.random.below(8));
  }
}

void set_byte(Target& t) {
  constexpr unsigned char kValues[] = {0,   1,   2,   0x7f, 0x80, 0xff, '"',
                                       '{', '}', '[', '(',  ')',  '.'};
  t.file[t.place()] = static_cast<char>(kValues[t.random.below(std::size(kValues))]);
}

template <class T>
void write_number(Target& t, T value) {
  const size_t at = t.place();
  std::memcpy(t.file.data() + at, &value, std::min(sizeof value, t.file.size() - at));
}

void set_number(Target& t) {
  constexpr uint64_t kValues[] = {0,          1,          2,           0x7f,       0xff,
                                  0x7fff,     0xffff,     0x7fffffff,  0x80000000, 0xffffffff,
                                  1ULL << 32, 1ULL << 40, ~0ULL >> 1U, 1ULL << 63, ~0ULL};
  const uint64_t near = t.file.size() + t.random.below(64) - 32;
  const uint64_t value = t.random.one_in(3) ? near : kValues[t.random.below(std::size(kValues))];
  switch (t.random.below(3)) {
    case 0: return write_number(t, static_cast<uint16_t>(value));
    case 1: return write_number(t, static_cast<uint32_t>(value));
    default: return write_number(t, value);
  }
}

void truncate(Target& t) { t.file.resize(t.place()); }

void remove_chunk(Target& t) {
  const size_t at = t.place();
  t.file.erase(at, t.length(at));
}

void repeat_chunk(Target& t) {
  const size_t at = t.place();
  const std::string chunk = t.file.substr(at, t.length(at));
  const size_t times = t.random.one_in(8) ? 1 + t.random.below(4096) : 1;
  std::string copies;
  for (size_t i = 0; i < times && copies.size() < kMostGrowth; ++i) copies += chunk;
  t.file.insert(at, copies);
}

void swap_chunks(Target& t) {
  const size_t a = t.place();
  const size_t b = t.place();
  const size_t size = std::min({t.length(a), t.length(b), std::max(a, b) - std::min(a, b)});
  std::swap_ranges(t.file.begin() + static_cast<ptrdiff_t>(a),
                   t.file.begin() + static_cast<ptrdiff_t>(a + size),
                   t.file.begin() + static_cast<ptrdiff_t>(b));
}

void splice(Target& t) {
  const size_t from = t.random.below(t.other.size());
  if (t.random.one_in(2)) {
    t.file = t.file.substr(0, t.place()) + t.other.substr(from);
  } else {
    t.file.insert(t.place(), t.other.substr(from, 1 + t.random.below(64)));
  }
}

void insert_token(Target& t) {
  if (t.tokens.empty()) return;
  const std::string& token = t.tokens[t.random.below(t.tokens.size())];
  const size_t at = t.place();
  if (t.random.one_in(2)) {
    t.file.insert(at, token);
  } else {
    t.file.replace(at, token.size(), token);
  }
}

constexpr void (*kMutations[])(Target&) = {flip_bits, set_byte,     set_number,   set_number,
                                           truncate,  remove_chunk, repeat_chunk, swap_chunks,
                                           splice,    insert_token, insert_token};

}  // namespace

uint64_t Random::next() { return splitmix64(state_++); }

void mutate(std::string& file, Region region, const std::string& other,
            std::span<const std::string> tokens, Random& random) {
  region.end = std::min(region.end, file.size());
  if (region.begin >= region.end) region = {0, file.size()};
  if (file.empty()) return;
  Target target{file, region, other, tokens, random};
  kMutations[random.below(std::size(kMutations))](target);
}

}  // namespace adjoin::fuzz
