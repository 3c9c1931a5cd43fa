// rounds.h: number of random cases in property tests, and which tests run at night only.
// Contract: the default number; GRAPHRUN_FUZZ=n sets the number of mutants or calls, for long runs. Tests of results
// rather than memory, such as random graphs, take ten times as long under a sanitizer and run a tenth of the cases
// there. GRAPHRUN_ALL_CASES (scripts/test --nightly) lifts that limit and adds cases to some tests in every build. For
// random graphs and trainings with step kernels, GRAPHRUN_GRAPHS=n sets the count and GRAPHRUN_FIRST_GRAPH=n the first
// seed, so that processes can share them.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "support/sanitized.h"

namespace graphrun::test {

// Returns whether slow cases are requested too.
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

// For trainings that take minutes under a sanitizer: they run in builds without one, and at night.
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
