#include "executors/cpu/elementwise_run.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/batch/families.h"

namespace graphrun {
namespace {

// From where the buffers of a step do not stay in the nearest cache; and what does, of some ten buffers.
constexpr std::int64_t kLeastElements = 16384;
constexpr std::int64_t kBlock = 1024;

struct Bytes {
  std::uintptr_t first, last;
};
Bytes bytes_of(const void* data, const TensorType& type) {
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  return {first, first + type.bytes()};
}

// In blocks a step writes before others have read: what it writes must be what they meant, element by element, or lie
// elsewhere.
bool apart_or_same(const Bytes& written, const Bytes& other, bool same_elements) {
  if (written.last <= other.first || other.last <= written.first) return true;
  return same_elements && written.first == other.first;
}

bool go_together(const BoundStep& a, const BoundStep& b) {
  const TensorType& type = b.args.out_type;
  const auto fits = [&](const BoundStep& writer, const BoundStep& other) {
    const Bytes written = bytes_of(writer.args.out, type);
    if (!apart_or_same(written, bytes_of(other.args.out, type), true)) return false;
    for (int i = 0; i < other.args.inputs; ++i) {
      const TensorType& in = other.args.in_type[i];
      if (!apart_or_same(written, bytes_of(other.args.in[i], in), in.shape.elements() == type.shape.elements()))
        return false;
    }
    return true;
  };
  return a.args.out_type.shape.elements() == type.shape.elements() && a.args.out_type.rows == type.rows && fits(a, b) &&
         fits(b, a);
}

bool takes_part(const BoundStep& step) {
  return (step.loops.unary != nullptr || step.loops.binary != nullptr) &&
         step.args.out_type.shape.elements() >= kLeastElements;
}

}  // namespace

std::uint32_t end_of_run(const std::vector<BoundStep>& steps, std::uint32_t first, std::uint32_t limit) {
  std::uint32_t end = first + 1;
  if (!takes_part(steps[first])) return end;
  for (; end < limit && takes_part(steps[end]); ++end) {
    for (std::uint32_t i = first; i < end; ++i)
      if (!go_together(steps[i], steps[end])) return end;
  }
  return end;
}

void run_together(const std::vector<BoundStep>& steps, std::uint32_t first, std::uint32_t last) {
  const KernelArgs& args = steps[first].args;
  const std::int64_t n = cpu::valid_elements(args, args.out_type);
  const int parts = cpu::parts_for(n * (last - first));
  cpu::for_ranges(args, parts, n, cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += kBlock)
      for (std::uint32_t i = first; i < last; ++i) steps[i].run_block(at, std::min(kBlock, end - at));
  });
  for (std::uint32_t i = first; i < last; ++i) cpu::clear_invalid_rows(steps[i].args);
}

}  // namespace graphrun
