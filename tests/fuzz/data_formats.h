#pragma once

// What the rows of data sets are made of: idx, CIFAR-10's binary version, tar.

#include "fuzz/formats.h"

namespace adjoin::fuzz {

std::vector<std::string> idx_cores();
std::string wrap_idx(const std::string& core);
std::vector<std::string> idx_tokens();
io::TensorFile read_idx_file(io::FileBytes file);

std::vector<std::string> cifar_cores();
std::string wrap_cifar(const std::string& core);
std::vector<std::string> cifar_tokens();
io::TensorFile read_cifar_file(io::FileBytes file);

std::vector<std::string> tar_cores();
std::string wrap_tar(const std::string& core);
std::vector<std::string> tar_tokens();
void repair_tar(std::string& file);
io::TensorFile read_tar_file(io::FileBytes file);

}  // namespace adjoin::fuzz
