// verify_steps.cpp: runs every step of a Program on both executors, each from the reference's inputs.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/checked.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "session/verify/verify_parts.h"

namespace graphrun {
namespace {

// A candidate state that differs from the bytes last written by host or step.
struct Damage {
  BufferId buffer;
  Bytes got, expected;
};

class StepVerification {
 public:
  explicit StepVerification(Verification& v)
      : v_(v),
        compiled_(v.compiled),
        report_(v.report),
        candidate_(load_program(*v.executors[0], program())),
        reference_(load_program(*v.executors[1], program())),
        scale_(load_program(*v.executors[1], program())) {
    write_start(v.model, compiled_, {candidate_.get(), reference_.get()});
  }

  void run() {
    compare_start();
    for (PhaseId phase = 0; phase < compiled_.step.phases.size() && !report_.difference; ++phase) run_phase(phase);
    std::stable_sort(report_.ops.begin(), report_.ops.end(),
                     [](const OpAgreement& a, const OpAgreement& b) { return a.worst > b.worst; });
  }

 private:
  const Program& program() const { return compiled_.program; }
  const Buffer& buffer(BufferId id) const { return program().buffers[id]; }
  bool is_watched(BufferId id) const { return buffer(id).storage == id && is_state(buffer(id).kind); }

  Bytes read(Runnable& runnable, BufferId id) const { return read_bytes(runnable, program(), id); }

  // ---- step by step

  void compare_start() {
    expected_states_.resize(program().buffers.size());
    for (BufferId id = 0; id < program().buffers.size() && !report_.difference; ++id) {
      if (!is_watched(id)) continue;
      Bytes got = read(*candidate_, id);
      const Bytes expected = read(*reference_, id);
      if (got != expected) blame(0, std::nullopt, {id, got, expected}, Difference::Kind::start);
      if (!is_fixed(buffer(id).kind)) expected_states_[id] = std::move(got);
    }
  }

  void run_phase(PhaseId id) {
    const StepPhase& phase = compiled_.step.phases[id];
    const auto batches = static_cast<std::uint64_t>(phase.batches.count());
    const bool training = phase.name == "train";
    const std::uint64_t steps = training ? v_.options.steps : std::min(v_.options.steps, batches);
    std::uint64_t& done = !phase.outputs.empty() ? report_.predictions
                          : training             ? report_.training_steps
                                                 : report_.evaluation_steps;
    for (const PhaseRun& one : phase_runs(v_, id, steps, false)) {
      if (report_.difference) return;
      if (one.jumps) set_counter(*reference_, compiled_, id, one.at);
      if (one.rows > 0) {
        for (const auto& [input, bytes] : prediction_inputs(v_, compiled_, id, one.rows)) {
          candidate_->write(input, bytes);
          reference_->write(input, bytes);
        }
      }
      for (std::uint64_t i = 0; i < one.count && !report_.difference; ++i, ++done) run_step_of(id, one.at + i);
    }
  }

  // One training step, one batch of an evaluation, or one prediction.
  void run_step_of(PhaseId phase, std::uint64_t at) {
    at_ = at;
    std::vector<std::pair<BufferId, Bytes>> start;
    for (BufferId id = 0; id < program().buffers.size(); ++id) {
      if (is_watched(id) && !is_fixed(buffer(id).kind)) start.emplace_back(id, read(*reference_, id));
    }
    std::optional<Damage> damage = run_steps_of(phase, false);
    if (!damage || report_.difference) return;
    // Some step wrote out of bounds, and it was detected later. Re-run from the start and check after every step.
    for (const auto& [id, bytes] : start) {
      reference_->write(id, bytes);
      candidate_->write(id, bytes);
      expected_states_[id] = bytes;
    }
    for (BufferId id = 0; id < program().buffers.size(); ++id) {
      if (is_watched(id) && is_fixed(buffer(id).kind)) candidate_->write(id, read(*reference_, id));
    }
    run_steps_of(phase, true);
    if (!report_.difference) blame(phase, std::nullopt, *damage);
  }

  std::optional<Damage> run_steps_of(PhaseId phase, bool check_each) {
    const auto steps = static_cast<std::uint32_t>(program().phases[phase].steps.size());
    for (std::uint32_t i = 0; i < steps; ++i) {
      std::optional<Damage> damage = run_step(phase, i);
      if (report_.difference || damage) return damage;
      if (check_each || i + 1 == steps) damage = find_damage();
      if (!damage) continue;
      if (check_each) blame(phase, i, *damage);
      return damage;
    }
    return std::nullopt;
  }

