// The elementwise loops for any machine.
#define GRAPHRUN_ISA plain
#define GRAPHRUN_LANES 4
#include "kernels/cpu/simd/elementwise_loops.h"
