#include "conformance/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "conformance/suite.h"
#include "support/graph_run.h"

namespace graphrun::test {
namespace {

struct Counts {
  std::array<int, 3> of{};  // indexed by Outcome
};

std::map<std::string, std::map<std::string, Counts, std::less<>>, std::less<>> counts;  // op, executor
std::map<std::string, std::set<std::string>> declined_ops;                              // "executor: why", ops

std::string cell(const Counts& c) {
  std::string text = fmt::format("{} run", c.of[0]);
  if (c.of[1] > 0) text += fmt::format(", {} declined", c.of[1]);
  if (c.of[2] > 0) text += fmt::format(", {} FAILED", c.of[2]);
  return text;
}

}  // namespace

void note(std::string_view executor, std::string_view op, Outcome outcome, std::string_view reason) {
  ++counts[std::string(op)][std::string(executor)].of[static_cast<std::size_t>(outcome)];
  if (!reason.empty()) declined_ops[fmt::format("{}: {}", executor, reason)].emplace(op);
}

std::string table_text() {
  if (counts.empty()) return {};
  std::set<std::string> names;
  for (const auto& [op, row] : counts) {
    for (const auto& [executor, unused] : row) names.insert(executor);
  }
  std::string text = fmt::format("{:<24}", "op");
  for (const std::string& name : names) text += fmt::format("{:<28}", name);
  text += "\n";
  std::map<std::string, Counts> totals;
  for (auto& [op, row] : counts) {
    text += fmt::format("{:<24}", op);
    for (const std::string& name : names) {
      text += fmt::format("{:<28}", cell(row[name]));
      for (std::size_t i = 0; i < 3; ++i) totals[name].of[i] += row[name].of[i];
    }
    text += "\n";
  }
  text += fmt::format("{:<24}", "all");
  for (const std::string& name : names) text += fmt::format("{:<28}", cell(totals[name]));
  text += "\n";
  for (const auto& [why, ops] : declined_ops) text += fmt::format("declined by {} ({})\n", why, fmt::join(ops, ", "));
  if (is_only_one()) return text;
  for (const auto& [name, why] : executors().missing) text += fmt::format("not run on {}: {}\n", name, why);
  return text;
}

}  // namespace graphrun::test
