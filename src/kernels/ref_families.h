// ref_families.h: tables of the reference kernels by family, except those in ref.cpp.
// Contract: each op is in one table. Leaves to others: the computation of an op (ref_*.cpp), look-ups (ref.cpp).
#pragma once

#include <span>

#include "graphrun/op_traits.h"
#include "kernels/kernel.h"

namespace graphrun::ref {

struct Entry {
  Op op;
  KernelFn kernel;
};

std::span<const Entry> scalar_ops();  // and where
std::span<const Entry> reductions();  // sum … argmin, softmax and related ops
std::span<const Entry> movement();    // transpose, slice, pad, concat, one_hot, gather, scatter_add
std::span<const Entry> random();

}  // namespace graphrun::ref
