#pragma once

// Work that is done ahead of its use. A job is many small tasks: threads take the tasks in order,
// whoever is free the next one, and the caller takes out whole jobs in the order it gave them.
// Knows neither images nor LibTorch, so that the thread sanitizer sees all of it.
//
//   Prefetcher ahead(2);
//   ahead.push(64, [](int64_t task) { .. });
//   ahead.pop();  // all 64 are done

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace adjoin::data {

/// One thread, the owner's, calls its functions. How far ahead the work goes is for the owner to
/// say: by how many jobs it pushes before it takes one out.
class Prefetcher {
 public:
  /// threads 0: pop() does the work itself.
  explicit Prefetcher(int64_t threads);

  /// Begins no more tasks, waits for those under way.
  ~Prefetcher();

  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// run(0) to run(tasks - 1), each once, in any order and from any thread.
  void push(int64_t tasks, std::function<void(int64_t task)> run);

  /// Waits for the oldest job and takes it out. Throws what its first task to fail threw: first by
  /// number, so that it is the same one with any number of threads.
  void pop();

  /// Drops all jobs. No task runs when it returns.
  void clear();

  /// Jobs pushed and not yet taken out.
  int64_t size() const;

 private:
  struct Job;

  void work();
  void stop();
  Job* open_job();
  static void run_task(Job& job, int64_t task, std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable work_;  // a task is there to be taken, or it is time to stop
  std::condition_variable done_;  // a job is done, or no task runs any more
  std::deque<std::unique_ptr<Job>> jobs_;
  int64_t running_ = 0;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace adjoin::data