  // Runs a step on both from the reference's inputs and compares. Returns damage that an earlier step must have caused.
  std::optional<Damage> run_step(PhaseId phase, std::uint32_t index) {
    const Step& step = program().phases[phase].steps[index];
    const Agreement rule = agreement_of(step.op);
    const bool scaled = rule == Agreement::scaled && is_float(buffer(step.output).type.dtype);
    std::vector<BufferId> inputs = step.inputs;
    if (step.row_count != kNoBuffer) inputs.push_back(step.row_count);
    bool in_place = false;
    for (const BufferId id : inputs) {
      in_place = in_place || buffer(id).storage == buffer(step.output).storage;
      const bool fixed = is_fixed(buffer(id).kind);
      if (fixed && !scaled) continue;
      read_bytes(*reference_, program(), id, input_);
      if (!fixed) {
        if (std::optional<Damage> damage = find_damage(buffer(id).storage)) return damage;
        candidate_->write(id, input_);
        expect(id, input_);
      }
      if (!scaled) continue;
      make_absolute(buffer(id).type.dtype, input_);
      scale_->write(id, input_);
    }
    if (!in_place) poison(step.output);
    // Only once per step: a library's workspace may be larger than all other buffers.
    if (step.workspace != kNoBuffer && poisoned_.emplace(phase, index).second) poison(step.workspace);

    const std::vector<Range> neighbours = neighbours_of(step);
    std::vector<Bytes> before;
    for (const Range& range : neighbours) before.push_back(read(range));
    candidate_->run_steps(phase, index, index + 1);
    reference_->run_steps(phase, index, index + 1);
    if (scaled) scale_->run_steps(phase, index, index + 1);

    read_bytes(*candidate_, program(), step.output, got_);
    expect(step.output, got_);
    read_bytes(*reference_, program(), step.output, expected_);
    scaled_.clear();
    if (scaled) read_bytes(*scale_, program(), step.output, scaled_);
    const auto* product = step.params.get_if<MatmulParams>();
    const Precision precision = product != nullptr ? product->precision : Precision::fp32;
    if (rule == Agreement::residual) {
      std::vector<Bytes> operands;
      for (const BufferId id : step.inputs) operands.push_back(read_bytes(*reference_, program(), id));
      const DType dtype = buffer(step.output).type.dtype;
      Residual got = residual_of(dtype, operands, got_), expected = residual_of(dtype, operands, expected_);
      got_ = std::move(got.product), expected_ = std::move(expected.product), scaled_ = std::move(expected.scale);
    }
    const Agreement compared = rule == Agreement::residual ? Agreement::scaled : rule;
    compare_step(phase, index, {buffer(step.output).type, got_, expected_, compared, scaled_, precision});
    if (!report_.difference) check_loss(phase, step);
    if (report_.difference) return std::nullopt;
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      if (read(neighbours[i]) == before[i]) continue;
      const Range& range = neighbours[i];
      // Read the whole buffer, to show the position of the change.
      Damage damage{range.buffer, read(*candidate_, range.buffer), {}};
      damage.expected = damage.got;
      std::copy(before[i].begin(), before[i].end(), damage.expected.begin() + static_cast<std::ptrdiff_t>(range.first));
      blame(phase, index, damage);
      break;
    }
    return std::nullopt;
  }

  void check_loss(PhaseId phase, const Step& step) {
    const StepPhase& of = compiled_.step.phases[phase];
    if (step.op != Op::record || of.name != "train") return;
    if (buffer(step.inputs[0]).storage != buffer(compiled_.buffer(of.recorded[0].ring)).storage) return;
    const Buffer& loss = buffer(step.inputs[1]);
    const Bytes bytes = read(*reference_, step.inputs[1]);
    if (std::isfinite(element(loss.type.dtype, bytes, 0))) return;
    report_.difference =
        describe(v_, Difference::Kind::loss, program().phases[phase], at_, loss, {loss.type, bytes, bytes}, 0);
  }

  void poison(BufferId id) {
    const Bytes bytes(buffer(id).bytes, kPoison);
    candidate_->write(id, bytes);
    expect(id, bytes);
  }

  // Byte range of a buffer.
  struct Range {
    BufferId buffer;
    std::uint64_t first, bytes;
  };

