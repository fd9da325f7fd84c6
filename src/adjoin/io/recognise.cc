#include "adjoin/io/recognise.h"

#include "adjoin/io/layout.h"
#include "adjoin/spec/catalog.h"

namespace adjoin::io {
namespace {

/// Size of one axis of a tensor of the file, if it is there and the size is one a spec can have.
std::optional<int64_t> size_in(const TensorFile& file, const std::string& name, size_t axis,
                               int64_t most) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end() || found->second.shape.size() <= axis) return std::nullopt;
  const int64_t size = found->second.shape[axis];
  return size >= 1 && size <= most ? std::optional(size) : std::nullopt;
}

/// Which alternative of ModelSpec::family the names belong to.
std::optional<std::string_view> family_of(const TensorFile& file) {
  if (has_prefix(file, "tokens_to_token.")) return "t2t";
  if (has_prefix(file, "layers.0.blocks.") || has_prefix(file, "layers.1.blocks.")) return "swin";
  if (has_prefix(file, "blocks.0.attn.qkv.") && has_prefix(file, "patch_embed.proj.")) return "vit";
  return std::nullopt;
}

/// The named model with the classes, channels and image size that the shapes of the file say.
ModelSpec adapted(ModelSpec spec, const TensorFile& file) {
  for (const char* head : {"head.fc.weight", "head.weight"}) {
    if (const auto classes = size_in(file, head, 0, 1'000'000)) spec.num_classes = *classes;
  }
  if (const auto channels = size_in(file, "patch_embed.proj.weight", 1, 1024)) {
    spec.in_chans = *channels;
  }
  if (const auto* vit = std::get_if<VitSpec>(&spec.family)) {
    const auto tokens = size_in(file, "pos_embed", 1, kMostTokens);
    const auto grid = side_of(tokens.value_or(0) - (vit->distilled ? 2 : 1));
    if (grid && *grid * vit->patch_size <= 8192) spec.img_size = *grid * vit->patch_size;
  }
  return spec;
}

}  // namespace

Recognised recognise(const TensorFile& file) {
  const auto family = family_of(file);
  if (!family) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : file.tensors) {
      if (names.size() < 6) names.push_back(name);
    }
    throw Error(ErrorKind::kData,
                fmt::format("{}: its tensors ({}{}) are those of no family we know; ViT, DeiT, T2T-"
                            "ViT and Swin are",
                            file.file.origin, join(names),
                            file.tensors.size() > names.size() ? ", .." : ""));
  }
  std::optional<Recognised> result;
  size_t least_wrong = 13;  // more is no likeness
  std::string nearest;
  for (const std::string& name : catalog_names()) {
    ModelSpec spec = catalog_spec(name);
    if (family_name(spec) != *family) continue;
    spec = adapted(std::move(spec), file);
    const Fit found = fit(spec, file);
    if (!found.is_exact()) {
      const size_t wrong = found.missing.size() + found.misfits.size() + found.unexpected.size();
      if (wrong < least_wrong) {
        least_wrong = wrong;
        nearest = fmt::format("; nearest is {}, but {}", name, describe(found));
      }
      continue;
    }
    if (result) {
      result->others.push_back(name);
    } else {
      result = Recognised{std::move(spec), {}};
    }
  }
  if (!result) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: is of family {}, but no model of the catalog has its tensors; say "
                            "which it is with --model and --set{}",
                            file.file.origin, *family, nearest));
  }
  return *result;
}

}  // namespace adjoin::io
