// table.h: what became of every (executor, op, sample): printed at the end, so that what was not run is seen.
// Contract: one thread.
#pragma once

#include <string>
#include <string_view>

namespace graphrun::test {

enum class Outcome { run, declined, failed };

void note(std::string_view executor, std::string_view op, Outcome outcome, std::string_view reason = {});
std::string table_text();  // "" when nothing was noted

}  // namespace graphrun::test
