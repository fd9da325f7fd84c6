#include "adjoin/io/layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace adjoin::io {
namespace {

bool is_floating(Dtype dtype) {
  return dtype == Dtype::kF16 || dtype == Dtype::kBF16 || dtype == Dtype::kF32 ||
         dtype == Dtype::kF64;
}

/// What Swin's code computes once and stores, in the blocks of this network.
std::set<std::string> buffers_of(const ModelSpec& spec) {
  std::set<std::string> names;
  if (!std::holds_alternative<SwinSpec>(spec.family)) return names;
  for (const PlacedBlock& block : placed_blocks(spec)) {
    names.insert(block.name + ".attn.relative_position_index");
    names.insert(block.name + ".attn_mask");
  }
  return names;
}

/// The first merging of a Swin is called after the stage before it, or after the stage behind it.
Layout layout_of(const ModelSpec& spec, const TensorFile& file) {
  if (!std::holds_alternative<SwinSpec>(spec.family)) return Layout::kTimm;
  const bool is_official = has_prefix(file, "layers.0.downsample.") ||
                           (has_prefix(file, "head.") && !has_prefix(file, "head.fc."));
  return is_official ? Layout::kOfficial : Layout::kTimm;
}

std::string text(const std::vector<int64_t>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

/// "blocks.7.norm1.weight" -> {"blocks.", 7, ".norm1.weight"}: the number of the block.
struct Numbered {
  std::string before, after;
  int64_t number;
};
std::optional<Numbered> numbered(const std::string& name) {
  constexpr std::string_view kBlocks = "blocks.";
  const size_t found = name.find(kBlocks);
  if (found == std::string::npos) return std::nullopt;
  const size_t begin = found + kBlocks.size();
  const size_t end = name.find('.', begin);
  if (end == std::string::npos || end == begin || end - begin > 6 ||
      name.find_first_not_of("0123456789", begin) != end) {
    return std::nullopt;
  }
  return Numbered{name.substr(0, begin), name.substr(end), std::stoll(name.substr(begin))};
}

/// "0-2,5" of 0, 1, 2, 5.
std::string ranges(const std::set<int64_t>& numbers) {
  std::vector<std::string> parts;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int64_t first = *it;
    int64_t last = first;
    while (++it != numbers.end() && *it == last + 1) ++last;
    parts.push_back(first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
  }
  return join(parts, ",");
}

std::string counted(size_t count, std::string_view verdict, const std::vector<std::string>& names) {
  return fmt::format("{} {} {} ({})", count, count == 1 ? "tensor is" : "tensors are", verdict,
                     join(names));
}

}  // namespace

std::optional<int64_t> side_of(int64_t count) {
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(count))));
  return count > 0 && side * side == count ? std::optional(side) : std::nullopt;
}

bool has_prefix(const TensorFile& file, std::string_view prefix) {
  const auto found = file.tensors.lower_bound(prefix);
  return found != file.tensors.end() && found->first.starts_with(prefix);
}

std::string name_in(Layout layout, const ModelSpec& spec, const std::string& name) {
  return layout == Layout::kOfficial ? official_name(spec, name) : name;
}

Fit fit(const ModelSpec& spec, const TensorFile& file) {
  Fit result;
  result.layout = layout_of(spec, file);
  std::set<std::string> wanted;
  for (TensorInfo& info : tensors(spec)) {
    std::string name = name_in(result.layout, spec, info.name);
    const auto found = file.tensors.find(name);
    result.names[info.name] = name;
    wanted.insert(std::move(name));
    if (found == file.tensors.end()) {
      result.missing.push_back(std::move(info));
    } else if (found->second.shape != info.shape() || !is_floating(found->second.dtype)) {
      result.misfits.push_back({std::move(info), found->second});
    } else {
      result.found[info.name] = &found->second;
    }
  }
  const std::set<std::string> buffers = buffers_of(spec);
  for (const auto& [name, tensor] : file.tensors) {
    if (wanted.contains(name)) continue;
    (buffers.contains(name) ? result.buffers : result.unexpected).push_back(name);
  }
  for (const std::string& name : file.not_tensors) {
    result.unexpected.push_back(name + ", which is no tensor");
  }
  return result;
}

