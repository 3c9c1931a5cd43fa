#include <algorithm>
#include <cstring>

#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cpu/batch/batch_rows.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {
namespace {

void minibatch(const KernelArgs& args) {
  const MinibatchParams params = batch_params(args, 2);
  const Batch batch = batch_of(params, counter(args, 1));
  const std::size_t row = args.out_type.bytes() / static_cast<std::size_t>(params.capacity);
  const std::size_t bytes = static_cast<std::size_t>(batch.count) * row;
  if (params.shuffle) {
    const std::uint64_t epoch =
        counter(args, 1) / static_cast<std::uint64_t>(std::max<std::int64_t>(params.batches(), 1));
    const int parts = parts_for(batch.count * (64 + static_cast<std::int64_t>(row / sizeof(float))));
    for_ranges(args.pool, parts, batch.count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r) {
        const std::uint64_t from = bits::permuted(static_cast<std::uint64_t>(batch.first + r),
                                                  static_cast<std::uint64_t>(params.total), params.key, epoch);
        std::memcpy(args.output<std::byte>() + static_cast<std::size_t>(r) * row, args.input<std::byte>(0) + from * row,
                    row);
      }
    });
  } else {
    const std::byte* from = args.input<std::byte>(0) + static_cast<std::size_t>(batch.first) * row;
    const auto size = static_cast<std::int64_t>(bytes);
    for_ranges(args.pool, parts_for(size / 4), size, kGrain * 4, [&](std::int64_t first, std::int64_t last) {
      std::memcpy(args.output<std::byte>() + first, from + first, static_cast<std::size_t>(last - first));
    });
  }
  std::memset(args.output<std::byte>() + bytes, 0, args.out_type.bytes() - bytes);
}

void row_count(const KernelArgs& args) {
  const MinibatchParams params = batch_params(args, 1);
  *args.output<std::int32_t>() = static_cast<std::int32_t>(batch_of(params, counter(args, 0)).count);
}

void increment(const KernelArgs& args) {
  *args.output<std::uint64_t>() = counter(args, 0) + 1;
}

void record(const KernelArgs& args) {
  const auto length = static_cast<std::uint64_t>(args.out_type.shape[0]);
  if (length != 0) args.output<float>()[counter(args, 2) % length] = *args.input<float>(1);
}

void assign(const KernelArgs& args) {
  if (args.out != args.in[1]) std::memcpy(args.out, args.in[1], args.out_type.bytes());
}

// Not wrapped by kernel_on(): these kernels handle all rows of the batch themselves.
constexpr Entry kMovementKernels[] = {
    {Op::minibatch, {minibatch, minibatch, minibatch}},
    {Op::row_count, {row_count, row_count, row_count}},
    {family_op::varying_minibatch, {minibatch, minibatch, minibatch}},
    {family_op::varying_row_count, {row_count, row_count, row_count}},
    {Op::increment, {increment, increment, increment}},
    {Op::record, {record, record, record}},
    {Op::assign, {assign, assign, assign}},
};

}  // namespace

std::span<const Entry> movement_kernels() {
  return kMovementKernels;
}

}  // namespace graphrun::cpu
