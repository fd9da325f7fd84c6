#pragma once

// The idx files of MNIST and its followers: a magic number, the sizes, then bytes; packed by gzip
// or not. Format: http://yann.lecun.com/exdb/mnist

#include <string>
#include <vector>

#include "adjoin/data/source.h"

namespace adjoin::data {

/// An array of bytes, row-major.
struct IdxArray {
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

/// The array of a file, which must have `dims` sizes and hold just the bytes they say. Error(kData)
/// when it does not, or a size is 0.
IdxArray read_idx(const io::FileBytes& file, size_t dims);

/// {train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte of a folder, with '.' or '-' before idx,
/// with or without .gz. Classes are the numbers up to the highest label of train.
Source idx_source(const std::string& name, const std::string& folder);

/// Where Debian's dataset-fashion-mnist puts it; Error(kMissingPart) when it is not there.
Source fashion_mnist_source(const std::string& name);

}  // namespace adjoin::data
