#include "adjoin/spec/shorthands.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "adjoin/spec/catalog.h"

namespace adjoin {
namespace {

std::string_view wanted(const std::string& key) {
  if (key == "drop_path") return "a number from 0 to 0.99";
  if (key == "mlp_ratio") return "a positive number, or a list of them";
  return "a positive integer, or a list of them";
}

std::vector<std::string> divisors(int64_t n) {
  std::vector<std::string> list;
  for (int64_t i = 1; i <= n; ++i) {
    if (n % i == 0) list.push_back(std::to_string(i));
  }
  return list;
}

/// Where a list of values counts from: block `i` of `count`, or stage `i` of `count`.
struct Unit {
  size_t index;
  size_t count;
};

void rewrite_block(BlockSpec& block, int64_t old_dim, int64_t new_dim, const Shorthands& given,
                   Unit unit) {
  const auto heads = given.at("heads", unit.index, unit.count);
  const auto head_dim = given.at("head_dim", unit.index, unit.count);
  const auto mlp_ratio = given.at("mlp_ratio", unit.index, unit.count);
  const bool fills_embed = block.attention_dim() == old_dim;
  if (heads) block.heads = static_cast<int64_t>(*heads);
  if (head_dim) {
    block.head_dim = static_cast<int64_t>(*head_dim);
  } else if (heads || (new_dim != old_dim && fills_embed)) {
    if (new_dim % block.heads != 0) {
      refuse_key("heads",
                 fmt::format("{} does not divide embed_dim {}; legal: {}, or give head_dim",
                             block.heads, new_dim, join(divisors(new_dim))));
    }
    block.head_dim = new_dim / block.heads;
  }
  if (mlp_ratio) {
    block.hidden = std::llround(static_cast<double>(new_dim) * *mlp_ratio);
  } else if (new_dim != old_dim) {
    block.hidden = std::max<int64_t>(1, block.hidden * new_dim / old_dim);
  }
}

template <class Block>
void resize(std::vector<Block>& blocks, std::optional<double> depth) {
  if (!depth) return;
  if (*depth > kMostBlocks)
    refuse_key("depth", fmt::format("is {}, must be 1 to {}", *depth, kMostBlocks));
  if (blocks.empty()) refuse_key("depth", "there is no block to repeat in an empty stage");
  const Block last = blocks.back();
  blocks.resize(static_cast<size_t>(*depth), last);
}

/// ViT and T2T: one list of blocks, values per block.
template <class Family>
void rewrite_family(ModelSpec&, Family& family, const Shorthands& given) {
  if (given.has("depth")) {
    resize(family.blocks, given.at("depth", 0, 1));
    for (size_t i = 0; i < family.blocks.size(); ++i) family.blocks[i].origin = int64_t(i);
  }
  const int64_t old_dim = family.embed_dim;
  if (const auto dim = given.at("embed_dim", 0, 1)) family.embed_dim = static_cast<int64_t>(*dim);
  const size_t count = family.blocks.size();
  for (size_t i = 0; i < count; ++i) {
    rewrite_block(family.blocks[i], old_dim, family.embed_dim, given, {i, count});
  }
}

/// Swin: values per stage; shifts follow the window unless nothing that moves them changed.
void rewrite_family(ModelSpec& spec, SwinSpec& swin, const Shorthands& given) {
  const size_t count = swin.stages.size();
  for (size_t s = 0; s < count; ++s) {
    SwinStage& stage = swin.stages[s];
    resize(stage.blocks, given.at("depth", s, count));
    const int64_t old_dim = stage.embed_dim;
    if (const auto dim = given.at("embed_dim", s, count)) {
      stage.embed_dim = static_cast<int64_t>(*dim) << (given.is_list("embed_dim") ? 0 : s);
    }
    for (SwinBlockSpec& block : stage.blocks) {
      rewrite_block(block, old_dim, stage.embed_dim, given, {s, count});
    }
  }
  if (!given.has("depth")) return;
  int64_t origin = 0;
  for (size_t s = 0; s < count; ++s) {
    for (size_t b = 0; b < swin.stages[s].blocks.size(); ++b) {
      SwinBlockSpec& block = swin.stages[s].blocks[b];
      block.origin = origin++;
      block.shift = b % 2 == 0 ? 0 : odd_block_shift(spec, swin, s);
    }
  }
}

/// Origin of the first block that each stage had before any was removed; nothing where that cannot
/// be told. The catalog knows its own networks; elsewhere a gap between stages hides it.
std::vector<std::optional<int64_t>> stage_starts(const ModelSpec& spec, const SwinSpec& swin) {
  const std::vector<std::string> names = catalog_names();
  if (std::find(names.begin(), names.end(), spec.name) != names.end()) {
    const ModelSpec original = catalog_spec(spec.name);
    const auto* whole = std::get_if<SwinSpec>(&original.family);
    std::vector<std::optional<int64_t>> starts;
    int64_t start = 0;
    bool is_its = whole != nullptr && whole->stages.size() == swin.stages.size();
    for (size_t s = 0; is_its && s < swin.stages.size(); ++s) {
      const auto end = start + static_cast<int64_t>(whole->stages[s].blocks.size());
      for (const auto& block : swin.stages[s].blocks) {
        is_its = is_its && block.origin >= start && block.origin < end;
      }
      starts.emplace_back(std::exchange(start, end));
    }
    if (is_its) return starts;
  }
  std::vector<std::optional<int64_t>> starts = {0};
  for (size_t s = 1; s < swin.stages.size(); ++s) {
    const auto& before = swin.stages[s - 1].blocks;
    const auto& here = swin.stages[s].blocks;
    const bool is_gapless =
        !before.empty() && !here.empty() && before.back().origin + 1 == here.front().origin;
    starts.push_back(is_gapless ? std::optional(here.front().origin) : std::nullopt);
  }
  return starts;
}

/// After a change of window or size: shifted blocks shift by half the new window. Where one window
/// covered the old grid nothing was shifted, so the parity of the place in the stage tells.
void follow_window(const ModelSpec& before, ModelSpec& after) {
  auto* swin = std::get_if<SwinSpec>(&after.family);
  if (swin == nullptr) return;
  const auto& old = std::get<SwinSpec>(before.family);
  if (swin->window == old.window && before.img_size == after.img_size &&
      swin->patch_size == old.patch_size) {
    return;
  }
  const auto starts = stage_starts(after, *swin);
  for (size_t s = 0; s < swin->stages.size(); ++s) {
    const bool could_shift = s < old.stages.size() && odd_block_shift(before, old, s) > 0;
    const int64_t shift = odd_block_shift(after, *swin, s);
    for (SwinBlockSpec& block : swin->stages[s].blocks) {
      if (!could_shift && shift > 0 && !starts[s]) {
        throw Error(ErrorKind::kConfig,
                    fmt::format("model.stages.{}: blocks before it were removed and it never "
                                "shifted, so which of its blocks do in the new size cannot be told",
                                s));
      }
      const bool is_shifted =
          could_shift ? block.shift > 0 : shift > 0 && (block.origin - *starts[s]) % 2 != 0;
      block.shift = is_shifted ? shift : 0;
    }
  }
}

void set_drop_path(ModelSpec& spec, double rate) {
  std::vector<BlockSpec*> blocks;
  for_each_block(spec, [&](BlockSpec& block) { blocks.push_back(&block); });
  const size_t last = std::max<size_t>(blocks.size(), 2) - 1;
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i]->drop_path = rate * static_cast<double>(i) / static_cast<double>(last);
  }
}

}  // namespace

