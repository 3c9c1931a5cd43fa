// table.h: outcome of every (executor, op, sample), printed at the end to show what was not run.
// Contract: one thread.
#pragma once

#include <string>
#include <string_view>

namespace graphrun::test {

enum class Outcome { run, declined, failed };

void note(std::string_view executor, std::string_view op, Outcome outcome, std::string_view reason = {});
std::string table_text();  // "" if nothing was noted

}  // namespace graphrun::test
