#include "adjoin/models/golden.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "adjoin/core/error.h"
#include "adjoin/core/hash.h"
#include "adjoin/cost/cost.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/models/slice.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "adjoin/tensor/device.h"

namespace adjoin::models {
namespace {

/// A list of numbers as a --set value: [2, 2, 6] -> "2,2,6".
std::string as_value(const Json& json) {
  if (!json.is_array()) return json.is_string() ? json.get<std::string>() : json.dump();
  std::vector<std::string> parts;
  for (const Json& item : json) parts.push_back(item.dump());
  return join(parts, ",");
}

torch::Tensor tensor_in(const Json& json) {
  if (!json.is_array()) return torch::tensor(json.get<double>(), torch::kFloat64);
  std::vector<torch::Tensor> rows;
  for (const Json& item : json) rows.push_back(tensor_in(item));
  return torch::stack(rows);
}

double largest(const torch::Tensor& difference) {
  return difference.abs().max().to(torch::kFloat64).item<double>();
}

/// `value` (B, N, C) against token0_first8, token0_l2 and l2; norms relative to their size.
double stage_difference(const Json& recorded, const torch::Tensor& value) {
  const auto x = value.detach().to(torch::kCPU, torch::kFloat64);
  const auto token0 = x.select(1, 0);
  const auto norm_error = [](const torch::Tensor& ours, const Json& theirs) {
    const auto wanted = tensor_in(theirs);
    return largest((ours - wanted) / wanted);
  };
  return std::max({largest(token0.narrow(1, 0, 8) - tensor_in(recorded.at("token0_first8"))),
                   norm_error(token0.norm(2, 1), recorded.at("token0_l2")),
                   norm_error(x.flatten(1).norm(2, 1), recorded.at("l2"))});
}

bool counts_equal(const Json& golden, const Cost& counted) {
  const Json& parts = golden.at("macs").at("parts");
  const Macs& m = counted.macs;
  return golden.at("params_total") == counted.params &&
         golden.at("params_trainable") == counted.params_trainable &&
         golden.at("macs").at("with_attention") == m.total() &&
         golden.at("macs").at("without_attention") == m.without_attention() &&
         parts == Json{{"linear", m.linear},
                       {"conv", m.conv},
                       {"attention_qk", m.attention_qk},
                       {"attention_av", m.attention_av},
                       {"performer_features", m.performer_features},
                       {"performer_kv", m.performer_kv},
                       {"performer_q_kv", m.performer_q_kv},
                       {"performer_norm", m.performer_norm}};
}

/// What a golden file of a compressed network kept; "inner" is its word for geometry kept.
Derived golden_part(const ModelSpec& large, const Json& compression) {
  Choice choice = keep_everything(large);
  const Json& blocks = compression.at("blocks");
  for (size_t i = 0; i < choice.blocks.size(); ++i) {
    blocks.at(i).at("heads").get_to(choice.blocks[i].heads);
    blocks.at(i).at("hidden").get_to(choice.blocks[i].hidden);
  }
  const auto kind = compression.at("kind").get<std::string>();
  if (kind != "inner" && kind != "narrow") {
    throw Error(ErrorKind::kData,
                fmt::format("compression.kind: \"{}\" must be inner or narrow", kind));
  }
  return derive(large, choice, kind == "narrow" ? Geometry::kNarrow : Geometry::kKept);
}

GoldenReport run(const Json& golden, torch::Device device, torch::ScalarType dtype) {
  GoldenReport report{golden_spec(golden), {}, {}, false};
  const ModelSpec& spec = report.spec;
  const bool is_bf16 = dtype == torch::kBFloat16;
  const auto stored = is_bf16 ? torch::kFloat32 : dtype;
  Weights weights = golden_weights(spec).to(device, stored);
  if (const auto compression = golden.find("compression"); compression != golden.end()) {
    const Derived small = golden_part(spec, *compression);
    weights = views(small, weights);
    report.spec = small.spec;
    report.part =
        fmt::format("{} alpha {}", compression->at("kind") == "narrow" ? "narrow" : "kept",
                    as_value(compression->at("alphas")));
  }
  const auto shape = golden.at("input").at("shape").get<std::vector<int64_t>>();
  const auto images = golden_uniform("input", shape).to(device, stored);

  std::map<std::string, const Json*> recorded;
  for (const char* group : {"blocks", "stages"}) {
    for (const Json& entry : golden.at(group)) {
      recorded[entry.at("name").get<std::string>()] = &entry;
    }
  }
  std::vector<GoldenRow> stages;
  nn::Context context;
  context.tap = [&](std::string_view name, const torch::Tensor& value) {
    std::string official = official_name(spec, std::string(name) + ".");
    official.pop_back();
    const auto found = recorded.find(official);
    if (found == recorded.end()) return;
    stages.push_back({std::string(name), stage_difference(*found->second, value)});
    recorded.erase(found);
  };
  const torch::NoGradGuard no_grad;
  const Autocast autocast(device, is_bf16);
  const auto logits = forward(spec, weights, images, context).logits();
  if (!recorded.empty()) {
    throw Error(ErrorKind::kNumeric, "the forward pass never reached " + recorded.begin()->first);
  }
  const auto wanted = tensor_in(golden.at("logits"));
  report.rows.push_back({"logits", largest(logits.to(torch::kCPU, torch::kFloat64) - wanted)});
  report.rows.insert(report.rows.end(), stages.begin(), stages.end());
  report.are_counts_equal = counts_equal(golden, cost(spec));
  return report;
}

}  // namespace

torch::Tensor golden_uniform(const std::string& name, at::IntArrayRef shape) {
  auto tensor = torch::empty(shape, torch::kFloat64);
  auto* values = tensor.data_ptr<double>();
  const uint64_t start = fnv1a(name);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const uint64_t bits = splitmix64(start + static_cast<uint64_t>(i)) >> 11;
    values[i] = 2 * std::ldexp(static_cast<double>(bits), -53) - 1;
  }
  return tensor;
}