bool is_shorthand(std::string_view key) {
  return std::find(std::begin(kShorthands), std::end(kShorthands), key) != std::end(kShorthands);
}

void refuse_key(std::string_view key, const std::string& reason) {
  throw Error(ErrorKind::kConfig, fmt::format("model.{}: {}", key, reason));
}

void Shorthands::add(const std::string& key, const std::string& text) {
  std::vector<double> numbers;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    double number = 0;
    const char* last = text.data() + end;
    const auto [stop, failure] = std::from_chars(text.data() + begin, last, number);
    const bool is_whole = key == "mlp_ratio" || key == "drop_path" || number == std::floor(number);
    const bool is_legal = key == "drop_path" ? number >= 0 && number <= 0.99 : number > 0;
    if (failure != std::errc() || stop != last || !is_whole || !is_legal || number > 1e6) {
      refuse_key(key, fmt::format("is \"{}\", must be {}", text, wanted(key)));
    }
    numbers.push_back(number);
    begin = end + 1;
  }
  values_[key] = std::move(numbers);
}

std::optional<double> Shorthands::at(const std::string& key, size_t i, size_t count) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  const std::vector<double>& list = found->second;
  if (list.size() != 1 && list.size() != count) {
    refuse_key(key, fmt::format("has {} values, must have {}", list.size(),
                                count == 1 ? "one" : fmt::format("1 or {}", count)));
  }
  return list.size() == 1 ? list[0] : list[i];
}

void apply_shorthands(const Shorthands& given, const ModelSpec& before, ModelSpec& spec) {
  std::visit([&](auto& family) { rewrite_family(spec, family, given); }, spec.family);
  if (!given.has("depth")) follow_window(before, spec);
  if (const auto rate = given.at("drop_path", 0, 1)) set_drop_path(spec, *rate);
}

}  // namespace adjoin
