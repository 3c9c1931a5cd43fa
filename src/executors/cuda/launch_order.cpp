#include "executors/cuda/launch_order.h"

#include <algorithm>
#include <bitset>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>

namespace graphrun::cuda {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::size_t kWindow = 512;  // earlier launches checked for an implied wait

// Range of bytes of the arena: its last writer, and its readers since then.
struct Piece {
  std::uint32_t writer = kNone;
  std::vector<std::uint32_t> readers;
};

class Accesses {
 public:
  // Records a read of the range by a launch, and appends the launches that it waits for to `after`.
  void read(ByteRange range, std::uint32_t launch, std::vector<std::uint32_t>& after) {
    each(range, [&](Piece& piece) {
      if (piece.writer != kNone) after.push_back(piece.writer);
      if (piece.readers.empty() || piece.readers.back() != launch) piece.readers.push_back(launch);
    });
  }
  void wait_to_write(ByteRange range, std::vector<std::uint32_t>& after) {
    each(range, [&](Piece& piece) {  // readers already wait for the writer
      if (piece.readers.empty() && piece.writer != kNone) after.push_back(piece.writer);
      after.insert(after.end(), piece.readers.begin(), piece.readers.end());
    });
  }
  void write(ByteRange range, std::uint32_t launch) {
    if (range.begin >= range.end) return;
    const auto first = cut(range.begin), last = cut(range.end);
    pieces_.erase(std::next(first), last);
    first->second = {launch, {}};
  }

 private:
  using Pieces = std::map<std::uint64_t, Piece>;  // pieces by first byte

  Pieces::iterator cut(std::uint64_t at) {
    const auto piece = std::prev(pieces_.upper_bound(at));
    return piece->first == at ? piece : pieces_.emplace_hint(std::next(piece), at, piece->second);
  }
  template <class Visit>
  void each(ByteRange range, Visit visit) {
    if (range.begin >= range.end) return;
    const auto first = cut(range.begin), last = cut(range.end);
    for (auto piece = first; piece != last; ++piece) visit(piece->second);
  }

  Pieces pieces_{{0, {}}};
};

}  // namespace

void LaunchAccess::add(const Program& program, const Step& step) {
  const auto touch = [&](BufferId id, std::vector<ByteRange>& ranges) {
    if (id == kNoBuffer) return;
    const bool in_parts = program.buffers[id].layout == Layout::strided;
    const Buffer& buffer = program.buffers[in_parts ? storage_root(program, id) : id];
    const bool has_own_size = buffer.kind == BufferKind::workspace || buffer.layout == Layout::codes;
    const std::uint64_t bytes = has_own_size ? buffer.bytes : buffer.type.bytes();
    if (buffer.layout != Layout::registers) ranges.push_back({buffer.offset, buffer.offset + bytes});
  };
  for (const BufferId input : step.inputs) touch(input, reads);
  touch(step.row_count, reads);
  touch(step.output, writes);
  touch(step.workspace, writes);
}

void LaunchAccess::add(const Program& program, const Region& region) {
  const auto range = [&](BufferId id) {
    const Buffer& buffer = program.buffers[id];
    return ByteRange{buffer.offset, buffer.offset + buffer.bytes};
  };
  for (const Stage& stage : region.stages) {
    for (const TileMove& load : stage.loads) reads.push_back(range(load.arena));
    for (const TileMove& store : stage.stores) writes.push_back(range(store.arena));
  }
  if (region.accumulators != kNoBuffer) writes.push_back(range(region.accumulators));
}

std::vector<std::vector<std::uint32_t>> launch_order(std::span<const LaunchAccess> launches) {
  Accesses arena;
  std::vector<std::vector<std::uint32_t>> order;
  std::vector<std::bitset<kWindow>> ended;  // launches that ended before each launch; bit i: launch i + 1 before it
  for (std::uint32_t launch = 0; launch < launches.size(); ++launch) {
    std::vector<std::uint32_t> candidates;
    for (const ByteRange& range : launches[launch].reads) arena.read(range, launch, candidates);
    for (const ByteRange& range : launches[launch].writes) arena.wait_to_write(range, candidates);
    for (const ByteRange& range : launches[launch].writes) arena.write(range, launch);
    std::sort(candidates.begin(), candidates.end(), std::greater<>());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());

    std::vector<std::uint32_t>& after = order.emplace_back();
    std::bitset<kWindow>& mine = ended.emplace_back();
    for (const std::uint32_t before : candidates) {
      const std::size_t back = launch - before;  // 0: this launch, which reads a range that it writes
      if (back == 0 || (back <= kWindow && mine.test(back - 1))) continue;
      after.push_back(before);
      if (back <= kWindow) mine |= (ended[before] << back).set(back - 1);
    }
  }
  return order;
}

std::vector<std::uint32_t> message_order(std::span<const std::vector<std::uint32_t>> order,
                                         const std::vector<bool>& messages) {
  const auto count = static_cast<std::uint32_t>(order.size());
  std::vector<std::uint32_t> reader(count, count);  // first message that needs the launch; `count`: none
  std::vector<std::uint32_t> read(count, 0);        // 1 + last message that the launch needs
  for (std::uint32_t launch = 0; launch < count; ++launch)
    for (const std::uint32_t before : order[launch])
      read[launch] = std::max(read[launch], messages[before] ? before + 1 : read[before]);
  for (std::uint32_t launch = count; launch-- > 0;) {
    if (messages[launch]) reader[launch] = launch;
    for (const std::uint32_t before : order[launch]) reader[before] = std::min(reader[before], reader[launch]);
  }
  std::vector<std::uint32_t> sequence(count);
  std::iota(sequence.begin(), sequence.end(), 0u);
  std::ranges::stable_sort(sequence, {}, [&](std::uint32_t launch) {
    return reader[launch] < count ? reader[launch] : count + read[launch];
  });
  return sequence;
}

}  // namespace graphrun::cuda
