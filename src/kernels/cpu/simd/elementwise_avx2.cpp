// The elementwise loops for machines with AVX2; compiled with its flags (src/CMakeLists.txt).
#if defined(__x86_64__)
#define GRAPHRUN_ISA avx2
#define GRAPHRUN_LANES 8
#include "kernels/cpu/simd/elementwise_loops.h"
#endif
