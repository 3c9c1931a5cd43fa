// scatter.cpp: scatter_add: sorts updates by destination row, then sums each row and writes it once.
// Contract: the sum of a row adds its updates in input order, in blocks of kSegmentBlock whose totals are added in
// order. Neither parts nor threads affect results.
#include <algorithm>
#include <cstring>
#include <utility>

#include "graphrun/op.h"
#include "kernels/cpu/batch/families.h"

namespace graphrun::cpu {
namespace {

using i64 = std::int64_t;

constexpr i64 kSegmentBlock = 256;  // terms of a chain: rounding errors of long sums grow with blocks, not terms
constexpr i64 kStrip = 16;          // columns summed at a time

// Sort entry: position of an update and, above it, its row in the bucket. Each of 64 buckets has at most 2^26 of the
// rows that an i32 can index.
constexpr int kPlaceBits = 38;
i64 place_of(i64 entry) {
  return entry & ((i64{1} << kPlaceBits) - 1);
}
i64 row_of(i64 entry) {
  return entry >> kPlaceBits;
}

// The output in buckets of 1 << shift rows: a part sorts and sums one bucket. Updates are counted and distributed to
// buckets in chunks. Depends on shapes alone.
struct Buckets {
  i64 rows, width, places;
  int shift = 0;
  i64 count = 0, chunks = 1;

  Buckets(const TensorType& indices, const TensorType& out)
      : rows(out.shape[0]), width(out.shape[1]), places(indices.shape.elements()) {
    const i64 parts = parts_for(rows * width + places * (width + kStrip));
    while ((rows - 1) >> shift >= parts) ++shift;
    count = rows == 0 ? 0 : ((rows - 1) >> shift) + 1;
    chunks = parts_for(places * 4);
  }
  // Workspace size in 64-bit words: sorted entries, as many for sorting, and the start of each bucket and chunk.
  i64 words() const { return 2 * places + count * chunks; }
};

// Sums `count` rows of updates in columns [0, n) of one output row; n is at most kStrip.
template <i64 n, class Real>
void sum_strip(Real* out, const Real* updates, i64 width, const i64* entries, i64 count, i64 columns) {
  const i64 wide = n > 0 ? n : columns;
  Real total[kStrip];
  for (i64 begin = 0; begin < count; begin += kSegmentBlock) {
    Real sum[kStrip];
    std::memcpy(sum, updates + place_of(entries[begin]) * width, static_cast<std::size_t>(wide) * sizeof(Real));
    const i64 end = std::min(begin + kSegmentBlock, count);
    for (i64 i = begin + 1; i < end; ++i) {
      const Real* const term = updates + place_of(entries[i]) * width;
      for (i64 j = 0; j < wide; ++j) sum[j] += term[j];
    }
    for (i64 j = 0; j < wide; ++j) total[j] = begin == 0 ? sum[j] : total[j] + sum[j];
  }
  std::memcpy(out, total, static_cast<std::size_t>(wide) * sizeof(Real));
}

template <class Real>
void sum_row(Real* out, const Real* updates, i64 width, const i64* entries, i64 count) {
  i64 column = 0;
  for (; column + kStrip <= width; column += kStrip)
    sum_strip<kStrip>(out + column, updates + column, width, entries, count, kStrip);
  if (column < width) sum_strip<0>(out + column, updates + column, width, entries, count, width - column);
}

// Stable sort by row, whose values have `bits` bits. Returns the buffer that holds the result.
i64* sort_entries(i64* entries, i64* other, i64 count, int bits) {
  if (count <= 32) {
    std::sort(entries, entries + count);  // positions, the lower bits, are in order
    return entries;
  }
  constexpr int kDigit = 8;
  for (int done = 0; done < bits; done += kDigit) {
    i64 at[1 << kDigit] = {};
    const auto digit = [&](i64 entry) { return (row_of(entry) >> done) & ((1 << kDigit) - 1); };
    for (i64 i = 0; i < count; ++i) ++at[digit(entries[i])];
    i64 before = 0;
    for (i64& begin : at) before += std::exchange(begin, before);
    for (i64 i = 0; i < count; ++i) other[at[digit(entries[i])]++] = entries[i];
    std::swap(entries, other);
  }
  return entries;
}

template <class Real>
void scatter_add_of(const KernelArgs& args) {
  const Buckets buckets(args.in_type[0], args.out_type);
  const i64 rows = buckets.rows;
  const i64 width = buckets.width;
  if (rows == 0 || width == 0) return;
  const i64 places = args.valid_elements(args.in_type[0]);
  const std::int32_t* const indices = args.input<std::int32_t>(0);
  const Real* const updates = args.input<Real>(1);
  Real* const out = args.output<Real>();
  i64* const order = static_cast<i64*>(args.workspace);
  i64* const spare = order + buckets.places;
  i64* const begins = spare + buckets.places;  // (bucket, chunk)

  const auto known = [&](i64 i) { return indices[i] >= 0 && indices[i] < rows; };
  const auto chunk_of_places = [&](int chunk, auto&& f) {
    for (i64 i = places * chunk / buckets.chunks; i < places * (chunk + 1) / buckets.chunks; ++i)
      if (known(i)) f(begins[(indices[i] >> buckets.shift) * buckets.chunks + chunk], i);
  };
  std::fill_n(begins, buckets.count * buckets.chunks, i64{0});
  const int chunks = static_cast<int>(buckets.chunks);
  for_parts(args.pool, chunks, [&](int chunk) { chunk_of_places(chunk, [](i64& number, i64) { ++number; }); });
  i64 before = 0;
  for (i64 i = 0; i < buckets.count * buckets.chunks; ++i) before += std::exchange(begins[i], before);
  for_parts(args.pool, chunks, [&](int chunk) {
    chunk_of_places(
        chunk, [&](i64& at, i64 i) { order[at++] = (indices[i] & ((i64{1} << buckets.shift) - 1)) << kPlaceBits | i; });
  });
  // `begins` now holds the end of each bucket's part of a chunk.

  for_parts(args.pool, static_cast<int>(buckets.count), [&](int bucket) {
    const i64 begin = bucket == 0 ? 0 : begins[bucket * buckets.chunks - 1];
    const i64 count = begins[(bucket + 1) * buckets.chunks - 1] - begin;
    const i64 first = static_cast<i64>(bucket) << buckets.shift;
    const i64 last = std::min(first + (i64{1} << buckets.shift), rows);
    const i64* const sorted = sort_entries(order + begin, spare + begin, count, buckets.shift);
    i64 row = first;  // next row to write
    for (i64 i = 0, end = 0; i < count; i = end) {
      const i64 to = first + row_of(sorted[i]);
      while (end < count && row_of(sorted[end]) == to - first) ++end;
      std::fill(out + row * width, out + to * width, Real{0});
      sum_row(out + to * width, updates, width, sorted + i, end - i);
      row = to + 1;
    }
    std::fill(out + row * width, out + last * width, Real{0});
  });
}

void scatter_add(const KernelArgs& args, const IsaTable&) {
  args.out_type.dtype == DType::f64 ? scatter_add_of<double>(args) : scatter_add_of<float>(args);
}

std::uint64_t sort_bytes(const Params&, std::span<const TensorType> inputs, const TensorType& out) {
  return static_cast<std::uint64_t>(Buckets(inputs[0], out).words()) * sizeof(i64);
}

constexpr Entry kScatterKernels[] = {entry<scatter_add>(Op::scatter_add, sort_bytes)};

}  // namespace

constinit const std::span<const Entry> scatter_kernels = kScatterKernels;

}  // namespace graphrun::cpu
