// student_t.h: quantile of Student's t distribution, for confidence intervals.
#pragma once

#include <cstddef>

namespace graphrun {

// Value t for which a variable with n degrees of freedom (n >= 1) is in [-t, t] with this probability.
double student_t(double probability, std::size_t n);

}  // namespace graphrun
