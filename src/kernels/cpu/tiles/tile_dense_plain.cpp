// The products of tiles for any machine.
#define GRAPHRUN_ISA plain
#define GRAPHRUN_LANES 4
#include "kernels/cpu/tiles/tile_dense_loops.h"
