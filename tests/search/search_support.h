#pragma once

// A small search by trials, as the user would say it.

#include "adjoin/search/config.h"

namespace adjoin::search {

inline SearchConfig config_of(const std::string& model) {
  SearchConfig config;
  config.method = Method::kBayes;
  config.compress.train.model = model;
  config.compress.train.data = "synthetic:1x28x28x10x60";
  config.compress.train.device = "cpu";
  config.compress.train.epochs = 20;
  return config;
}

}  // namespace adjoin::search
