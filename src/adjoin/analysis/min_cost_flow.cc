#include "adjoin/analysis/min_cost_flow.h"

#define LEMON_ONLY_TEMPLATES  // its few compiled parts are not needed
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <algorithm>

#include "adjoin/core/error.h"

namespace adjoin::analysis {
namespace {

using Graph = lemon::SmartDigraph;
using Simplex = lemon::NetworkSimplex<Graph, int64_t, int64_t>;

/// Costs as LEMON copies them, made when it asks: one table of them less in memory.
struct CostMap {
  int64_t operator[](const Graph::Arc& arc) const {
    const int64_t id = Graph::id(arc);
    return cost(id / sinks, id % sinks);
  }

  const UnitCost& cost;
  int64_t sinks;
};

struct SupplyMap {
  int64_t operator[](const Graph::Node& node) const {
    const auto id = static_cast<size_t>(Graph::id(node));
    return id < supplies.size() ? supplies[id] : -demands[id - supplies.size()];
  }

  const std::vector<int64_t>& supplies;
  const std::vector<int64_t>& demands;
};

/// Nodes are the sources, then the sinks; arc i * sinks + j leads from source i to sink j.
void build(Graph& graph, int sources, int sinks) {
  graph.reserveNode(sources + sinks);
  graph.reserveArc(sources * sinks);
  for (int i = 0; i < sources + sinks; ++i) graph.addNode();
  for (int i = 0; i < sources; ++i) {
    for (int j = 0; j < sinks; ++j) {
      graph.addArc(Graph::nodeFromId(i), Graph::nodeFromId(sources + j));
    }
  }
}

}  // namespace

int64_t largest_unit_cost(int64_t sources, int64_t sinks) {
  // LEMON's potentials are 0 or 2^62 plus the costs along a path of the tree. Signs alternate
  // there, so it adds up to at most this many costs; a fourth of 2^62 keeps every sum in 64 bits.
  const int64_t most_on_a_path = std::min(sources, sinks) + 1;
  return (int64_t{1} << 60) / most_on_a_path;
}

Flow cheapest_flow(const std::vector<int64_t>& supplies, const std::vector<int64_t>& demands,
                   const UnitCost& cost) {
  const auto sources = static_cast<int>(supplies.size());
  const auto sinks = static_cast<int>(demands.size());
  Graph graph;
  build(graph, sources, sinks);
  Simplex simplex(graph);
  simplex.costMap(CostMap{cost, sinks}).supplyMap(SupplyMap{supplies, demands});
  if (simplex.run() != Simplex::OPTIMAL) {
    throw Error(ErrorKind::kInternal, "the network simplex found no plan where there is one");
  }
  Flow flow;
  for (int i = 0; i < sources; ++i) {
    for (int j = 0; j < sinks; ++j) {
      const int64_t amount = simplex.flow(Graph::arcFromId(i * sinks + j));
      if (amount != 0) flow.arcs.push_back({i, j, amount});
    }
  }
  // LEMON's potentials: cost + p_source - p_sink >= 0.
  for (int i = 0; i < sources; ++i) flow.u.push_back(-simplex.potential(Graph::nodeFromId(i)));
  for (int j = 0; j < sinks; ++j) {
    flow.v.push_back(simplex.potential(Graph::nodeFromId(sources + j)));
  }
  return flow;
}

}  // namespace adjoin::analysis
