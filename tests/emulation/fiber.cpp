#include "emulation/fiber.h"

#include <cstdint>
#include <stdexcept>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GRAPHRUN_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define GRAPHRUN_ASAN 1
#endif
#if defined(GRAPHRUN_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace graphrun::emulation {
namespace {

#if defined(GRAPHRUN_ASAN)
constexpr std::size_t kStack = 128 << 10;  // smaller, because each switch clears its shadow memory
void leave_stack(void** fake, const void* to, std::size_t size) {
  __sanitizer_start_switch_fiber(fake, to, size);
}
void enter_stack(void* fake, const void** from, std::size_t* size) {
  __sanitizer_finish_switch_fiber(fake, from, size);
}
#else
constexpr std::size_t kStack = 64 << 10;
void leave_stack(void**, const void*, std::size_t) {}
void enter_stack(void*, const void**, std::size_t*) {}
#endif

// Switching contexts queries the signal mask from the system, which takes twenty times as long as a jump; the address
// sanitizer only supports the former. The jumps are compiler builtins: sanitizers and _FORTIFY_SOURCE intercept longjmp
// of the library, and assume one stack.
#if defined(GRAPHRUN_ASAN)
constexpr bool kJumps = false;
#else
constexpr bool kJumps = true;
#endif

constexpr std::uint64_t kEndOfStack = 0x5eed5eed5eed5eed;

}  // namespace

Fiber::Fiber(std::function<void()> function)
    : function_(std::move(function)), stack_(std::make_unique_for_overwrite<std::byte[]>(kStack)) {
  *reinterpret_cast<std::uint64_t*>(stack_.get()) = kEndOfStack;
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStack;
  inside_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self),
              static_cast<unsigned>(self >> 32));
}

void Fiber::resume() {
  leave_stack(&outside_fake_, stack_.get(), kStack);
  if (kJumps) {
    if (__builtin_setjmp(outside_jump_) == 0) jump_in();
  } else {
    swapcontext(&outside_, &inside_);
  }
  enter_stack(outside_fake_, nullptr, nullptr);
  if (returned_) check_stack();
}

// Separate functions, because a jump must not be in the same function as its target.
void Fiber::jump_in() {
  if (started_) __builtin_longjmp(inside_jump_, 1);
  started_ = true;
  setcontext(&inside_);
}

void Fiber::jump_out() {
  __builtin_longjmp(outside_jump_, 1);
}

void Fiber::suspend() {
  leave_stack(returned_ ? nullptr : &inside_fake_, outside_stack_, outside_size_);
  if (!kJumps) {
    swapcontext(&inside_, &outside_);
  } else if (__builtin_setjmp(inside_jump_) == 0) {
    jump_out();
  }
  enter_stack(inside_fake_, &outside_stack_, &outside_size_);
}

void Fiber::enter(unsigned low, unsigned high) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): makecontext() passes ints only
  reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32 | low)->run();
}

void Fiber::run() {
  enter_stack(nullptr, &outside_stack_, &outside_size_);
  function_();
  returned_ = true;
  suspend();
}

void Fiber::check_stack() const {
  if (*reinterpret_cast<const std::uint64_t*>(stack_.get()) != kEndOfStack)
    throw std::logic_error("the stack of a fiber is too small");
}

}  // namespace graphrun::emulation