std::string describe(const Fit& fit) {
  std::vector<std::string> parts;
  const auto add = [&](const std::vector<std::string>& names, std::string_view verdict) {
    if (!names.empty()) parts.push_back(counted(names.size(), verdict, gathered(names)));
  };
  std::vector<std::string> missing, misfits;
  for (const TensorInfo& info : fit.missing) missing.push_back(fit.names.at(info.name));
  for (const auto& [wanted, stored] : fit.misfits) {
    const std::string& name = fit.names.at(wanted.name);
    misfits.push_back(
        stored.shape == wanted.shape()
            ? fmt::format("{} holds {}, must hold floats", name, dtype_name(stored.dtype))
            : fmt::format("{} is {}, must be {}", name, text(stored.shape), text(wanted.shape())));
  }
  add(missing, "missing");
  add(fit.unexpected, "unexpected");
  if (!misfits.empty())
    parts.push_back(counted(misfits.size(), "of another shape or type", misfits));
  return join(parts, "; ");
}

void check_fit(const Fit& fit, const ModelSpec& spec, const std::string& origin) {
  if (fit.is_exact()) return;
  std::string advice;
  for (const auto& [wanted, stored] : fit.misfits) {
    const bool is_other_count = is_head(wanted.name) && !stored.shape.empty() &&
                                stored.shape[0] != wanted.shape()[0] && stored.shape[0] > 0;
    if (!is_other_count || !advice.empty()) continue;
    advice = fmt::format(
        "; --set model.num_classes={} keeps the file's classes, --reset-head "
        "starts a new head",
        stored.shape[0]);
  }
  const bool is_of_other_kind =
      !fit.missing.empty() && std::all_of(fit.missing.begin(), fit.missing.end(),
                                          [](const TensorInfo& t) { return is_of_kind(t.name); });
  if (is_of_other_kind) {
    advice +=
        "; if another mixer, norm or shortcut is meant, adjoin convert with --set model.mixer, "
        "model.norm or model.shortcut starts what it needs";
  }
  throw Error(ErrorKind::kData,
              fmt::format("{}: does not fit {}: {}{}", origin, spec.name, describe(fit), advice));
}

std::optional<Resize> as_resize(const ModelSpec& spec, const Misfit& misfit) {
  const std::vector<int64_t> wanted = misfit.wanted.shape();
  const std::vector<int64_t>& stored = misfit.stored.shape;
  if (!is_floating(misfit.stored.dtype) || stored.size() != wanted.size()) return std::nullopt;
  Resize resize;
  size_t axis = 0;
  if (misfit.wanted.name == "pos_embed") {
    const auto* vit = std::get_if<VitSpec>(&spec.family);
    resize.prefix = vit != nullptr && vit->distilled ? 2 : 1;
    axis = 1;
    if (stored[0] != 1 || stored[2] != wanted[2]) return std::nullopt;
  } else if (misfit.wanted.name.ends_with(".relative_position_bias_table")) {
    if (stored[1] != wanted[1]) return std::nullopt;
  } else {
    return std::nullopt;
  }
  if (stored[axis] > kMostTokens) return std::nullopt;
  const auto from = side_of(stored[axis] - resize.prefix);
  const auto to = side_of(wanted[axis] - resize.prefix);
  const bool is_table = axis == 0;  // of 2 window - 1 a side
  if (!from || !to || (is_table && *from % 2 == 0)) return std::nullopt;
  resize.from = *from;
  resize.to = *to;
  return resize;
}

std::vector<std::string> gathered(const std::vector<std::string>& names) {
  std::map<std::pair<std::string, std::string>, std::set<int64_t>> blocks;
  for (const std::string& name : names) {
    if (const auto split = numbered(name)) {
      blocks[{split->before, split->after}].insert(split->number);
    }
  }
  std::vector<std::string> result;
  for (const std::string& name : names) {
    const auto split = numbered(name);
    if (!split) {
      result.push_back(name);
    } else if (auto node = blocks.extract({split->before, split->after})) {  // at its first block
      result.push_back(split->before + ranges(node.mapped()) + split->after);
    }
  }
  return result;
}

bool is_of_kind(const std::string& name) {
  constexpr std::string_view kParts[] = {
      ".norm3.",         ".attn.qv.",       ".attn_shortcut.",
      ".mlp_shortcut.",  ".attn.proj_k",    ".attn.proj_v",
      ".attn.rotations", ".rel_pos_embed_", ".relative_position_bias_table"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

bool is_head(const std::string& name) {
  return name.starts_with("head.") || name.starts_with("head_dist.");
}

}  // namespace adjoin::io
