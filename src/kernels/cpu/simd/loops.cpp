// loops.cpp: the table of isa.h for one instruction set: products and lines, written once over simd.h and compiled once
// per set. Contract: see isa.h. All code is static or forced inline; only integer types are used from std. Leaves to
// others: elementwise loops (elementwise_loops.cpp); flags (src/CMakeLists.txt).
#include "kernels/cpu/gemm/product_loops.h"
#include "kernels/cpu/simd/axis_loops.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun::cpu::GRAPHRUN_ISA {

namespace {

#define GRAPHRUN_F64(isa) isa##_f64
#define GRAPHRUN_F64_OF(isa) GRAPHRUN_F64(isa)

constexpr IsaTableOf<Real> make_table() {
  IsaTableOf<Real> made{};
  made.elementwise = element_loops;
  made.matmul = matmul;
  made.pack_panel = pack_panel;
  made.pack_left = pack_left;
  made.tile_rows = kTileRows;
  made.sum = {sum_across, along<kSum>};
  made.max = {across<kFold<Larger>>, along<kFold<Larger>>};
  made.min = {across<kFold<Smaller>>, along<kFold<Smaller>>};
  made.prod = {across<kFold<Product>>, along<kFold<Product>>};
  made.top = {top_across, along<kTop>};
  made.sum_exp = {sum_exp_across, along<kSumExp>};
  made.logsumexp = {log_sum_exp_across, along<kLogSumExp>};
  made.softmax = {across<kSoftmax>, along<kSoftmax>};
  made.log_softmax = {across<kLogSoftmax>, along<kLogSoftmax>};
  made.cross_entropy = {across<kCrossEntropy>, along<kCrossEntropy>};
  made.class_entropy = {across<kClassEntropy>, along<kClassEntropy>};
  made.transpose = transpose_matrix;
  made.dense = dense;
  made.dense_gradient = dense_gradient;
  made.wide_gradient = wide_gradient;
  made.sum_rows = sum_rows_of_tile;
  made.add_lanes = add_lanes_to;
#if defined(GRAPHRUN_WIDE)
  made.wide = &table;
#else
  made.wide = &GRAPHRUN_F64_OF(GRAPHRUN_ISA)::table;
  made.where = where;
  made.argmax = {across<kArgmax>, along<kArgmax>};
  made.argmin = {across<kArgmin>, along<kArgmin>};
  made.one_hot = one_hot;
  made.draw = draw;
  made.permute = permute;
#endif
  return made;
}

}  // namespace

constinit const IsaTableOf<Real> table = make_table();

}  // namespace graphrun::cpu::GRAPHRUN_ISA
