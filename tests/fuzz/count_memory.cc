#include "fuzz/count_memory.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace adjoin::fuzz {
namespace {

int64_t live = 0;
int64_t peak = 0;

void* allocate(size_t size) {
  void* block = std::malloc(size == 0 ? 1 : size);  // malloc: the sanitizers watch it
  if (block != nullptr) {
    live += static_cast<int64_t>(malloc_usable_size(block));
    peak = std::max(peak, live);
  }
  return block;
}

void release(void* block) {
  if (block != nullptr) live -= static_cast<int64_t>(malloc_usable_size(block));
  std::free(block);
}

void* allocate_or_throw(size_t size) {
  void* block = allocate(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void start_counting() { live = peak = 0; }

int64_t peak_bytes() { return peak; }

}  // namespace adjoin::fuzz

void* operator new(size_t size) { return adjoin::fuzz::allocate_or_throw(size); }
void* operator new[](size_t size) { return adjoin::fuzz::allocate_or_throw(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return adjoin::fuzz::allocate(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return adjoin::fuzz::allocate(size);
}
void operator delete(void* block) noexcept { adjoin::fuzz::release(block); }
void operator delete[](void* block) noexcept { adjoin::fuzz::release(block); }
void operator delete(void* block, size_t) noexcept { adjoin::fuzz::release(block); }
void operator delete[](void* block, size_t) noexcept { adjoin::fuzz::release(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { adjoin::fuzz::release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept {
  adjoin::fuzz::release(block);
}
