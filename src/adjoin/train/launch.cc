#include "adjoin/train/launch.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "adjoin/core/error.h"
#include "adjoin/core/hash.h"
#include "adjoin/core/text.h"

namespace adjoin::train {
namespace {

constexpr int kMostProcesses = 1 << 20;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kUsage, message); }

/// The variables, with numbers checked. A variable that is set to nothing counts as not set.
class Variables {
 public:
  explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> find(const char* name) const {
    const char* value = lookup_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }

  bool has(const char* name) const { return find(name).has_value(); }

  std::string at(const char* name, const char* beside) const {
    const auto value = find(name);
    if (!value) refuse(std::string(beside) + " is set but " + name + " is not: set both or none");
    return *value;
  }

  int number(const char* name, const char* beside, int least, int most) const {
    const std::string text = at(name, beside);
    int value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size() || value < least ||
        value > most) {
      refuse(std::string(name) + ": " + in_quotes(text) + " must be a whole number from " +
             std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }

 private:
  const Lookup& lookup_;
};

/// What one starter calls rank, size and rank on the machine.
struct Names {
  const char* rank;
  const char* size;
  const char* local_rank;
};

Launch place_of(const Variables& variables, const Names& names) {
  Launch launch;
  launch.size = variables.number(names.size, names.rank, 1, kMostProcesses);
  launch.rank = variables.number(names.rank, names.size, 0, kMostProcesses);
  if (launch.rank >= launch.size) {
    refuse(std::string(names.rank) + " " + std::to_string(launch.rank) + " must be less than " +
           names.size + " " + std::to_string(launch.size));
  }
  if (variables.has(names.local_rank)) {
    launch.local_rank = variables.number(names.local_rank, names.rank, 0, launch.size - 1);
  }
  return launch;
}

/// A port that follows from the job's name. Below those that systems hand out by themselves (from
/// 32768 on Linux), above those of well-known services.
int port_of(const std::string& job) {
  constexpr uint64_t kFirst = 20000;
  constexpr uint64_t kCount = 12000;
  return static_cast<int>(kFirst + splitmix64(fnv1a(job)) % kCount);
}

/// MASTER_ADDR and MASTER_PORT where they are set.
void apply_master(const Variables& variables, Launch& launch) {
  if (const auto address = variables.find("MASTER_ADDR")) launch.address = *address;
  if (variables.has("MASTER_PORT")) {
    launch.port = variables.number("MASTER_PORT", "MASTER_ADDR", 1, 65535);
  }
}

Launch from_torchrun(const Variables& variables) {
  Launch launch = place_of(variables, {"RANK", "WORLD_SIZE", "LOCAL_RANK"});
  if (launch.size == 1) return launch;
  launch.address = variables.at("MASTER_ADDR", "RANK");
  launch.port = variables.number("MASTER_PORT", "RANK", 1, 65535);
  if (!variables.has("LOCAL_RANK")) {
    if (!is_loopback(launch.address)) variables.at("LOCAL_RANK", "RANK");
    launch.local_rank = launch.rank;
  }
  if (const auto run = variables.find("TORCHELASTIC_RUN_ID")) {
    launch.job = *run + "/" + variables.find("TORCHELASTIC_RESTART_COUNT").value_or("0");
    launch.is_served = variables.find("TORCHELASTIC_USE_AGENT_STORE") == "True";
    return launch;
  }
  // Set by hand before mpirun, RANK would be the same in all processes. torchrun itself may be
  // what mpirun started, and then its RANK is another thing.
  const auto other = variables.find("OMPI_COMM_WORLD_RANK");
  if (other && *other != std::to_string(launch.rank) &&
      variables.find("OMPI_COMM_WORLD_SIZE") == std::to_string(launch.size)) {
    refuse("RANK " + std::to_string(launch.rank) + " contradicts OMPI_COMM_WORLD_RANK " + *other +
           ": leave out RANK and WORLD_SIZE under mpirun");
  }
  return launch;
}

/// The first IPv4 address of mpirun's own, "1513422848.0;tcp://10.0.0.7,192.168.1.7:53183;..".
std::string head_node(const std::string& uri) {
  constexpr std::string_view kScheme = "tcp://";
  const size_t start = uri.find(kScheme);
  if (start == std::string::npos) return {};
  const size_t from = start + kScheme.size();
  const std::string host = uri.substr(from, uri.find_first_of(",:;", from) - from);
  return is_loopback(host) ? std::string() : host;
}

Launch from_open_mpi(const Variables& variables) {
  const Names names = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                       "OMPI_COMM_WORLD_LOCAL_RANK"};
  Launch launch = place_of(variables, names);
  if (launch.size == 1) return launch;
  variables.at(names.local_rank, names.rank);
  const int here = variables.number("OMPI_COMM_WORLD_LOCAL_SIZE", names.rank, 1, launch.size);
  const std::string head = variables.find("OMPI_MCA_orte_hnp_uri").value_or("");
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    if (launch.job.empty()) launch.job = variables.find(name).value_or("");
  }
  if (launch.job.empty()) launch.job = head;
  if (!launch.job.empty()) launch.port = port_of(launch.job);
  launch.address = here == launch.size ? "127.0.0.1" : head_node(head);
  apply_master(variables, launch);
  if (launch.address.empty()) {
    refuse(
        "mpirun started processes on several machines and does not say where process 0 is: "
        "add -x MASTER_ADDR=<its host name>");
  }
  if (launch.port == 0) refuse("mpirun gives its job no name: add -x MASTER_PORT=<a free port>");
  return launch;
}

