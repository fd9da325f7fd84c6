#pragma once

// A wish to stop: SIGINT (Ctrl-C) or SIGTERM, taken note of and acted upon between two steps.

#include <csignal>

namespace adjoin {

/// Thrown when a signal ended what was asked for, and caught where the command ends.
struct Stopped {
  int signal;
};

/// While it lives, the first SIGINT or SIGTERM is kept for whoever asks. Another one ends the
/// program at once if it comes three seconds later: launchers tend to send the same wish twice. One
/// at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal that came, 0 if none.
  int received() const;

 private:
  struct sigaction previous_int_ {};
  struct sigaction previous_term_ {};
};

}  // namespace adjoin
