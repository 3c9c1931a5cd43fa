// fiber.h: a function on its own stack that a scheduler resumes and that suspends itself.
// Contract: one thread; resume() runs the function until it calls suspend() or returns. A fiber that has not returned
// may be destroyed; objects on its stack are not. Leaves to others: scheduling (machine.h).
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace graphrun::emulation {

class Fiber {
 public:
  explicit Fiber(std::function<void()> function);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();
  void suspend();  // called in the fiber
  bool returned() const { return returned_; }

 private:
  static void enter(unsigned low, unsigned high);
  void run();
  [[gnu::noinline]] void jump_in();
  [[gnu::noinline]] void jump_out();
  void check_stack() const;

  std::function<void()> function_;
  std::unique_ptr<std::byte[]> stack_;
  bool started_ = false, returned_ = false;
  ucontext_t inside_{}, outside_{};
  void* inside_jump_[5] = {};  // buffers of the compiler's setjmp
  void* outside_jump_[5] = {};
  // Address sanitizer state of the two stacks.
  void* inside_fake_ = nullptr;
  void* outside_fake_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace graphrun::emulation
