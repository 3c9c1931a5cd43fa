// The elementwise loops for machines with AVX512; compiled with its flags (src/CMakeLists.txt).
#if defined(__x86_64__)
#define GRAPHRUN_ISA avx512
#define GRAPHRUN_LANES 16
#include "kernels/cpu/simd/elementwise_loops.h"
#endif
