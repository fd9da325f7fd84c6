#pragma once

// How the program uses the cores it was given.

#include <cstdint>

namespace adjoin {

/// CPUs this process may run on (its affinity mask), at least 1.
int available_cpus();

/// How many threads to compute with: OMP_NUM_THREADS when it is a positive number, else all
/// available CPUs.
int default_threads();

/// Tells OpenMP to let waiting threads sleep instead of spinning, unless the user chose a policy:
/// beside other work on the same cores spinning makes a forward pass many times slower. The OpenMP
/// runtime reads this when it is loaded, so call it before that: first thing in `main` of a program
/// that loads LibTorch later.
void let_waiting_threads_sleep();

/// Keeps freed memory in the process instead of handing it back after every tensor, so that the
/// next tensor does not fault its pages in again.
void keep_freed_memory();

}  // namespace adjoin
