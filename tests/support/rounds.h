// rounds.h: how many cases property tests draw, and what runs at night only.
// Contract: the usual number; GRAPHRUN_FUZZ=n draws n mutants or calls, for long runs. Random graphs take ten times as
// long under a sanitizer: a tenth of them there, unless GRAPHRUN_ALL_CASES is set (scripts/test --nightly).
#pragma once

#include <cstdint>
#include <cstdlib>

namespace graphrun::test {

inline int rounds(int usual) {
  const char* wanted = std::getenv("GRAPHRUN_FUZZ");
  return wanted != nullptr ? std::atoi(wanted) : usual;
}

// Whether the cases that take long are asked for, too.
inline bool all_cases() {
  return std::getenv("GRAPHRUN_ALL_CASES") != nullptr;
}

inline std::uint64_t random_graphs(std::uint64_t usual) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (!all_cases()) return usual / 10;
#endif
  return usual;
}

}  // namespace graphrun::test
