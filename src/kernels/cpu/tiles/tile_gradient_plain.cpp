// The sums over the rows of tiles and weight gradients with rows as lanes for any machine.
#define GRAPHRUN_ISA plain
#define GRAPHRUN_LANES 4
#include "kernels/cpu/tiles/tile_gradient_loops.h"
