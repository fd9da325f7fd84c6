#include "adjoin/core/threads.h"

#include <malloc.h>
#include <sched.h>

#include <cstdlib>

namespace adjoin {

int available_cpus() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  const int count = CPU_COUNT(&mask);
  return count > 0 ? count : 1;
}

int default_threads() {
  const char* given = std::getenv("OMP_NUM_THREADS");
  const int threads = given == nullptr ? 0 : std::atoi(given);
  return threads > 0 ? threads : available_cpus();
}

void let_waiting_threads_sleep() {
  constexpr int kKeepWhatTheUserSet = 0;
  setenv("OMP_WAIT_POLICY", "passive", kKeepWhatTheUserSet);
  setenv("GLOG_minloglevel", "2", kKeepWhatTheUserSet);  // c10's logger greets on start-up
}

void keep_freed_memory() {
  constexpr int kNever = -1;
  constexpr int kStepBytes = 64 << 20;
  mallopt(M_MMAP_MAX, 0);  // a mapping of its own is unmapped when it is freed
  mallopt(M_TRIM_THRESHOLD, kNever);
  mallopt(M_TOP_PAD, kStepBytes);
}

}  // namespace adjoin
