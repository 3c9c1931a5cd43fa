// steps.h: steps of a Program as statements of C, a line each.
// Contract: a statement computes what the step computes on one sample; "" is a step that nothing has to be done for.
// `problem` is not empty for a step that has no C text: why. Leaves to others: the functions (functions.h).
#pragma once

#include <functional>
#include <string>

#include "export/c/functions.h"
#include "graphrun/program.h"

namespace graphrun::c99 {

struct Statement {
  std::string text, problem;
};

// `place` names the first element of a buffer: a pointer to its type.
Statement statement(const Program& program, const Step& step, const std::function<std::string(BufferId)>& place,
                    Functions& functions);

}  // namespace graphrun::c99
