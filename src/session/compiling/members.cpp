#include "session/compiling/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/op.h"
#include "session/compiling/compiled_model.h"

namespace graphrun {
namespace {

template <class T>
T combine_numbers(CombineOp op, T x, T y) {
  switch (op) {
    case CombineOp::sum:
      return x + y;
    case CombineOp::product:
      return x * y;
    case CombineOp::max:
      return x >= y || std::isnan(x) ? x : y;
    case CombineOp::min:
      return x <= y || std::isnan(x) ? x : y;
  }
  throw std::logic_error("members: no such operator");
}

// A value that a step combines: `from` in each member becomes `to`.
struct SharedValue {
  BufferId from, to;
  CombineOp op;
  DType dtype;
  std::size_t at, bytes;  // place in a block
};

// Steps [first, last) of a phase, which each member runs, and the values combined after them.
struct SharedSection {
  std::uint32_t first = 0, last = 0, end = 0;  // end: after the combine_shards steps
  std::vector<SharedValue> values;
  std::size_t bytes = 0;  // size of a block
};

template <class T>
void combine_into(CombineOp op, std::byte* x, const std::byte* y, std::size_t bytes) {
  T *const to = reinterpret_cast<T*>(x), *const end = reinterpret_cast<T*>(x + bytes);
  const T* from = reinterpret_cast<const T*>(y);
  if (op == CombineOp::sum)
    for (T* at = to; at != end; ++at) *at += *from++;
  else
    for (T* at = to; at != end; ++at) *at = combine_numbers(op, *at, *from++);
}

// Combines `count` blocks: those at distance 1, then 2, 4, ... The first block gets the result.
void combine_blocks(const SharedSection& section, std::span<std::byte> blocks, std::size_t count) {
  for (std::size_t apart = 1; apart < count; apart *= 2) {
    for (std::size_t block = 0; block + apart < count; block += 2 * apart) {
      for (const SharedValue& value : section.values) {
        std::byte* const x = blocks.data() + block * section.bytes + value.at;
        const std::byte* const y = x + apart * section.bytes;
        (value.dtype == DType::f64 ? combine_into<double> : combine_into<float>)(value.op, x, y, value.bytes);
      }
    }
  }
}

std::vector<SharedSection> sections_of(const Program& program, const Phase& phase) {
  std::vector<SharedSection> sections(1);
  for (std::uint32_t i = 0; i < phase.steps.size(); ++i) {
    const Step& step = phase.steps[i];
    SharedSection& now = sections.back();
    if (step.op != Op::combine_shards) {
      if (!now.values.empty()) sections.emplace_back().first = i;
      sections.back().last = sections.back().end = i + 1;
      continue;
    }
    const TensorType& type = program.buffers[step.output].type;
    const auto op = static_cast<CombineOp>(step.params.as<ShardParams>().combine);
    now.values.push_back({step.inputs[0], step.output, op, type.dtype, now.bytes, type.bytes()});
    now.bytes += (type.bytes() + 7) / 8 * 8;
    now.end = i + 1;
  }
  return sections;
}

// Sets the shard of a member.
void write_shard(Runnable& member, const Program& program, std::uint64_t shard) {
  for (const Phase& phase : program.phases)
    for (const Step& step : phase.steps)
      if (step.op == Op::shard_step) member.write(step.inputs[1], std::as_bytes(std::span(&shard, 1)));
}

class MemberRunnable final : public Runnable {
 public:
  MemberRunnable(Executor& executor, const Program& program, std::int64_t shards,
                 std::shared_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)), ranks_(communicator_ == nullptr ? 1 : communicator_->ranks()) {
    if (shards % ranks_ != 0 || (ranks_ & (ranks_ - 1)) != 0)
      throw Error(ErrorKind::input, "shards.ranks", fmt::format("{} ranks cannot share {} shards", ranks_, shards),
                  "the number of ranks must be a power of two, and at most the number of shards");
    const std::int64_t own = shards / ranks_;
    const std::int64_t first = own * (communicator_ == nullptr ? 0 : communicator_->rank());
    std::size_t largest = 0;
    for (const Phase& phase : program.phases) {
      phases_.push_back(sections_of(program, phase));
      for (const SharedSection& section : phases_.back()) largest = std::max(largest, section.bytes);
    }
    for (std::int64_t member = 0; member < own; ++member) {
      members_.push_back(load_program(executor, program));
      write_shard(*members_.back(), program, static_cast<std::uint64_t>(first + member));
    }
    const bool gathers = communicator_ != nullptr && communicator_->rank() == 0;
    blocks_.resize(largest * members_.size());
    if (gathers) gathered_.resize(largest * static_cast<std::size_t>(ranks_));
  }