Weights golden_weights(const ModelSpec& spec) {
  Weights weights;
  for (const TensorInfo& info : tensors(spec)) {
    if (info.init.kind == InitKind::kSinusoid) {
      weights.set(info.name, init_tensor(info, 0).to(torch::kFloat64));
      continue;
    }
    const std::vector<int64_t> shape = info.shape();
    const auto uniform = golden_uniform(official_name(spec, info.name), shape);
    const bool is_small = info.name.ends_with("_token") || info.name == "pos_embed" ||
                          info.name.ends_with("relative_position_bias_table");
    if (info.init.kind == InitKind::kOnes) {
      weights.set(info.name, 1 + 0.1 * uniform);
    } else if (is_small || shape.size() == 1) {
      weights.set(info.name, 0.02 * uniform);
    } else if (info.init.kind == InitKind::kOrthogonal) {
      weights.set(info.name, uniform);
    } else {
      const auto fan_in = static_cast<double>(info.numel() / shape[0]);
      weights.set(info.name, uniform / std::sqrt(fan_in));
    }
  }
  return weights;
}

ModelSpec golden_spec(const Json& golden) {
  static const std::map<std::string, std::string> kBase = {
      {"deit", "deit_tiny_patch16_224"},
      {"vit", "vit_tiny_patch16_224"},
      {"t2t", "t2t_vit_7"},
      {"swin", "swin_tiny_patch4_window7_224"}};
  static const std::map<std::string, std::string> kKeys = {
      {"img_size", "img_size"},   {"patch_size", "patch_size"},
      {"in_chans", "in_chans"},   {"num_classes", "num_classes"},
      {"embed_dim", "embed_dim"}, {"depth", "depth"},
      {"depths", "depth"},        {"num_heads", "heads"},
      {"mlp_ratio", "mlp_ratio"}, {"qkv_bias", "qkv_bias"},
      {"distilled", "distilled"}, {"layernorm_eps", "norm_eps"},
      {"window_size", "window"},  {"tokens_type", "tokens.kind"},
      {"token_dim", "tokens.dim"}};
  const Json& config = golden.at("config");
  ModelSpec base = catalog_spec(kBase.at(golden.at("family").get<std::string>()));
  if (auto* swin = std::get_if<SwinSpec>(&base.family)) {
    swin->stages.resize(config.at("depths").size());
  }
  std::vector<Override> overrides = {{"name", golden.at("model").get<std::string>()}};
  for (const auto& [key, value] : config.items()) {
    const auto known = kKeys.find(key);
    if (known != kKeys.end()) overrides.push_back({known->second, as_value(value)});
  }
  return with_overrides(base, overrides);
}

double GoldenReport::stage_error() const {
  double most = 0;
  for (size_t i = 1; i < rows.size(); ++i) most = std::max(most, rows[i].error);
  return most;
}

GoldenReport verify(const Json& golden, torch::Device device, torch::ScalarType dtype) {
  try {
    return run(golden, device, dtype);
  } catch (const Error& e) {  // whatever does not fit together is the file's fault
    const bool is_choice = e.kind() == ErrorKind::kUsage || e.kind() == ErrorKind::kConfig;
    throw Error(is_choice ? ErrorKind::kData : e.kind(), e.what());
  } catch (const Json::exception&) {
    throw Error(ErrorKind::kData, "is not a golden file: a field is missing or of another type");
  } catch (const std::out_of_range&) {
    throw Error(ErrorKind::kData, "is not a golden file: its family is unknown");
  }
}

}  // namespace adjoin::models
