#pragma once

// How the tensors of a file fit a network: under which names, with what missing, left over or of
// another shape. Nothing is skipped silently: what does not fit is listed by name.

#include <map>
#include <string>
#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/io/tensor_file.h"
#include "adjoin/spec/tensors.h"

namespace adjoin::io {

/// Whose names a file uses. They differ for Swin alone: timm since 0.8.17 has
/// `layers.1.downsample` and `head.fc` where Microsoft's code, and timm before, have
/// `layers.0.downsample` and `head`.
enum class Layout { kTimm, kOfficial };

/// The name of our tensor `name` in a layout.
std::string name_in(Layout layout, const ModelSpec& spec, const std::string& name);

/// A tensor that is there, but not as the network needs it.
struct Misfit {
  TensorInfo wanted;
  StoredTensor stored;
};

struct Fit {
  Layout layout = Layout::kTimm;
  std::map<std::string, std::string> names;          ///< our names -> those of the file's layout
  std::map<std::string, const StoredTensor*> found;  ///< under our names, fitting; into the file
  std::vector<TensorInfo> missing;
  std::vector<Misfit> misfits;
  std::vector<std::string> unexpected;
  std::vector<std::string> buffers;  ///< what Swin's code computes anew: indices and masks

  bool is_exact() const { return missing.empty() && misfits.empty() && unexpected.empty(); }
};

Fit fit(const ModelSpec& spec, const TensorFile& file);

/// "2 tensors are missing (blocks.0-1.norm1.weight); 1 is unexpected (aux.bias)": every name.
std::string describe(const Fit& fit);

/// Error(kData) that lists everything unless the fit is exact.
void check_fit(const Fit& fit, const ModelSpec& spec, const std::string& origin);

/// A position embedding or relative position bias table of another grid: it can be interpolated.
/// `from` and `to` are entries per side, `prefix` the class tokens before the grid.
struct Resize {
  int64_t prefix = 0;
  int64_t from = 0;
  int64_t to = 0;
};
std::optional<Resize> as_resize(const ModelSpec& spec, const Misfit& misfit);

/// Whether the tensor belongs to a classifier head.
bool is_head(const std::string& name);

/// Whether the tensor is one that blocks have or not, by the kind of their mixer, their norms and
/// their shortcut.
bool is_of_kind(const std::string& name);

/// Names with those of several blocks written as one: "blocks.0-11.norm1.weight".
std::vector<std::string> gathered(const std::vector<std::string>& names);

/// Whether a name of the file opens with `prefix`.
bool has_prefix(const TensorFile& file, std::string_view prefix);

/// Side of a square of `count` entries; nothing when it is none.
std::optional<int64_t> side_of(int64_t count);

}  // namespace adjoin::io

namespace adjoin {

template <>
inline constexpr auto kEnumNames<io::Layout> = std::to_array<EnumName<io::Layout>>(
    {{"timm", io::Layout::kTimm}, {"official", io::Layout::kOfficial}});

}  // namespace adjoin
