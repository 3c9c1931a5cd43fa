// rounds.h: how many cases property tests draw, and what runs at night only.
// Contract: the usual number; GRAPHRUN_FUZZ=n draws n mutants or calls, for long runs. What is about results rather
// than memory, such as random graphs, takes ten times as long under a sanitizer: a tenth of the cases there, unless
// GRAPHRUN_ALL_CASES is set (scripts/test --nightly), with which some tests have more cases in every build. Of random
// graphs and trainings with step kernels GRAPHRUN_GRAPHS=n draws n and GRAPHRUN_FIRST_GRAPH=n begins with seed n, so
// that processes can share them.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "support/sanitized.h"

namespace graphrun::test {

// Whether the cases that take long are asked for, too.
inline bool all_cases() {
  return std::getenv("GRAPHRUN_ALL_CASES") != nullptr;
}

inline int rounds(int usual) {
  const char* wanted = std::getenv("GRAPHRUN_FUZZ");
  return wanted != nullptr ? std::atoi(wanted) : usual;
}

inline int rounds(int usual, int all) {
  return rounds(all_cases() ? all : usual);
}

// Trainings that take minutes under a sanitizer: they run in builds without one, and at night.
inline bool is_too_slow() {
  return kSanitized && !all_cases();
}

inline std::uint64_t cases(std::uint64_t usual) {
  return kSanitized && !all_cases() ? usual / 10 : usual;
}

inline std::uint64_t cases(std::uint64_t usual, std::uint64_t all) {
  return all_cases() ? all : cases(usual);
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
