// loops.cpp: the table of isa.h for one instruction set: products and lines, written once over simd.h and compiled once
// per set. Contract: see isa.h. All code is static or forced inline; only integer types are used from std. Leaves to
// others: elementwise loops (elementwise_loops.cpp); flags (src/CMakeLists.txt).
#include "kernels/cpu/gemm/product_loops.h"
#include "kernels/cpu/simd/axis_loops.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun::cpu::GRAPHRUN_ISA {

const IsaTable table = {&element_loops, where,           sum_rows,        sum_columns,      matmul,
                        pack_panel,     pack_left,       kTileRows,       largest,          largest_columns,
                        sum_exp,        sum_exp_columns, loss_of_targets, transpose_matrix, draw};

}  // namespace graphrun::cpu::GRAPHRUN_ISA
