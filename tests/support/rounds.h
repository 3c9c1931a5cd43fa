// rounds.h: how many cases property tests draw, and what runs at night only.
// Contract: the usual number; GRAPHRUN_FUZZ=n draws n mutants or calls, for long runs. Random graphs take ten times as
// long under a sanitizer: a tenth of them there, unless GRAPHRUN_ALL_CASES is set (scripts/test --nightly). Of those
// with step kernels GRAPHRUN_GRAPHS=n draws n and GRAPHRUN_FIRST_GRAPH=n begins with seed n, so that processes can
// share them.
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

// Trainings that take minutes under a sanitizer: they run in builds without one, and at night.
inline bool is_too_slow() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return !all_cases();
#else
  return false;
#endif
}

inline std::uint64_t random_graphs(std::uint64_t usual) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (!all_cases()) return usual / 10;
#endif
  return usual;
}

inline std::uint64_t step_graphs(std::uint64_t usual) {
  const char* wanted = std::getenv("GRAPHRUN_GRAPHS");
  return wanted != nullptr ? static_cast<std::uint64_t>(std::atoi(wanted)) : usual;
}

inline std::uint64_t first_step_graph() {
  const char* wanted = std::getenv("GRAPHRUN_FIRST_GRAPH");
  return wanted != nullptr ? static_cast<std::uint64_t>(std::atoi(wanted)) : 0;
}

}  // namespace graphrun::test