/// Whether srun started this process. A batch script and the shell of salloc have Slurm variables
/// too, but are alone; some Slurm versions number their step from 0xfffffffa on.
bool is_slurm_task(const Variables& variables) {
  if (!variables.has("SLURM_PROCID")) return false;
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) {
    if (const auto step = variables.find(name)) {
      return !(step->size() == 10 && *step >= "4294967290");
    }
  }
  return variables.has("SLURM_STEP_NODELIST");
}

Launch from_slurm(const Variables& variables) {
  const bool has_step_size = variables.has("SLURM_STEP_NUM_TASKS");
  Launch launch = place_of(
      variables,
      {"SLURM_PROCID", has_step_size ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", "SLURM_LOCALID"});
  if (launch.size == 1) return launch;
  variables.at("SLURM_LOCALID", "SLURM_PROCID");
  const char* list_name =
      variables.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const NodeList nodes = parse_node_list(variables.at(list_name, "SLURM_PROCID"));
  launch.address = nodes.has_more ? nodes.first : "127.0.0.1";
  const std::string step =
      variables.find("SLURM_STEP_ID").value_or(variables.find("SLURM_STEPID").value_or("0"));
  launch.job = variables.at("SLURM_JOB_ID", "SLURM_PROCID") + "." + step;
  launch.port = port_of(launch.job);
  apply_master(variables, launch);
  return launch;
}

}  // namespace

NodeList parse_node_list(std::string_view text) {
  NodeList nodes;
  size_t i = 0;
  while (i < text.size() && text[i] != ',') {
    if (text[i] != '[') {
      nodes.first += text[i++];
      continue;
    }
    const size_t end = text.find(']', i);
    const std::string_view inside =
        end == std::string_view::npos ? std::string_view() : text.substr(i + 1, end - i - 1);
    const std::string_view number = inside.substr(0, inside.find_first_of(",-"));
    if (number.empty()) refuse("the list of machines " + in_quotes(text) + " has a broken bracket");
    nodes.first += number;
    nodes.has_more = nodes.has_more || number.size() < inside.size();
    i = end + 1;
  }
  if (nodes.first.empty()) refuse("the list of machines " + in_quotes(text) + " has no first one");
  nodes.has_more = nodes.has_more || i < text.size();
  return nodes;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address.starts_with("127.") || address == "::1";
}

Launch launch_from(const Lookup& lookup) {
  const Variables variables(lookup);
  if (variables.has("RANK") || variables.has("WORLD_SIZE")) return from_torchrun(variables);
  if (variables.has("OMPI_COMM_WORLD_RANK")) return from_open_mpi(variables);
  if (is_slurm_task(variables)) return from_slurm(variables);
  return {};
}

Launch launch_from_environment() {
  return launch_from([](const char* name) { return std::getenv(name); });
}

}  // namespace adjoin::train
