// verify_runs.cpp: compares what a Session runs with the plain steps of the reference.
// Tolerance of a value after many steps: the change of the reference's own value if every earlier step is off by its
// tolerance (compare.h). This is measured: the candidate, which is faster and was verified step by step, re-runs the
// plain steps, and each step's result is perturbed by its tolerance, up or down at random. A value at the edge of a
// comparison, where both sides may decide differently, then changes as much as the comparison allows.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/random_bits.h"
#include "graphrun/params.h"
#include "session/verify/verify_parts.h"

namespace graphrun {
namespace {

constexpr std::uint64_t kSteps = 2;  // per phase, at most; the second starts from computed states
constexpr int kRounds = 2;           // perturbed runs of the plain steps
constexpr int kMaxRounds = 24;       // before a value out of tolerance counts as a difference

struct PlainValue {
  TensorType type;
  Agreement rule = Agreement::exact;
  Bytes expected;
  std::vector<float> moves;  // largest change of each element; empty: unchanged

  double allowed(std::size_t i) const { return moves.empty() ? 0 : static_cast<double>(moves[i]); }
};

// Next float above a nonnegative one; infinity maps to itself.
float next_up(float x) {
  return std::isinf(x) ? x : std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) + 1);
}

void note_moves(PlainValue& value, std::span<const std::byte> moved) {
  const auto elements = static_cast<std::size_t>(value.type.shape.elements());
  if (same_bytes(moved, value.expected)) return;
  value.moves.resize(elements, 0.0f);
  with_type(value.type.dtype, [&](auto zero) {
    in_parts(elements, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) {
        const auto far = static_cast<float>(
            distance_of(load_element<decltype(zero)>(moved, i), load_element<decltype(zero)>(value.expected, i)));
        // Round up, so that the tolerance is not below the observed change.
        if (far > 0) value.moves[i] = std::max(value.moves[i], next_up(far));
      }
    });
  });
}

// First element that exceeds its tolerance.
std::optional<std::size_t> first_wrong(const PlainValue& value, std::span<const std::byte> got) {
  const auto elements = static_cast<std::size_t>(value.type.shape.elements());
  std::atomic<std::size_t> wrong{elements};
  with_type(value.type.dtype, [&](auto zero) {
    in_parts(elements, [&](std::size_t first, std::size_t last) {
      const auto agrees = [&](std::size_t i) {
        return distance_of(load_element<decltype(zero)>(got, i), load_element<decltype(zero)>(value.expected, i)) <=
               value.allowed(i);
      };
      while (first < last && agrees(first)) ++first;
      std::size_t before = wrong;
      while (first < last && first < before && !wrong.compare_exchange_weak(before, first)) {
      }
    });
  });
  if (wrong == elements) return std::nullopt;
  return wrong.load();
}

// The steps that run as one: a region, or one step.
struct Unit {
  std::uint32_t first, last;
  const Region* region;
};

std::vector<Unit> units_of(const Phase& phase) {
  std::vector<Unit> units;
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < phase.steps.size(); i = units.back().last) {
    const Region* region = nullptr;
    if (next < phase.regions.size() && phase.regions[next].first() == i) region = &phase.regions[next++];
    units.push_back({i, region != nullptr ? region->last : i + 1, region});
  }
  return units;
}

// Value or scratch in the arena after its unit ran, and the step that wrote it.
struct Leaving {
  BufferId buffer;
  std::uint32_t step;
};

