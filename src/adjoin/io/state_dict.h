#pragma once

// Which dictionary of a checkpoint is the state_dict, and its tensors checked against the storages
// they lie in.

#include <span>
#include <string_view>

#include "adjoin/io/pickle.h"
#include "adjoin/io/tensor_file.h"

namespace adjoin::io {

/// Where the storages of a file lie, by their key.
class StorageSource {
 public:
  virtual ~StorageSource() = default;

  /// All bytes of a storage, known to be undamaged. Error(kData) when there is none of this key.
  virtual std::span<const std::byte> bytes_of(std::string_view key) = 0;
};

/// Fills in `result.tensors` and `result.not_tensors` from the value a checkpoint's pickle has.
void take_state_dict(const PickleValue& checkpoint, StorageSource& storages, MemoryBudget& budget,
                     TensorFile& result);

}  // namespace adjoin::io
