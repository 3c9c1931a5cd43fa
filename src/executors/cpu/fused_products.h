// fused_products.h: which of the row steps of a stage that follow a product are done by the product itself.
// Contract: a product may take along the addition of a bias and then one cheap step on its result (epilogue_input() of
// kernels/cpu/tile.h), in registers: what it takes is never in the tile. It runs when the last step that it takes is
// due, where nobody else reads what lies between, neither steps nor the arena, and its operands are still there.
// Not to be taken for the epilogue of a region, the steps that run once after the rows.
// Leaves to others: what the steps compute, and that the bits are the same (kernels/cpu/tile.h), running them.
#pragma once

#include <cstdint>
#include <vector>

#include "graphrun/program.h"

namespace graphrun {

inline constexpr std::uint32_t kNoStep = ~std::uint32_t{0};

// What runs when a row step is due. `product` is kNoStep for a step that runs as it is, and for one that a later step's
// product does; then `taken` is true.
struct FusedProduct {
  std::uint32_t product = kNoStep;
  BufferId bias = kNoBuffer;
  std::uint32_t epilogue = kNoStep;  // a step of the phase, as `product` is
  bool taken = false;
};

// For each row step of the stage, [stage.rows, stage.last).
std::vector<FusedProduct> fuse_products(const Phase& phase, const Stage& stage, const Program& program);

}  // namespace graphrun