std::vector<Leaving> leaving(const Program& program, const Phase& phase, const Unit& unit) {
  std::vector<Leaving> found;
  const auto producer = [&](BufferId id) {
    std::uint32_t step = unit.first;
    for (std::uint32_t i = unit.first; i < unit.last; ++i) {
      if (phase.steps[i].output == id) step = i;
    }
    return step;
  };
  const auto run_once = [&](std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = from; i < to; ++i) {
      if (phase.steps[i].workspace != kNoBuffer) found.push_back({phase.steps[i].workspace, i});
      found.push_back({phase.steps[i].output, i});
    }
  };
  if (unit.region == nullptr) {
    found.push_back({phase.steps[unit.first].output, unit.first});
  } else if (!unit.region->chains.empty()) {
    for (std::uint32_t i = unit.first; i < unit.last; ++i) {
      const BufferId output = phase.steps[i].output;
      if (program.buffers[output].kind != BufferKind::tile) found.push_back({output, i});
    }
  } else {
    std::uint32_t done = unit.first;
    for (const Stage& stage : unit.region->stages) {
      run_once(stage.first, stage.rows);
      if (unit.region->accumulators != kNoBuffer) found.push_back({unit.region->accumulators, stage.rows});
      for (const TileMove& store : stage.stores) found.push_back({store.arena, producer(store.tile)});
      for (const Combine& combine : stage.combines) found.push_back({combine.value, producer(combine.value)});
      done = stage.last;
    }
    run_once(done, unit.last);
  }
  // A value or scratch overwritten by a later one of the unit is gone, even if the later one is gone too.
  std::vector<Leaving> there;
  for (auto value = found.begin(); value != found.end(); ++value) {
    const Buffer& buffer = program.buffers[value->buffer];
    const bool gone = std::any_of(value + 1, found.end(),
                                  [&](const Leaving& later) { return overlap(buffer, program.buffers[later.buffer]); });
    if (!gone) there.push_back(*value);
  }
  return there;
}

class RunVerification {
 public:
  explicit RunVerification(Verification& v)
      : v_(v),
        plain_(v.compiled),
        whole_(v.whole),
        reference_(load_program(*v.executors[1], plain_.program)),
        moved_(load_program(*v.executors[0], plain_.program)),
        scale_(load_program(*v.executors[0], plain_.program)),
        candidate_(load_program(*v.executors[0], whole_.program)) {
    write_start(v.model, plain_, {reference_.get(), moved_.get(), scale_.get()});
    write_start(v.model, whole_, {candidate_.get()});
    // Both are compiled from one graph by the same passes, and regions keep one buffer per value.
    plain_of_.assign(whole_.program.buffers.size(), kNoBuffer);
    whole_of_.assign(plain_.program.buffers.size(), kNoBuffer);
    for (std::size_t value = 0; value < plain_.buffer_of.size(); ++value) {
      plain_of_[whole_.buffer_of.at(value)] = plain_.buffer_of[value];
      whole_of_[plain_.buffer_of[value]] = whole_.buffer_of[value];
    }
    for (BufferId id = 0; id < plain_.program.buffers.size(); ++id) {
      if (plain_buffer(id).storage == id && changes(plain_buffer(id))) states_.push_back({id, whole_of_[id]});
    }
  }

  void run() {
    for (const Phase& phase : whole_.program.phases) v_.report.regions += phase.regions.size();
    for (PhaseId phase = 0; phase < plain_.step.phases.size() && v_.report.passed(); ++phase) run_phase(phase);
  }

 private:
  using States = std::vector<Bytes>;  // in the order of states_
  struct State {
    BufferId plain, whole;
  };

  const Buffer& plain_buffer(BufferId id) const { return plain_.program.buffers[id]; }
  const Buffer& whole_buffer(BufferId id) const { return whole_.program.buffers[id]; }
  const std::vector<Step>& steps(PhaseId phase) const { return plain_.program.phases[phase].steps; }

  // Reference result for a value of the whole Program; null if there is none.
  PlainValue* value_of(BufferId whole) {
    const BufferId plain = plain_of_[whole];
    if (plain == kNoBuffer || !(plain_buffer(plain).type == whole_buffer(whole).type)) return nullptr;
    const auto found = values_.find(plain);
    return found == values_.end() ? nullptr : &found->second;
  }

  void read_states(Runnable& plain, States& states) const {
    states.resize(states_.size());
    for (std::size_t i = 0; i < states.size(); ++i) read_bytes(plain, plain_.program, states_[i].plain, states[i]);
  }
  void put(Runnable& plain, const States& states) const {
    for (std::size_t i = 0; i < states.size(); ++i) plain.write(states_[i].plain, states[i]);
  }
  void put_candidate(const States& states) const {
    for (std::size_t i = 0; i < states.size(); ++i) candidate_->write(states_[i].whole, states[i]);
  }

