// loops.cpp: the table of isa.h for one instruction set: products and lines, written once over simd.h and compiled once
// per set. Contract: see isa.h. All code is static or forced inline; only integer types are used from std. Leaves to
// others: elementwise loops (elementwise_loops.cpp); flags (src/CMakeLists.txt).
#include "kernels/cpu/gemm/product_loops.h"
#include "kernels/cpu/simd/axis_loops.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun::cpu::GRAPHRUN_ISA {

#if defined(GRAPHRUN_WIDE)
const IsaTableOf<double> table = {.wide = &table,
                                  .elementwise = element_loops,
                                  .where = nullptr,
                                  .matmul = matmul,
                                  .pack_panel = pack_panel,
                                  .pack_left = pack_left,
                                  .tile_rows = kTileRows,
                                  .sum = {sum_across, along<kSum>},
                                  .max = {across<kFold<Larger>>, along<kFold<Larger>>},
                                  .min = {across<kFold<Smaller>>, along<kFold<Smaller>>},
                                  .prod = {across<kFold<Product>>, along<kFold<Product>>},
                                  .argmax = {},
                                  .argmin = {},
                                  .top = {top_across, along<kTop>},
                                  .sum_exp = {sum_exp_across, along<kSumExp>},
                                  .logsumexp = {log_sum_exp_across, along<kLogSumExp>},
                                  .softmax = {across<kSoftmax>, along<kSoftmax>},
                                  .log_softmax = {across<kLogSoftmax>, along<kLogSoftmax>},
                                  .cross_entropy = {across<kCrossEntropy>, along<kCrossEntropy>},
                                  .class_entropy = {across<kClassEntropy>, along<kClassEntropy>},
                                  .one_hot = nullptr,
                                  .transpose = transpose_matrix,
                                  .draw = nullptr,
                                  .dense = nullptr,
                                  .dense_gradient = nullptr,
                                  .wide_gradient = nullptr,
                                  .sum_rows = nullptr,
                                  .add_lanes = nullptr};
#else
#define GRAPHRUN_F64(isa) isa##_f64
#define GRAPHRUN_F64_OF(isa) GRAPHRUN_F64(isa)
const IsaTable table = {.wide = &GRAPHRUN_F64_OF(GRAPHRUN_ISA)::table,
                        .elementwise = element_loops,
                        .where = where,
                        .matmul = matmul,
                        .pack_panel = pack_panel,
                        .pack_left = pack_left,
                        .tile_rows = kTileRows,
                        .sum = {sum_across, along<kSum>},
                        .max = {across<kFold<Larger>>, along<kFold<Larger>>},
                        .min = {across<kFold<Smaller>>, along<kFold<Smaller>>},
                        .prod = {across<kFold<Product>>, along<kFold<Product>>},
                        .argmax = {across<kArgmax>, along<kArgmax>},
                        .argmin = {across<kArgmin>, along<kArgmin>},
                        .top = {top_across, along<kTop>},
                        .sum_exp = {sum_exp_across, along<kSumExp>},
                        .logsumexp = {log_sum_exp_across, along<kLogSumExp>},
                        .softmax = {across<kSoftmax>, along<kSoftmax>},
                        .log_softmax = {across<kLogSoftmax>, along<kLogSoftmax>},
                        .cross_entropy = {across<kCrossEntropy>, along<kCrossEntropy>},
                        .class_entropy = {across<kClassEntropy>, along<kClassEntropy>},
                        .one_hot = one_hot,
                        .transpose = transpose_matrix,
                        .draw = draw,
                        .dense = dense,
                        .dense_gradient = dense_gradient,
                        .wide_gradient = wide_gradient,
                        .sum_rows = sum_rows_of_tile,
                        .add_lanes = add_lanes_to};
#endif

}  // namespace graphrun::cpu::GRAPHRUN_ISA
