// gaps.h: what executors are known not to do: an op that supports() declines for some sample must stand here.
// Contract: a small list with a reason for each; an entry that no sample needs any more fails coverage_test.cpp.
#pragma once

#include <string_view>
#include <vector>

namespace graphrun::test {

struct Gap {
  std::string_view executor;
  std::string_view op;
  std::string_view reason;
};

inline const std::vector<Gap>& gaps() {
  static const std::vector<Gap> list = {};
  return list;
}

inline bool is_gap(std::string_view executor, std::string_view op) {
  for (const Gap& gap : gaps()) {
    if (gap.executor == executor && gap.op == op) return true;
  }
  return false;
}

}  // namespace graphrun::test
