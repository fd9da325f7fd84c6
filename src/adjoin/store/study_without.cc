// Where SQLite was not found: a search that needs a study says what is missing.
#include "adjoin/core/error.h"
#include "adjoin/store/study.h"

namespace adjoin::store {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorKind::kMissingPart,
              "a search by --method bayes keeps its study in SQLite, which this program was built "
              "without; install libsqlite3-dev and build again");
}

}  // namespace

struct Study::Connection {};

void check_path(const std::string& /*path*/) {}

void check_available() { refuse(); }

Hold::~Hold() { static_cast<void>(lock_); }

Study::Study(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Study::Study(Study&&) noexcept = default;
Study& Study::operator=(Study&&) noexcept = default;
Study::~Study() = default;

Study Study::open(const std::string& /*path*/, const std::string& /*name*/, const Json& /*about*/,
                  const Options& /*options*/) {
  refuse();
}
bool Study::check(const std::string& /*path*/, const StopSignal* /*stop*/) { refuse(); }
Study Study::read(const std::string& /*path*/) { refuse(); }
Json Study::about() const { refuse(); }
Json Study::fact(const std::string& /*name*/) const { refuse(); }
Json Study::facts() const { refuse(); }
void Study::set_fact(const std::string& /*name*/, const Json& /*value*/) { refuse(); }
std::vector<StoredTrial> Study::trials() const { refuse(); }
Tally Study::tally() const { refuse(); }
bool Study::add(int64_t /*known*/, const std::vector<Proposal>& /*proposals*/) { refuse(); }
std::optional<Hold> Study::try_proposing() { refuse(); }
std::optional<Claim> Study::claim() { refuse(); }
std::vector<int64_t> Study::held() const { refuse(); }
void Study::heed(const StopSignal* /*stop*/) noexcept {}  // there is none
void Study::report(int64_t /*number*/, int64_t /*epoch*/, double /*reward*/,
                   const Json& /*facts*/) {
  refuse();
}
void Study::finish(int64_t /*number*/, TrialState /*state*/, double /*reward*/,
                   const Json& /*facts*/) {
  refuse();
}
void Study::set_facts(int64_t /*number*/, const Json& /*facts*/) { refuse(); }
void Study::set_facts(const std::vector<std::pair<int64_t, Json>>& /*facts*/) { refuse(); }

}  // namespace adjoin::store