  // ---- choice of steps

  void run_phase(PhaseId id) {
    const auto batches = static_cast<std::uint64_t>(plain_.step.phases[id].batches.count());
    for (const PhaseRun& one : phase_runs(v_, id, std::min({v_.options.steps, batches, kSteps}), true)) {
      if (!v_.report.passed()) return;
      if (one.jumps) set_counter(*reference_, plain_, id, one.at);
      if (one.rows > 0) {
        for (Runnable* runnable : {reference_.get(), moved_.get(), scale_.get()}) {
          for (const auto& [input, bytes] : prediction_inputs(v_, plain_, id, one.rows)) runnable->write(input, bytes);
        }
        for (const auto& [input, bytes] : prediction_inputs(v_, whole_, id, one.rows)) candidate_->write(input, bytes);
      }
      for (std::uint64_t i = 0; i < one.count && v_.report.passed(); ++i) run_once(id, one.at + i);
    }
    if (v_.report.passed() && batches > 0 && plain_.step.phases[id].outputs.empty()) run_many(id);
  }

  // ---- one step of the phase, from equal states: unit by unit, then in a single run

  void run_once(PhaseId phase, std::uint64_t at) {
    at_ = at;
    read_states(*reference_, start_);
    run_reference(phase);
    rounds_ = 0;
    while (rounds_ < kRounds) run_moved(phase);
    put_candidate(start_);
    for (const Unit& unit : units_of(whole_.program.phases[phase])) {
      run_unit(phase, unit);
      if (!v_.report.passed()) return;
    }
    compare_states(phase);
    if (v_.report.passed()) run_whole(phase);
  }

  // Only values with a place in the arena of both Programs are compared.
  bool is_wanted(BufferId plain) const {
    return whole_of_[plain] != kNoBuffer && whole_buffer(whole_of_[plain]).kind != BufferKind::tile;
  }

  void run_reference(PhaseId phase) {
    if (phase_ != phase) values_.clear();
    phase_ = phase;
    const auto set = [&](PlainValue& value, BufferId id, Agreement rule) {
      value.type = plain_buffer(id).type;
      value.rule = rule;
      value.moves.clear();
      read_bytes(*reference_, plain_.program, id, value.expected);
    };
    for (std::uint32_t i = 0; i < steps(phase).size(); ++i) {
      reference_->run_steps(phase, i, i + 1);
      const Step& step = steps(phase)[i];
      if (is_wanted(step.output)) set(values_[step.output], step.output, agreement_of(step.op));
    }
    after_.resize(states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) set(after_[i], states_[i].plain, Agreement::exact);
  }

  void run_moved(PhaseId phase) {
    put(*moved_, start_);
    ++rounds_;
    for (std::uint32_t i = 0; i < steps(phase).size(); ++i) {
      const Step& step = steps(phase)[i];
      run_scaled(phase, i);
      moved_->run_steps(phase, i, i + 1);
      const bool wanted = values_.count(step.output) > 0;
      if (!wanted && !may_move(step)) continue;
      read_bytes(*moved_, plain_.program, step.output, got_);
      if (may_move(step)) {
        move(step, i);
        moved_->write(step.output, got_);
      }
      if (wanted) note_moves(values_.at(step.output), got_);
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      read_bytes(*moved_, plain_.program, states_[i].plain, got_);
      note_moves(after_[i], got_);
    }
  }

  bool may_move(const Step& step) const {
    return is_float(plain_buffer(step.output).type.dtype) && agreement_of(step.op) != Agreement::exact;
  }

  // Computes scaled_: the same step on the absolute values of its perturbed inputs, if the op's tolerance requires it.
  void run_scaled(PhaseId phase, std::uint32_t index) {
    const Step& step = steps(phase)[index];
    scaled_.clear();
    if (!may_move(step) || agreement_of(step.op) != Agreement::scaled) return;
    std::vector<BufferId> inputs = step.inputs;
    if (step.row_count != kNoBuffer) inputs.push_back(step.row_count);
    for (const BufferId id : inputs) {
      read_bytes(*moved_, plain_.program, id, got_);
      make_absolute(plain_buffer(id).type.dtype, got_);
      scale_->write(id, got_);
    }
    scale_->run_steps(phase, index, index + 1);
    read_bytes(*scale_, plain_.program, step.output, scaled_);
  }

