#include "graph/frontend/library/flat_vector.h"

#include <fmt/format.h>

#include <numeric>

#include "graphrun/error.h"

namespace graphrun {

std::int64_t joint_size(std::string_view optimizer, const std::vector<Var>& parameters) {
  constexpr std::int64_t kMaxNumbers = 2048;
  std::int64_t size = 0;
  for (const Var parameter : parameters) size += parameter.type().shape.elements();
  if (size <= kMaxNumbers) return size;
  throw Error(ErrorKind::input, "optimizer.size",
              fmt::format("{} stores the square of the number of trained numbers, at most {}; the model has {}",
                          optimizer, kMaxNumbers, size),
              "use adam, or a smaller model");
}

Var flat(const std::vector<Var>& values) {
  std::vector<Var> parts;
  for (const Var value : values) parts.push_back(make::reshape(value, Shape{value.type().shape.elements()}));
  return make::concat(std::move(parts), 0);
}

Var part_of(Var vector, std::int64_t start, const Shape& like) {
  const std::int64_t stop = start + like.elements();
  if (start == 0 && stop == vector.type().shape[0]) return make::reshape(vector, like);
  return make::reshape(make::op("slice", {vector}, {{"start", start}, {"stop", stop}}), like);
}

Var identity_like(Var vector) {
  const std::int64_t size = vector.type().shape[0];
  std::vector<double> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const Var rows = make::source(*vector.make, "constant", {DType::i32, {size}, 0}, {{"values", std::move(numbers)}});
  return make::op("one_hot", {rows}, {{"classes", size}});
}

Var joint_slot(ir::Builder& make, std::string_view name, const TensorType& type) {
  const Var slot = make::source(make, "state", type, {{"kind", std::string("slot")}});
  make.rename(slot.id, fmt::format("train:{}", name));
  return slot;
}

}  // namespace graphrun
