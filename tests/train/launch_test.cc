// What the variables of torchrun, mpirun and srun say about a process.
#include "adjoin/train/launch.h"

#include <map>

#include "support/expect_error.h"

namespace adjoin::train {
namespace {

using Variables = std::map<std::string, std::string>;

Launch launch_of(const Variables& variables) {
  return launch_from([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

/// Not a template: GCC 12 warns wrongly where it sees through expect_error.
void expect_refusal(std::initializer_list<std::string_view> parts,
                    const std::function<void()>& act) {
  expect_error(ErrorKind::kUsage, parts, act);
}

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"MASTER_ADDR", "n1"},
                             {"MASTER_PORT", "29500"}};

const Variables kMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"PMIX_NAMESPACE", "1513422849"},
                        {"OMPI_MCA_orte_hnp_uri",
                         "1513422848.0;tcp://10.0.0.7,192.168.1.7:53183;tcp6://[fd00::2]:40293"}};

const Variables kSlurm = {{"SLURM_PROCID", "3"},
                          {"SLURM_NTASKS", "4"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_JOB_ID", "4711"},
                          {"SLURM_STEP_NODELIST", "node[03-05,9],b1"},
                          {"SLURM_JOB_NODELIST", "a1,node[03-05,9],b1"}};

TEST(LaunchTest, WithoutVariablesAProcessIsAlone) {
  EXPECT_EQ(launch_of({}).size, 1);
  EXPECT_EQ(launch_of({}).rank, 0);
}

TEST(LaunchTest, TorchrunSaysEverything) {
  const Launch launch = launch_of(kTorchrun);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.address, "n1");
  EXPECT_EQ(launch.port, 29500);
  EXPECT_FALSE(launch.is_served);
}

TEST(LaunchTest, TorchrunsAgentMayServeTheStore) {
  const auto variables = with(kTorchrun, "TORCHELASTIC_RUN_ID", "none");
  EXPECT_FALSE(launch_of(variables).is_served);
  EXPECT_TRUE(launch_of(with(variables, "TORCHELASTIC_USE_AGENT_STORE", "True")).is_served);
  EXPECT_NE(launch_of(variables).job,
            launch_of(with(variables, "TORCHELASTIC_RESTART_COUNT", "1")).job);
}

TEST(LaunchTest, OneProcessNeedsNoAddress) {
  EXPECT_EQ(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).size, 1);
}

TEST(LaunchTest, MpirunOnOneMachineMeetsAtAPortOfItsJob) {
  const Launch launch = launch_of(kMpi);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.address, "127.0.0.1");
  EXPECT_GE(launch.port, 20000);
  EXPECT_LT(launch.port, 32000);
  EXPECT_EQ(launch.port, launch_of(with(kMpi, "OMPI_COMM_WORLD_RANK", "0")).port);
  EXPECT_NE(launch.port, launch_of(with(kMpi, "PMIX_NAMESPACE", "1513422850")).port);
}

TEST(LaunchTest, MpirunOnSeveralMachinesMeetsAtItsHeadNodeOrWhereItIsTold) {
  const auto spread = with(kMpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "2");
  EXPECT_EQ(launch_of(spread).address, "10.0.0.7");
  const auto told = with(with(spread, "MASTER_ADDR", "n7"), "MASTER_PORT", "1234");
  EXPECT_EQ(launch_of(told).address, "n7");
  EXPECT_EQ(launch_of(told).port, 1234);
  expect_refusal({"MASTER_ADDR"}, [&] { launch_of(without(spread, "OMPI_MCA_orte_hnp_uri")); });
}

TEST(LaunchTest, SlurmMeetsOnTheFirstMachineOfTheStep) {
  const Launch launch = launch_of(kSlurm);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.address, "node03");
  EXPECT_NE(launch.port, launch_of(with(kSlurm, "SLURM_JOB_ID", "4712")).port);
  EXPECT_NE(launch.port, launch_of(with(kSlurm, "SLURM_STEP_ID", "1")).port);
  EXPECT_EQ(launch_of(with(kSlurm, "SLURM_STEP_NODELIST", "node7")).address, "127.0.0.1");
}

TEST(LaunchTest, AShellInASlurmJobIsAlone) {
  auto batch = without(without(kSlurm, "SLURM_STEP_ID"), "SLURM_STEP_NODELIST");
  EXPECT_EQ(launch_of(without(batch, "SLURM_PROCID")).size, 1);
  EXPECT_EQ(launch_of(batch).size, 1);
  EXPECT_EQ(launch_of(with(kSlurm, "SLURM_STEP_ID", "4294967290")).size, 1);
}

TEST(LaunchTest, InsideASlurmJobTheNearerStarterCounts) {
  auto both = kSlurm;
  both.insert(kMpi.begin(), kMpi.end());
  EXPECT_EQ(launch_of(both).rank, 1);
  both.insert(kTorchrun.begin(), kTorchrun.end());
  EXPECT_EQ(launch_of(both).rank, 5);
}

TEST(LaunchTest, NodeListsAreReadToTheirFirstMachine) {
  const auto expect = [](const char* text, const char* first, bool has_more) {
    const NodeList nodes = parse_node_list(text);
    EXPECT_EQ(nodes.first, first) << text;
    EXPECT_EQ(nodes.has_more, has_more) << text;
  };
  expect("node[03-05,9],b1", "node03", true);
  expect("b1", "b1", false);
  expect("b1,b2", "b1", true);
  expect("r[2]n[07]-ib", "r2n07-ib", false);
  expect("r[1-2]n[7,8]", "r1n7", true);
  for (const char* broken : {"", ",b1", "node[03-05", "node[]", "node[-5]"}) {
    expect_refusal({"machines"}, [&] { parse_node_list(broken); });
  }
}

TEST(LaunchTest, NumbersAreChecked) {
  for (const char* value : {"x", "-1", "1.5", "8", " 1", "99999999999999999999"}) {
    expect_refusal({"RANK"}, [&] { launch_of(with(kTorchrun, "RANK", value)); });
  }
  for (const char* value : {"0", "70000", "29500x"}) {
    expect_refusal({"MASTER_PORT", value},
                   [&] { launch_of(with(kTorchrun, "MASTER_PORT", value)); });
  }
}

TEST(LaunchTest, WhatIsLeftOutIsNamed) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"}) {
    expect_refusal({name}, [&] { launch_of(without(kTorchrun, name)); });
  }
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
    expect_refusal({name}, [&] { launch_of(without(kMpi, name)); });
  }
  for (const char* name : {"SLURM_LOCALID", "SLURM_JOB_ID"}) {
    expect_refusal({name}, [&] { launch_of(without(kSlurm, name)); });
  }
}

TEST(LaunchTest, ARankSetForAllOfMpirunsProcessesIsRefused) {
  auto both = kMpi;
  both.merge(with(with(Variables(kTorchrun), "RANK", "0"), "WORLD_SIZE", "4"));
  expect_refusal({"RANK 0", "OMPI_COMM_WORLD_RANK 1"}, [&] { launch_of(both); });
}

}  // namespace
}  // namespace adjoin::train
