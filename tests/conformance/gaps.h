// gaps.h: known gaps of executors: every sample rejected by supports() must be covered by an entry here.
// Contract: a short list with reasons; an entry that no sample needs fails values_test.cpp.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "graphrun/types.h"

namespace graphrun::test {

struct Gap {
  std::string_view executor;
  std::vector<std::string_view> ops;  // empty: all
  std::vector<DType> dtypes;          // see dtype_of() in values_test.cpp; empty: all
  std::string_view reason;

  bool covers(std::string_view executor_name, std::string_view op, DType dtype) const {
    const auto has = [](const auto& list, const auto& item) {
      return list.empty() || std::find(list.begin(), list.end(), item) != list.end();
    };
    return executor == executor_name && has(ops, op) && has(dtypes, dtype);
  }
};

inline const std::vector<Gap>& gaps() {
  static const std::vector<Gap> list = {
      {"cuda", {"solve_spd"}, {}, "only levenberg_marquardt uses it, which needs ref or cpu"},
      {"cuda", {}, {DType::f64}, "f32 is the dtype of the fast executors; ref computes in double"},
  };
  return list;
}

}  // namespace graphrun::test
