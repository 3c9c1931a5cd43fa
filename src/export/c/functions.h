// functions.h: static functions of a C file: one per kind of step, generated on first use.
// Contract: the functions compute the same as `ref`, in the file's type PREFIX_real and in the same order. Scalar ops
// use the reference column of scalar_op_list.h. Every function takes strides and counts in elements. `prefix` starts
// all function names, `big` all macro names. Not handled here: calls (steps.h).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graphrun/model.h"
#include "graphrun/program.h"

namespace graphrun::c99 {

class Functions {
 public:
  Functions(std::string prefix, std::string big) : prefix_(std::move(prefix)), big_(std::move(big)) {}

  // Each returns the function's name, or "" if the op has no C implementation. The comments list the C parameters.
  std::string scalar(Op op, std::span<const DType> inputs,
                     DType output);             // args: p, ps, (q, qs, ...) [a, b] out, os, n
  std::string cast(DType input, DType output);  // p, ps, out, os, n
  std::string fill(DType dtype);                // value, out, os, n
  std::string matmul(DType dtype);              // p, pi, pk, q, qk, qj, out, m, n, k
  std::string reduction(Op op, DType dtype);    // p, n0, s0, n1, s1, out
  std::string along_axis(Op op, DType dtype);   // p, ps, n, out, os
  std::string gather(DType dtype);              // table, rows, columns, row, column (strides), index, is, out, n
  std::string one_hot(DType dtype);             // index, is, classes, out, n
  std::string to_stored(DType given, LogTransform log);  // p, shift, scale, columns, out, n
  std::string to_user(LogTransform log);                 // p, shift, scale, columns, out, n

  std::string text() const;  // all functions used, helpers first

 private:
  std::string add(const std::string& name, const std::string& arguments, std::string body);
  std::string name_of_types(std::string_view base, std::span<const DType> inputs, DType output) const;
  std::string store(DType dtype, const std::string& place, const std::string& value);

  std::string prefix_, big_;
  std::map<std::string, std::string> known_;  // source text by name
  std::vector<std::string> order_;
  bool clamps_ = false;
};

}  // namespace graphrun::c99
