// normal_quantile.h: the inverse of the standard normal distribution function, with bits that no library decides.
// Contract: pure; defined for 1.4e-11 < p < 1 - 1.4e-11. AS241, function PPND16 (Wichura 1988, "The percentage points
// of the normal distribution", Applied Statistics 37), whose relative error is about 1e-16; measured with our own
// logarithm: below 1e-15 against a 50-digit reference. Only + - * / and sqrt, which IEEE 754 rounds alike everywhere.
// Leaves to others: where p comes from (philox.h).
#pragma once

namespace graphrun {

double normal_quantile(double p);

}  // namespace graphrun