  // Perturbs each element of got_ by its tolerance.
  void move(const Step& step, std::uint32_t index) {
    const TensorType& type = plain_buffer(step.output).type;
    const auto* product = step.params.get_if<MatmulParams>();
    const Sides sides{
        type, got_, got_, agreement_of(step.op), scaled_, product != nullptr ? product->precision : Precision::fp32};
    std::size_t elements = sides.elements();
    if (type.rows > 0 && step.row_count != kNoBuffer && elements > 0) {  // rows past the count stay zero
      std::int32_t rows = 0;
      moved_->read(step.row_count, std::as_writable_bytes(std::span(&rows, 1)));
      elements = elements / static_cast<std::size_t>(type.shape[0]) * static_cast<std::size_t>(rows * type.rows);
    }
    const auto move_type = [&](auto zero) {
      using T = decltype(zero);
      in_parts(elements, [&](std::size_t first, std::size_t last) {
        bits::Words coins{};
        for (std::size_t i = first; i < last; ++i) {  // first: a multiple of 128
          if (i % 128 == 0) coins = bits::words(index, static_cast<std::uint64_t>(rounds_), i / 128);
          const bool up = (coins.w[i / 32 % 4] >> (i % 32) & 1u) != 0;
          const double by = sides.tolerance(i), x = static_cast<double>(load_element<T>(got_, i));
          const auto y = static_cast<T>(up ? x + by : x - by);
          std::memcpy(got_.data() + i * sizeof y, &y, sizeof y);
        }
      });
    };
    type.dtype == DType::f32 ? move_type(0.0f) : move_type(0.0);
  }

  void run_unit(PhaseId phase, const Unit& unit) {
    const Phase& fused = whole_.program.phases[phase];
    const std::vector<Leaving> values = leaving(whole_.program, fused, unit);
    for (const Leaving& value : values) {
      if (may_poison(fused, unit, value.buffer)) poison(value.buffer);
    }
    candidate_->run_steps(phase, unit.first, unit.last);
    for (const Leaving& value : values) {
      if (PlainValue* expected = value_of(value.buffer)) compare(phase, value.buffer, *expected, value.step);
      if (!v_.report.passed()) return;
    }
  }

  // Returns whether no step of the unit reads bytes of the buffer before one writes them.
  bool may_poison(const Phase& fused, const Unit& unit, BufferId id) const {
    const Buffer& buffer = whole_buffer(id);
    if (buffer.kind != BufferKind::activation) return false;
    std::vector<BufferId> read;
    for (std::uint32_t i = unit.first; i < unit.last; ++i) {
      read.insert(read.end(), fused.steps[i].inputs.begin(), fused.steps[i].inputs.end());
      if (fused.steps[i].row_count != kNoBuffer) read.push_back(fused.steps[i].row_count);
    }
    if (unit.region != nullptr) {
      for (const Stage& stage : unit.region->stages)
        for (const TileMove& load : stage.loads) read.push_back(load.arena);
    }
    const auto made_inside = [&](BufferId other) {
      return std::any_of(fused.steps.begin() + unit.first, fused.steps.begin() + unit.last,
                         [&](const Step& step) { return step.output == other; });
    };
    return std::none_of(read.begin(), read.end(), [&](BufferId other) {
      return whole_buffer(other).kind != BufferKind::tile && !made_inside(other) &&
             overlap(buffer, whole_buffer(other));
    });
  }

  void poison(BufferId id) {
    read_bytes(*candidate_, whole_.program, id, got_);
    std::fill(got_.begin(), got_.end(), kPoison);
    candidate_->write(id, got_);
  }

