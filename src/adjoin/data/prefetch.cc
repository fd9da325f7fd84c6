#include "adjoin/data/prefetch.h"

#include <utility>

namespace adjoin::data {

struct Prefetcher::Job {
  int64_t tasks;
  std::function<void(int64_t)> run;
  int64_t begun = 0;
  int64_t done = 0;
  int64_t failed = -1;  // the first task, by number, that threw
  std::exception_ptr error;

  bool is_open() const { return begun < tasks; }
  bool is_done() const { return done == tasks; }
};

Prefetcher::Prefetcher(int64_t threads) {
  try {
    for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    stop();  // those that did start
    throw;
  }
}

Prefetcher::~Prefetcher() { stop(); }

void Prefetcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Prefetcher::push(int64_t tasks, std::function<void(int64_t)> run) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::make_unique<Job>(Job{tasks, std::move(run), 0, 0, -1, nullptr}));
  }
  work_.notify_all();
}

void Prefetcher::pop() {
  std::unique_ptr<Job> job;
  {
    std::unique_lock lock(mutex_);
    Job& first = *jobs_.front();
    if (threads_.empty()) {
      while (first.is_open()) run_task(first, first.begun++, lock);
    }
    done_.wait(lock, [&] { return first.is_done(); });
    job = std::move(jobs_.front());
    jobs_.pop_front();
  }
  if (job->error) std::rethrow_exception(std::exchange(job->error, nullptr));
}

void Prefetcher::clear() {
  std::deque<std::unique_ptr<Job>> dropped;  // freed after the lock, in this thread
  std::unique_lock lock(mutex_);
  for (const auto& job : jobs_) job->begun = job->tasks;
  done_.wait(lock, [&] { return running_ == 0; });
  dropped.swap(jobs_);
  lock.unlock();
}

int64_t Prefetcher::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(jobs_.size());
}

Prefetcher::Job* Prefetcher::open_job() {
  for (const auto& job : jobs_) {
    if (job->is_open()) return job.get();
  }
  return nullptr;
}

/// Unlocks while the task runs.
void Prefetcher::run_task(Job& job, int64_t task, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::exception_ptr error;
  try {
    job.run(task);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  ++job.done;
  if (error && (job.failed < 0 || task < job.failed)) {
    job.failed = task;
    job.error = std::move(error);
  }
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Job* job = nullptr;
    work_.wait(lock, [&] { return is_stopping_ || (job = open_job()) != nullptr; });
    if (is_stopping_) return;
    ++running_;
    run_task(*job, job->begun++, lock);
    --running_;
    if (job->is_done() || running_ == 0) done_.notify_one();
  }
}

}  // namespace adjoin::data
