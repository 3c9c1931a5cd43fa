#include "support/allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {
std::atomic<std::uint64_t> count{0};
void counted() {
  count.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

#ifdef GRAPHRUN_SANITIZED

// Declared in sanitizer/allocator_interface.h, which not every compiler package includes.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                                         void (*on_free)(const volatile void*));

namespace {
const int installed = __sanitizer_install_malloc_and_free_hooks([](const volatile void*, std::size_t) { counted(); },
                                                                [](const volatile void*) {});
}  // namespace

std::uint64_t graphrun::test::allocations() {
  (void)installed;
  return count.load(std::memory_order_relaxed);
}

#else

// The C library's own entry points: its documented way to wrap malloc. free() is unchanged, since these functions
// return its pointers. Visible to the libraries, whose calls are counted, with clang too.
#pragma GCC visibility push(default)
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t number, std::size_t size);
void* __libc_realloc(void* pointer, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) noexcept {
  counted();
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) noexcept {
  counted();
  return __libc_calloc(number, size);
}
void* realloc(void* pointer, std::size_t size) noexcept {
  counted();
  return __libc_realloc(pointer, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  counted();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  counted();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** pointer, std::size_t alignment, std::size_t size) noexcept {
  counted();
  *pointer = __libc_memalign(alignment, size);
  return *pointer == nullptr && size != 0 ? ENOMEM : 0;
}
}
#pragma GCC visibility pop

std::uint64_t graphrun::test::allocations() {
  return count.load(std::memory_order_relaxed);
}

#endif
