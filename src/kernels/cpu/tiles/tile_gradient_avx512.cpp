// The sums over the rows of tiles and weight gradients with rows as lanes for machines with AVX512; compiled with its
// flags (src/CMakeLists.txt).
#if defined(__x86_64__)
#define GRAPHRUN_ISA avx512
#define GRAPHRUN_LANES 16
#include "kernels/cpu/tiles/tile_gradient_loops.h"
#endif
