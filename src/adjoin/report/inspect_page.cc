#include "adjoin/report/inspect_page.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "adjoin/report/curves.h"
#include "adjoin/report/html_parts.h"
#include "adjoin/report/inspect_attention.h"
#include "adjoin/report/inspect_laws.h"
#include "adjoin/report/inspect_layers.h"
#include "adjoin/report/inspect_paths.h"
#include "adjoin/report/json_parts.h"
#include "adjoin/report/page.h"

namespace adjoin::report {
namespace {

std::string model_of(const Json& result) {
  const std::string name = text_at(result, "model");
  return name.empty() ? "a network" : name;
}

/// "large" of runs/a/large.safetensors; without a file the name of the model.
std::string name_of(const Json& result) {
  const std::string file = std::filesystem::path(text_at(result, "file")).stem().string();
  return file.empty() ? model_of(result) : file;
}

std::vector<Inspected> networks_of(const Json& result) {
  std::vector<Inspected> networks = {{name_of(result), list_at(result, "layers")}};
  const Json& second = object_at(result, "second");
  if (second.is_null()) return networks;
  std::string name = name_of(second);
  if (name == networks.front().name) name += " (second)";
  networks.push_back({name, list_at(second, "layers")});
  return networks;
}

/// A network with its model, where its name is another: "large (vit_mini_32)".
std::string with_model(const Json& result, const Inspected& network) {
  const std::string model = text_at(result, "model");
  if (model.empty() || model == name_of(result)) return network.name;
  return fmt::format("{} ({})", network.name, model);
}

/// "16 images of folder:x, float32, seed 0".
std::string conditions(const Json& result) {
  const auto batch = number_at(result, "batch");
  const std::string data = text_at(result, "data");
  const std::string dtype = text_at(result, "dtype");
  const auto seed = number_at(result, "seed");
  std::string text = batch ? fmt::format("With a batch of {}", count_cell(batch)) : "";
  if (!data.empty()) text += (text.empty() ? "With " : ": ") + data;
  if (!dtype.empty()) text += fmt::format("{}{}", text.empty() ? "" : ", ", dtype);
  if (seed) text += fmt::format("{}seed {:.0f}", text.empty() ? "" : ", ", *seed);
  return text;
}

/// A field of the last layer that has it.
std::optional<double> last_of(const Json& layers, const std::string& field) {
  std::optional<double> last;
  for (const Json& layer : layers) {
    if (const auto value = number_at(layer, field)) last = value;
  }
  return last;
}

std::string card(const std::string& colour, const std::string& head, const std::string& value,
                 const std::vector<std::string>& below) {
  std::string text = fmt::format("<div class=\"card {}\"><span>{}</span><b>{}</b>", colour,
                                 escaped(head), escaped(value));
  for (const std::string& line : below) text += "<span>" + escaped(line) + "</span>";
  return text + "</div>";
}

/// A network among others.
std::string network_card(const Json& result, const Inspected& network, size_t index) {
  const auto residual = last_of(network.layers, "residual_frobenius");
  std::vector<std::string> below;
  if (residual) below.emplace_back("residual after the last layer; 0: all tokens alike");
  if (const auto cosine = last_of(network.layers, "token_cosine")) {
    below.push_back(fmt::format("cosine of tokens {}", short_number(*cosine)));
  }
  if (const auto top1 = number_at(result, "top1")) {
    below.push_back(fmt::format("top-1 {:.2f} %", *top1));
  }
  if (const auto loss = number_at(result, "loss")) {
    below.push_back(fmt::format("loss {:.3f}", *loss));
  }
  return card(fmt::format("c{}", index), network.name, residual ? short_number(*residual) : "-",
              below);
}

/// The only network: a card for each of its numbers.
std::string number_cards(const Json& result, const Inspected& network) {
  std::string text;
  const auto add = [&](const char* head, const std::string& value, const char* below) {
    text += card("c0", head, value, {below});
  };
  if (const auto residual = last_of(network.layers, "residual_frobenius")) {
    add("residual", short_number(*residual), "after the last layer; 0: all tokens alike");
  }
  if (const auto cosine = last_of(network.layers, "token_cosine")) {
    add("cosine of tokens", short_number(*cosine), "after the last layer; 1: all alike");
  }
  if (const auto rank = last_of(network.layers, "effective_rank")) {
    add("effective rank", short_number(*rank), "after the last layer");
  }
  if (const auto top1 = number_at(result, "top1")) {
    add("top-1", fmt::format("{:.2f} %", *top1), "of the batch");
  }
  if (const auto loss = number_at(result, "loss")) {
    add("loss", fmt::format("{:.3f}", *loss), "of the batch");
  }
  return text;
}

std::string compare_cards(const Json& compare) {
  std::string text;
  if (const auto agreement = number_at(compare, "agreement")) {
    text += card("", "same answer", fmt::format("{:.2f} %", *agreement), {"of the images"});
  }
  struct Distance {
    const char* field;
    const char* name;
    const char* below;
  };
  for (const Distance& one :
       {Distance{"total_variation", "total variation", "between their probabilities"},
        Distance{"kl", "Kullback-Leibler divergence", "of the second from the first"},
        Distance{"class_emd", "earth mover's distance", "between their classes"}}) {
    const auto value = number_at(compare, one.field);
    if (value) text += card("", one.name, short_number(*value), {one.below});
  }
  return text.empty() ? "" : "<div class=\"cards\">" + text + "</div>";
}

std::string compare_section(const Json& compare) {
  const Json& layers = list_at(compare, "layers");
  Curve distance{.name = "distance"}, relative{.name = "relative"};
  DenseTable table({"first network", "<second network", "earth mover's distance", "relative"});
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string first = text_at(layers[i], "first");
    const std::string second = text_at(layers[i], "second");
    const auto emd = number_at(layers[i], "token_emd");
    const auto share = number_at(layers[i], "token_emd_relative");
    for (auto& [curve, value] : {std::pair(&distance, emd), std::pair(&relative, share)}) {
      curve->points.emplace_back(static_cast<double>(i), value.value_or(NAN));
      curve->titles.push_back(fmt::format("{} and {}: {}", first, second, cell(value)));
    }
    if (layers[i].is_object()) {
      table.add({escaped(first), escaped(second), cell(emd), cell(share)});
    }
  }
  const Axis x{"layer", false, 0, /*is_whole=*/true};
  const std::string charts =
      plot("How far apart their tokens are",
           "The earth mover's distance from the tokens of one network to those of the other after "
           "the same layer: the least work that turns one into the other.",
           curve_chart({distance}, x, axis_for({distance}, "distance of tokens"))) +
      plot("Beside the size of the tokens", "The same distance as a share of the tokens' own size.",
           curve_chart({relative}, x, axis_for({relative}, "relative distance")));
  const std::string text =
      compare_cards(compare) + notes(texts_at(compare, "notes")) + plots(charts) + table.html();
  return text.empty() ? "" : "<h2>The two networks beside each other</h2>" + text;
}

}  // namespace

std::string inspect_page(const Json& result) {
  const std::vector<Inspected> networks = networks_of(result);
  std::string title = "Inside " + with_model(result, networks[0]);
  if (networks.size() > 1) title += " and " + with_model(object_at(result, "second"), networks[1]);
  std::string body = "<h1>" + escaped(title) + "</h1>" + sentence(conditions(result));
  std::string cards = number_cards(result, networks[0]);
  if (networks.size() > 1) {
    cards = network_card(result, networks[0], 0) +
            network_card(object_at(result, "second"), networks[1], 1);
  }
  if (!cards.empty()) body += "<div class=\"cards\">" + cards + "</div>";
  if (networks[0].layers.empty()) body += "<div class=\"problems\"><p>No layer was seen.</p></div>";
  body += layers_section(networks) + attention_section(networks) + first_parts_section(networks);
  body += compare_section(object_at(result, "compare"));
  body += paths_section(object_at(result, "paths")) + depth_section(object_at(result, "depth"));
  body += laws_section(object_at(result, "laws"), networks[0].layers);
  body += layers_table(networks);
  return page(title, body, "Made by adjoin inspect.");
}

}  // namespace adjoin::report
