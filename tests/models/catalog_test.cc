// The laws for every model of the catalog, at full size.
#include "adjoin/spec/catalog.h"

#include "models/laws.h"
#include "support/seeded_test.h"

namespace adjoin::models {
namespace {

class CatalogTest : public SeededTest, public testing::WithParamInterface<std::string> {};

TEST_P(CatalogTest, RunsAsItsTablesSay) { expect_laws(catalog_spec(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Models, CatalogTest, testing::ValuesIn(catalog_names()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace adjoin::models
