// state_copy.h: snapshot of some states of a loaded program in host memory.
// Contract: only the constructor allocates. take() and put() are exact. Not during run().
// Not here: choice of states and time (trainer.cpp, stopping.h, not_finite.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graphrun/executor.h"

namespace graphrun {

class StateCopy {
 public:
  StateCopy() = default;
  StateCopy(const Program& program, std::vector<BufferId> buffers);

  void take(Runnable& from);
  void put(Runnable& to) const;

  const std::vector<BufferId>& buffers() const { return buffers_; }
  std::span<const std::byte> bytes(std::size_t i) const { return {bytes_.data() + offsets_[i], sizes_[i]}; }
  std::span<std::byte> bytes(std::size_t i) { return {bytes_.data() + offsets_[i], sizes_[i]}; }
  std::uint64_t size() const { return bytes_.size(); }

 private:
  std::vector<BufferId> buffers_;
  std::vector<std::size_t> offsets_, sizes_;
  std::vector<std::byte> bytes_;
};

// States that training changes: parameters and slots, then its counter.
std::vector<BufferId> trained_states(const Program& program, BufferId counter);
std::vector<BufferId> parameters_of(const Program& program);

// Returns whether all parameters are finite; reads them piecewise through `room`.
bool parameters_finite(const Program& program, Runnable& runnable, std::span<std::byte> room);
bool all_finite(std::span<const std::byte> elements, DType dtype = DType::f32);  // or f64

// Training states at the last check that found all parameters finite. Checks are spaced to take less than 1 % of the
// time.
class GoodStates {
 public:
  GoodStates(const Program& program, BufferId counter, Runnable& runnable, std::uint64_t step);

  bool due() const;
  // Returns false if a parameter is not finite; the copy then keeps the previous states.
  bool look(Runnable& runnable, std::uint64_t step);
  void put(Runnable& to) const { states_.put(to); }

  std::uint64_t step() const { return step_; }  // finished training steps at that check
  const StateCopy& states() const { return states_; }

 private:
  const Program& program_;
  StateCopy states_;
  std::vector<std::byte> room_;
  std::uint64_t step_;
  double ended_ = 0, cost_ = 0;  // end and duration of the last check, in seconds
};

}  // namespace graphrun
