// loops.cpp: the table of isa.h for one instruction set: products and lines, written once over simd.h and compiled once
// per set. Contract: see isa.h. All code is static or forced inline; only integer types are used from std. Leaves to
// others: elementwise loops (elementwise_loops.cpp); flags (src/CMakeLists.txt).
#include "kernels/cpu/gemm/product_loops.h"
#include "kernels/cpu/simd/axis_loops.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun::cpu::GRAPHRUN_ISA {

const IsaTable table = {.elementwise = &element_loops,
                        .where = where,
                        .matmul = matmul,
                        .pack_panel = pack_panel,
                        .pack_left = pack_left,
                        .tile_rows = kTileRows,
                        .sum = {sum_across, along<Sum>},
                        .max = {across<Fold<Larger>>, along<Fold<Larger>>},
                        .min = {across<Fold<Smaller>>, along<Fold<Smaller>>},
                        .prod = {across<Fold<Product>>, along<Fold<Product>>},
                        .argmax = {across<Position<true>>, along<Position<true>>},
                        .argmin = {across<Position<false>>, along<Position<false>>},
                        .top = {top_across, along<Top>},
                        .sum_exp = {sum_exp_across, along<SumExp>},
                        .logsumexp = {log_sum_exp_across, along<LogSumExp>},
                        .softmax = {across<Softmax>, along<Softmax>},
                        .log_softmax = {across<LogSoftmax>, along<LogSoftmax>},
                        .cross_entropy = {across<CrossEntropy>, along<CrossEntropy>},
                        .class_entropy = {across<ClassEntropy>, along<ClassEntropy>},
                        .one_hot = one_hot,
                        .transpose = transpose_matrix,
                        .draw = draw,
                        .dense = dense,
                        .dense_gradient = dense_gradient,
                        .wide_gradient = wide_gradient,
                        .sum_rows = sum_rows_of_tile,
                        .add_lanes = add_lanes_to};

}  // namespace graphrun::cpu::GRAPHRUN_ISA
