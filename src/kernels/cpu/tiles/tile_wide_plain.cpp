// The weight gradients with outputs as lanes for any machine.
#define GRAPHRUN_ISA plain
#define GRAPHRUN_LANES 4
#include "kernels/cpu/tiles/tile_wide_gradient.h"