  void write(BufferId buffer, std::span<const std::byte> bytes) override {
    for (const auto& member : members_) member->write(buffer, bytes);
  }
  void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) override {
    for (const auto& member : members_) member->write_rows(buffer, first, bytes);
  }
  void read(BufferId buffer, std::span<std::byte> bytes) override { members_.front()->read(buffer, bytes); }
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override {
    members_.front()->read_range(buffer, first, bytes);
  }

  void run(PhaseId phase, std::uint64_t n) override {
    const std::vector<SharedSection>& sections = phases_.at(phase);
    if (sections.front().values.empty()) return members_.front()->run(phase, n);  // it has no shards
    for (std::uint64_t i = 0; i < n; ++i) {
      begin_step(i);
      for (const SharedSection& section : sections) run_section(phase, section, section.first, section.end);
    }
  }
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    const std::vector<SharedSection>& sections = phases_.at(phase);
    if (sections.front().values.empty()) return members_.front()->run_steps(phase, first, last);
    for (const SharedSection& section : sections)
      if (first < section.end && last > section.first)
        run_section(phase, section, std::max(first, section.first), std::min(last, section.end));
  }

  std::vector<std::pair<std::string, std::uint64_t>> counters() const override {
    auto all = members_.front()->counters();
    all.emplace_back("members", members_.size());
    return all;
  }
  Profile profile() override { return members_.front()->profile(); }

 private:
  // Runs steps [first, last) of the section.
  void run_section(PhaseId phase, const SharedSection& section, std::uint32_t first, std::uint32_t last) {
    const std::uint32_t end = std::min(last, section.last);
    for (const auto& member : members_)
      if (first < end) member->run_steps(phase, first, end);
    if (last <= section.last) return;
    const std::size_t skipped = std::max(first, section.last) - section.last;
    combine(section, std::span(section.values).subspan(skipped, last - section.last - skipped));
  }

  // Combines these values of the section, in one message.
  void combine(const SharedSection& section, std::span<const SharedValue> values) {
    for (std::size_t m = 0; m < members_.size(); ++m)
      for (const SharedValue& value : values)
        members_[m]->read(value.from, std::span(blocks_).subspan(m * section.bytes + value.at, value.bytes));
    const std::span<std::byte> whole = std::span(blocks_).first(section.bytes);
    combine_blocks(section, blocks_, members_.size());
    if (communicator_ != nullptr) {
      const auto ranks = static_cast<std::size_t>(ranks_);
      communicator_->gather(whole, std::span(gathered_).first(gathered_.empty() ? 0 : section.bytes * ranks));
      if (!gathered_.empty()) {
        combine_blocks(section, gathered_, ranks);
        std::ranges::copy(std::span(gathered_).first(section.bytes), whole.begin());
      }
      communicator_->broadcast(whole);
    }
    for (const auto& member : members_)
      for (const SharedValue& value : values) member->write(value.to, whole.subspan(value.at, value.bytes));
  }

  std::shared_ptr<Communicator> communicator_;  // null: no other ranks
  int ranks_;
  std::vector<std::vector<SharedSection>> phases_;
  std::vector<std::unique_ptr<Runnable>> members_;
  std::vector<std::byte> blocks_, gathered_;
};

}  // namespace

std::int64_t shards_of(const Program& program) {
  for (const Phase& phase : program.phases)
    for (const Step& step : phase.steps)
      if (step.op == Op::shard_step) return step.params.as<ShardParams>().shards;
  return 1;
}

std::unique_ptr<Runnable> load_members(Executor& executor, const Program& program,
                                       std::shared_ptr<Communicator> communicator) {
  const std::int64_t shards = shards_of(program);
  if (shards == 1 && communicator == nullptr) return load_program(executor, program);
  if (std::unique_ptr<Runnable> own = shards == 1 ? nullptr : executor.load_shard(program, shards, communicator)) {
    write_shard(*own, program, static_cast<std::uint64_t>(communicator == nullptr ? 0 : communicator->rank()));
    return own;
  }
  return std::make_unique<MemberRunnable>(executor, program, shards, std::move(communicator));
}

}  // namespace graphrun
