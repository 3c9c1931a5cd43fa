// steps.h: converts steps of a Program to C statements, one line each.
// Contract: a statement computes the step for one sample; "" means that the step needs no code. `problem` gives the
// reason if a step has no C implementation. Not handled here: the functions (functions.h).
#pragma once

#include <functional>
#include <string>

#include "export/c/functions.h"
#include "graphrun/program.h"

namespace graphrun::c99 {

struct Statement {
  std::string text, problem;
};

// `place` returns a C expression for the pointer to the first element of a buffer.
Statement statement(const Program& program, const Step& step, const std::function<std::string(BufferId)>& place,
                    Functions& functions);

}  // namespace graphrun::c99
