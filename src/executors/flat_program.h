// flat_program.h: a Program, or a single step before there is one, as the plain arrays of executor_plugin_c.h.
// Contract: pointers of get() are valid as long as the object, which cannot be copied. Only for Programs of plain
// steps: no regions, and all buffers in Layout::rows.
#pragma once

#include <deque>
#include <vector>

#include "graphrun/executor.h"
#include "graphrun/executor_plugin_c.h"
#include "graphrun/program.h"

namespace graphrun {

class FlatSignature {
 public:
  explicit FlatSignature(const StepSignature& step);
  FlatSignature(const FlatSignature&) = delete;
  FlatSignature& operator=(const FlatSignature&) = delete;
  const gr_signature& get() const { return flat_; }

 private:
  Params params_;
  std::vector<gr_tensor_type> inputs_;
  gr_tensor_type output_;
  std::vector<gr_attribute> attributes_;
  gr_signature flat_{};
};

class FlatProgram {
 public:
  explicit FlatProgram(const Program& program);
  FlatProgram(const FlatProgram&) = delete;
  FlatProgram& operator=(const FlatProgram&) = delete;
  const gr_program& get() const { return flat_; }

 private:
  Program program_;                    // owns the texts and operands that pointers refer to
  std::vector<gr_tensor_type> types_;  // types of buffers
  std::vector<gr_buffer> buffers_;
  std::deque<FlatSignature> signatures_;
  std::vector<std::vector<gr_step>> steps_;  // steps by phase
  std::vector<gr_phase> phases_;
  std::vector<gr_initial> initial_;
  gr_program flat_{};
};

// Inverse, for a step whose op and types were in a FlatSignature. Throws Error for an invalid type.
TensorType type_of(const gr_tensor_type& flat);

template <class T>
gr_array array_of(const std::vector<T>& items) {
  return {items.data(), items.size(), sizeof(T)};
}

}  // namespace graphrun
