#include "adjoin/proxy/proxies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "adjoin/core/error.h"
#include "adjoin/core/suggest.h"
#include "adjoin/proxy/dss.h"
#include "adjoin/proxy/fisher.h"
#include "adjoin/proxy/grad_norm.h"
#include "adjoin/proxy/grasp.h"
#include "adjoin/proxy/jacob_cov.h"
#include "adjoin/proxy/naswot.h"
#include "adjoin/proxy/snip.h"
#include "adjoin/proxy/synflow.h"
#include "adjoin/proxy/zico.h"

namespace adjoin::proxy {
namespace {

double params(Probe& probe) { return static_cast<double>(probe.subject().params); }
double macs(Probe& probe) { return static_cast<double>(probe.subject().macs); }

constexpr auto kProxies = std::to_array<Proxy>({
    {"grad_norm", grad_norm, 1, "norm of the gradient of all tensors"},
    {"grad_norm_layers", grad_norm_layers, 1, "sum of the norms of layers' gradients"},
    {"snip", snip, 1, "sum of |value x gradient| over all tensors"},
    {"snip_weights", snip_weights, 1, "the same over layers' weights"},
    {"grasp", grasp, 1, "minus value x Hessian x gradient"},
    {"fisher", fisher, 1, "squares of activation x gradient per channel"},
    {"synflow", synflow, 1, "value x gradient of a positive network"},
    {"synflow_no_norm", synflow_no_norm, 1, "the same without layer norms"},
    {"jacob_cov", jacob_cov, 1, "how unlike the gradients of images are"},
    {"naswot", naswot, 1, "how unlike the active units of images are"},
    {"zico", zico, 2, "mean of gradients by their deviation, over batches"},
    {"dss", dss, 1, "nuclear norms of attention, saliency of the rest"},
    {"params", params, 0, "parameters"},
    {"macs", macs, 0, "multiply-accumulates"},
});

}  // namespace

std::span<const Proxy> proxies() { return kProxies; }

const Proxy& proxy_called(std::string_view name) {
  const auto found = std::find_if(kProxies.begin(), kProxies.end(),
                                  [&](const Proxy& proxy) { return proxy.name == name; });
  if (found != kProxies.end()) return *found;
  std::vector<std::string> names;
  for (const Proxy& proxy : kProxies) names.emplace_back(proxy.name);
  throw Error(ErrorKind::kUsage,
              fmt::format("\"{}\" is no proxy; there are {}", name, join(names)));
}

}  // namespace adjoin::proxy