  Bytes read(const Range& range) const {
    Bytes bytes(range.bytes);
    candidate_->read_range(range.buffer, range.first, bytes);
    return bytes;
  }

  // Bytes right before and after the step's output, where an off-by-one index would write, if they belong to a buffer.
  // A buffer that overlaps the output is not in use.
  std::vector<Range> neighbours_of(const Step& step) const {
    const Buffer& out = buffer(step.output);
    const std::uint64_t end = round_up(out.offset + out.bytes, kAlignment);
    std::vector<Range> found;
    const auto add = [&](BufferId id, std::uint64_t from, std::uint64_t to) {
      const Buffer& other = buffer(id);
      from = std::max(from, other.offset);
      to = std::min(to, other.offset + other.bytes);
      if (step.workspace != kNoBuffer) {  // scratch of this step
        const Buffer& scratch = buffer(step.workspace);
        if (from < scratch.offset + scratch.bytes && to > scratch.offset) return;
      }
      if (from < to) found.push_back({id, from - other.offset, to - from});
    };
    for (BufferId id = 0; id < program().buffers.size(); ++id) {
      if (buffer(id).storage != id || id == out.storage) continue;
      add(id, out.offset - std::min(out.offset, kAlignment), out.offset);
      add(id, out.offset + out.bytes, end + kAlignment);
    }
    return found;
  }

  // Records the expected bytes of the candidate if the buffer is part of a state.
  void expect(BufferId id, const Bytes& bytes) {
    Bytes& whole = expected_states_[buffer(id).storage];
    if (whole.empty()) return;
    std::byte* const at = &whole[buffer(id).offset - buffer(buffer(id).storage).offset];
    if (buffer(id).layout == Layout::strided) return scatter(buffer(id), bytes, at);
    std::memcpy(at, bytes.data(), bytes.size());
  }

  std::optional<Damage> find_damage(BufferId id) {
    if (!is_watched(id)) return std::nullopt;
    read_bytes(*candidate_, program(), id, got_);
    if (is_fixed(buffer(id).kind)) read_bytes(*reference_, program(), id, expected_);
    const Bytes& expected = is_fixed(buffer(id).kind) ? expected_ : expected_states_[id];
    if (same_bytes(got_, expected)) return std::nullopt;
    return Damage{id, got_, expected};
  }

  std::optional<Damage> find_damage() {
    for (BufferId id = 0; id < program().buffers.size(); ++id) {
      if (std::optional<Damage> damage = find_damage(id)) return damage;
    }
    return std::nullopt;
  }

  // ---- results

  OpAgreement& agreement(std::string_view op) {
    for (OpAgreement& entry : report_.ops) {
      if (entry.op == op) return entry;
    }
    report_.ops.emplace_back().op = op;
    return report_.ops.back();
  }

  void compare_step(PhaseId phase, std::uint32_t index, const Sides& sides) {
    const Step& step = program().phases[phase].steps[index];
    OpAgreement& entry = agreement(name_of(step.op));
    ++entry.steps;
    const Comparison found = compare(sides);
    if (found.worst > entry.worst) {
      entry.worst = found.worst;
      entry.node = step.name;
    }
    if (found.wrong) {
      report_.difference = describe(v_, Difference::Kind::value, program().phases[phase], at_, buffer(step.output),
                                    sides, *found.wrong, index);
      return;
    }
    entry.values += sides.elements();
    report_.values += sides.elements();
  }

  void blame(PhaseId phase, std::optional<std::uint32_t> index, const Damage& damage,
             Difference::Kind kind = Difference::Kind::outside) {
    report_.difference = describe_change(v_, kind, program().phases[phase], at_, buffer(damage.buffer), damage.got,
                                         damage.expected, index);
  }

  Verification& v_;
  const CompiledModel& compiled_;
  VerifyReport& report_;
  std::unique_ptr<Runnable> candidate_, reference_, scale_;
  Bytes input_, got_, expected_, scaled_;  // buffers of the current step
  std::vector<Bytes> expected_states_;     // per storage: bytes last given to the candidate's state; empty: not a state
  std::set<std::pair<PhaseId, std::uint32_t>> poisoned_;  // steps whose workspace was poisoned
  std::uint64_t at_ = 0;                                  // the phase's step counter
};

}  // namespace

void verify_steps(Verification& verification) {
  StepVerification(verification).run();
}

}  // namespace graphrun
