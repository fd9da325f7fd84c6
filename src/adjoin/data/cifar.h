#pragma once

// The binary version of CIFAR-10: records of a label and 32 x 32 pixels, all red before all green
// before all blue. Format: https://www.cs.toronto.edu/~kriz/cifar.html

#include <string>
#include <vector>

#include "adjoin/data/source.h"

namespace adjoin::data {

/// Appends the records of a file. Error(kData) unless it holds one or more whole ones with labels
/// from 0 to 9.
void read_cifar(const io::FileBytes& file, Pixels& pixels, std::vector<int64_t>& labels);

/// data_batch_1.bin to data_batch_5.bin and test_batch.bin of a folder; batches.meta.txt, where it
/// is there, names the classes.
Source cifar10_source(const std::string& name, const std::string& folder);

}  // namespace adjoin::data
