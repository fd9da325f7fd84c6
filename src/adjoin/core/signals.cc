#include "adjoin/core/signals.h"

#include <atomic>
#include <ctime>

namespace adjoin {
namespace {

constexpr time_t kSecondThoughts = 3;  // seconds

// A signal handler can reach nothing else.
std::atomic<int> received_signal = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<time_t> received_at = 0;   // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

extern "C" void take_note(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (received_signal == 0) {
    received_at = now.tv_sec;
    received_signal = signal;
  } else if (now.tv_sec - received_at >= kSecondThoughts) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
}

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  struct sigaction action {};
  action.sa_handler = take_note;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &previous_int_);
  sigaction(SIGTERM, &action, &previous_term_);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &previous_int_, nullptr);
  sigaction(SIGTERM, &previous_term_, nullptr);
}

int StopSignal::received() const { return received_signal; }

}  // namespace adjoin
