// A small Swin from the catalog, made smaller still: what it costs, and one forward pass.
#include <adjoin/cost/cost.h>
#include <adjoin/models/forward.h>
#include <adjoin/models/init.h>
#include <adjoin/spec/catalog.h>
#include <adjoin/spec/overrides.h>

#include <iostream>

int main() {
  const adjoin::ModelSpec spec = adjoin::with_overrides(adjoin::catalog_spec("swin_mini_32"),
                                                        {{"depth", "2,2"}, {"mlp_ratio", "3"}});
  const adjoin::Cost cost = adjoin::cost(spec);
  std::cout << cost.params << " parameters, " << cost.macs.total() << " MACs\n";

  const torch::NoGradGuard no_grad;
  const adjoin::Weights weights = adjoin::models::init(spec, /*seed=*/0);
  const auto images = torch::rand({2, spec.in_chans, spec.img_size, spec.img_size});
  const auto logits = adjoin::models::forward(spec, weights, images).logits();
  std::cout << "logits " << logits.sizes() << '\n';
  return logits.sizes() == torch::IntArrayRef({2, 10}) ? 0 : 1;
}
