// fiber.h: a function on a stack of its own, which a scheduler resumes and which hands back when it likes.
// Contract: one thread; resume() runs the function until it calls suspend() or returns. A fiber that has not returned
// may be destroyed: nothing on its stack is. Leaves to others: which fiber runs when (machine.h).
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
  void suspend();  // in the fiber
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
  void* inside_jump_[5] = {};  // as the compiler's jumps want them
  void* outside_jump_[5] = {};
  // What the address sanitizer knows of the two stacks.
  void* inside_fake_ = nullptr;
  void* outside_fake_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace graphrun::emulation