  // Runs the phase as a Session does. Only states and the outputs of a prediction can be read afterwards.
  void run_whole(PhaseId phase) {
    put_candidate(start_);
    std::vector<BufferId> outputs;
    for (const ir::NodeId node : whole_.step.phases[phase].outputs) {
      const BufferId id = whole_.buffer(node);
      if (is_state(whole_buffer(id).kind)) continue;
      outputs.push_back(id);
      if (!is_state(whole_buffer(storage_root(whole_.program, id)).kind)) poison(id);  // else a view of an input
    }
    candidate_->run(phase, 1);
    for (const BufferId id : outputs) {
      PlainValue* expected = value_of(id);
      if (v_.report.passed() && expected) compare(phase, id, *expected, std::nullopt);
    }
    if (v_.report.passed()) compare_states(phase);
  }

  void compare_states(PhaseId phase) {
    for (std::size_t i = 0; i < states_.size() && v_.report.passed(); ++i)
      compare(phase, states_[i].whole, after_[i], std::nullopt);
  }

  void compare(PhaseId phase, BufferId id, PlainValue& value, std::optional<std::uint32_t> step) {
    Bytes got = std::move(compared_);  // run_moved() uses got_
    read_bytes(*candidate_, whole_.program, id, got);
    v_.report.fused_values += static_cast<std::uint64_t>(value.type.shape.elements());
    std::optional<std::size_t> wrong;
    if (!same_bytes(got, value.expected)) wrong = first_wrong(value, got);
    while (wrong && rounds_ < kMaxRounds) {
      run_moved(phase);
      wrong = first_wrong(value, got);
    }
    if (wrong) report_difference(phase, id, value, got, *wrong, step);
    compared_ = std::move(got);
  }

  void report_difference(PhaseId phase, BufferId id, const PlainValue& value, const Bytes& got, std::size_t wrong,
                         std::optional<std::uint32_t> step) {
    const Phase& fused = whole_.program.phases[phase];
    const Sides sides{value.type, got, value.expected, value.rule};
    v_.report.difference = describe(v_, Difference::Kind::fused, fused, at_, whole_buffer(id), sides, wrong, step);
    v_.report.difference->tolerance = value.allowed(wrong);
  }

  // ---- many steps in one run(), across the end of an epoch

  void run_many(PhaseId id) {
    const auto batches = static_cast<std::uint64_t>(plain_.step.phases[id].batches.count());
    const std::uint64_t n = std::clamp<std::uint64_t>(batches + 2, 4, 16);
    at_ = batches > n ? batches - 2 : 0;
    set_counter(*reference_, plain_, id, at_);
    read_states(*reference_, start_);
    put_candidate(start_);
    for (std::uint64_t i = 0; i < n; ++i) candidate_->run(id, 1);
    States one_by_one;
    for (const State& state : states_) one_by_one.push_back(read_bytes(*candidate_, whole_.program, state.whole));
    put_candidate(start_);
    candidate_->run(id, n);
    for (std::size_t s = 0; s < states_.size(); ++s) {
      const Bytes got = read_bytes(*candidate_, whole_.program, states_[s].whole);
      if (got == one_by_one[s]) continue;
      v_.report.difference = describe_change(v_, Difference::Kind::repeat, whole_.program.phases[id], at_,
                                             whole_buffer(states_[s].whole), got, one_by_one[s]);
      return;
    }
  }

  Verification& v_;
  const CompiledModel& plain_;
  const CompiledModel& whole_;
  std::unique_ptr<Runnable> reference_, moved_, scale_, candidate_;
  std::vector<BufferId> plain_of_, whole_of_;  // buffer of the same value in the other Program
  std::vector<State> states_;                  // states that change
  // State of the current step:
  std::uint64_t at_ = 0;                   // the phase's step counter
  States start_;                           // states before it
  std::map<BufferId, PlainValue> values_;  // reference values, by buffer of the plain Program
  std::vector<PlainValue> after_;          // states after it, in the order of states_
  int rounds_ = 0;                         // perturbed runs so far
  std::optional<PhaseId> phase_;           // phase of values_
  Bytes got_, scaled_, compared_;
};

}  // namespace

void verify_runs(Verification& verification) {
  RunVerification(verification).run();
}

}  // namespace graphrun
