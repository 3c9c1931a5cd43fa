// verify.cpp: runs two executors step by step from equal inputs, or freely side by side.
#include "graphrun/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "graphrun/error.h"
#include "session/compare.h"
#include "session/planned.h"

namespace graphrun {
namespace {

using Bytes = std::vector<std::byte>;

// What no step may leave behind by doing nothing: reads as NaN, as -1, and as neither true nor false.
constexpr std::byte kPoison{0xff};

bool is_fixed(BufferKind kind) {
  return kind == BufferKind::data || kind == BufferKind::constant;
}

std::uint64_t round_up(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

// A state of the candidate that is not what was last written to it, by host or step.
struct Damage {
  BufferId buffer;
  Bytes got, expected;
};

class Verification {
 public:
  Verification(const Model& model, const VerifyOptions& options)
      : options_(options),
        executors_{choose_executor(options.executor, options.custom_executor, options.threads),
                   choose_executor(options.against, options.custom_against, options.threads)},
        planned_(plan_model(model, executors_, {options.target, options.passes, false, {}})),
        candidate_(executors_[0]->load(program())),
        reference_(executors_[1]->load(program())) {
    if (options.steps == 0) throw Error(ErrorKind::input, "verify.steps", "verify needs at least one step");
    write_start(model, planned_, *candidate_);
    write_start(model, planned_, *reference_);
    report_.executor = executors_[0]->name();
    report_.against = executors_[1]->name();
    if (report_.executor == report_.against) report_.against += " (reference)";
  }

  VerifyReport run() {
    if (options_.trajectory) {
      run_freely();
    } else {
      scale_ = executors_[1]->load(program());
      compare_start();
      for (PhaseId phase = 0; phase < planned_.step.phases.size() && !report_.difference; ++phase) run_phase(phase);
      if (report_.passed() && report_.training_steps + report_.evaluation_steps == 0)
        nothing_to_do("nothing to train or to evaluate");
      std::stable_sort(report_.ops.begin(), report_.ops.end(),
                       [](const OpAgreement& a, const OpAgreement& b) { return a.worst > b.worst; });
    }
    return std::move(report_);
  }

 private:
  const Program& program() const { return planned_.program; }
  const Buffer& buffer(BufferId id) const { return program().buffers[id]; }
  bool is_watched(BufferId id) const { return buffer(id).storage == id && is_state(buffer(id).kind); }

  [[noreturn]] static void nothing_to_do(std::string_view why) {
    throw Error(ErrorKind::input, "verify.nothing", fmt::format("there is nothing to verify: the model has {}", why));
  }

  Bytes read(Runnable& runnable, BufferId id) const {
    Bytes bytes(buffer(id).bytes);
    runnable.read(id, bytes);
    return bytes;
  }

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
    const StepPhase& phase = planned_.step.phases[id];
    if (phase.batches == 0) return;  // prediction: it has no data of its own, and evaluation runs the same steps
    const auto batches = static_cast<std::uint64_t>(phase.batches);
    const bool training = phase.name == "train";
    const std::uint64_t n = training ? options_.steps : std::min(options_.steps, batches);
    std::uint64_t& done = training ? report_.training_steps : report_.evaluation_steps;
    for (std::uint64_t at = 0; at < n && !report_.difference; ++at, ++done) run_step_of(id, at);
    const bool last_is_short = phase.batches * program().phases[id].capacity > phase.samples;
    if (last_is_short && n < batches && !report_.difference) {
      const BufferId counter = find_buffer(program(), phase.name + "/step:counter");
      if (counter == kNoBuffer) throw std::logic_error("verify: no step counter in phase " + phase.name);
      const std::uint64_t last = batches - 1;
      reference_->write(counter, std::as_bytes(std::span(&last, 1)));
      run_step_of(id, last);
      ++done;
    }
  }

  // One training step, or one batch of an evaluation.
  void run_step_of(PhaseId phase, std::uint64_t at) {
    at_ = at;
    std::vector<std::pair<BufferId, Bytes>> start;
    for (BufferId id = 0; id < program().buffers.size(); ++id) {
      if (is_watched(id) && !is_fixed(buffer(id).kind)) start.emplace_back(id, read(*reference_, id));
    }
    std::optional<Damage> damage = run_steps_of(phase, false);
    if (!damage || report_.difference) return;
    // Some step wrote where it must not, and it showed later. Once more from the start, looking after every step.
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

  std::optional<Damage> run_steps_of(PhaseId phase, bool look_after_each) {
    const auto steps = static_cast<std::uint32_t>(program().phases[phase].steps.size());
    for (std::uint32_t i = 0; i < steps; ++i) {
      std::optional<Damage> damage = run_step(phase, i);
      if (report_.difference || damage) return damage;
      if (look_after_each || i + 1 == steps) damage = find_damage();
      if (!damage) continue;
      if (look_after_each) blame(phase, i, *damage);
      return damage;
    }
    return std::nullopt;
  }

  // Runs a step on both from the reference's inputs and compares. Returns what an earlier step must have damaged.
  std::optional<Damage> run_step(PhaseId phase, std::uint32_t index) {
    const Step& step = program().phases[phase].steps[index];
    const Rule rule = rule_of(step.op);
    const bool scaled = rule == Rule::scaled && is_float(buffer(step.output).type.dtype);
    std::vector<BufferId> inputs = step.inputs;
    if (step.row_count != kNoBuffer) inputs.push_back(step.row_count);
    bool in_place = false;
    for (const BufferId id : inputs) {
      in_place = in_place || buffer(id).storage == buffer(step.output).storage;
      const bool fixed = is_fixed(buffer(id).kind);
      if (fixed && !scaled) continue;
      const Bytes bytes = read(*reference_, id);
      if (scaled) scale_->write(id, absolute(buffer(id).type.dtype, bytes));
      if (fixed) continue;
      if (std::optional<Damage> damage = find_damage(buffer(id).storage)) return damage;
      candidate_->write(id, bytes);
      expect(id, bytes);
    }
    if (!in_place) poison(step.output);
    if (step.workspace != kNoBuffer) poison(step.workspace);

    const std::vector<BufferId> neighbours = neighbours_of(step);
    std::vector<Bytes> before;
    for (const BufferId id : neighbours) before.push_back(read(*candidate_, id));
    candidate_->run_steps(phase, index, index + 1);
    reference_->run_steps(phase, index, index + 1);
    if (scaled) scale_->run_steps(phase, index, index + 1);

    const Bytes got = read(*candidate_, step.output);
    expect(step.output, got);
    const Bytes expected = read(*reference_, step.output);
    const Bytes scale = scaled ? read(*scale_, step.output) : Bytes();
    const auto* product = std::get_if<MatmulParams>(&step.params);
    const Precision precision = product != nullptr ? product->precision : Precision::fp32;
    compare(phase, index, {buffer(step.output).type, got, expected, rule, scale, precision});
    if (report_.difference) return std::nullopt;
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      Damage damage{neighbours[i], read(*candidate_, neighbours[i]), std::move(before[i])};
      forgive(damage, step.output);
      if (step.workspace != kNoBuffer) forgive(damage, step.workspace);
      if (damage.got != damage.expected) {
        blame(phase, index, damage);
        break;
      }
    }
    return std::nullopt;
  }

  static Bytes absolute(DType dtype, Bytes bytes) {
    // The sign is the highest bit of the last byte of a float on every machine we know.
    if (!is_float(dtype)) return bytes;
    for (std::size_t i = size_of(dtype); i <= bytes.size(); i += size_of(dtype)) bytes[i - 1] &= std::byte{0x7f};
    return bytes;
  }

  void poison(BufferId id) {
    const Bytes bytes(buffer(id).bytes, kPoison);
    candidate_->write(id, bytes);
    expect(id, bytes);
  }

  // Storages with bytes right before or after what the step writes, where an index that is one off would land.
  std::vector<BufferId> neighbours_of(const Step& step) const {
    const Buffer& out = buffer(step.output);
    const std::uint64_t from = out.offset - std::min(out.offset, kAlignment);
    const std::uint64_t to = round_up(out.offset + out.bytes) + kAlignment;
    std::vector<BufferId> found;
    for (BufferId id = 0; id < program().buffers.size(); ++id) {
      const Buffer& other = buffer(id);
      if (other.storage != id || id == out.storage || other.bytes == 0) continue;
      if (other.offset < to && other.offset + other.bytes > from) found.push_back(id);
    }
    return found;
  }

  // A storage may share addresses with what the step writes when it is not in use: those bytes may change.
  void forgive(Damage& damage, BufferId written) const {
    const Buffer& a = buffer(damage.buffer);
    const Buffer& b = buffer(written);
    const std::uint64_t from = std::max(a.offset, b.offset);
    const std::uint64_t to = std::min(a.offset + a.bytes, b.offset + b.bytes);
    for (std::uint64_t at = from; at < to; ++at) damage.got[at - a.offset] = damage.expected[at - a.offset];
  }

  // Notes that the candidate's state now holds these bytes, where the buffer lies in a state.
  void expect(BufferId id, const Bytes& bytes) {
    Bytes& whole = expected_states_[buffer(id).storage];
    if (!whole.empty())
      std::memcpy(whole.data() + (buffer(id).offset - buffer(buffer(id).storage).offset), bytes.data(), bytes.size());
  }

  std::optional<Damage> find_damage(BufferId id) const {
    if (!is_watched(id)) return std::nullopt;
    Damage damage{id, read(*candidate_, id), is_fixed(buffer(id).kind) ? read(*reference_, id) : expected_states_[id]};
    if (damage.got == damage.expected) return std::nullopt;
    return damage;
  }

  std::optional<Damage> find_damage() const {
    for (BufferId id = 0; id < program().buffers.size(); ++id) {
      if (std::optional<Damage> damage = find_damage(id)) return damage;
    }
    return std::nullopt;
  }

  // ---- results

  OpAgreement& agreement(const std::string& op) {
    for (OpAgreement& entry : report_.ops) {
      if (entry.op == op) return entry;
    }
    report_.ops.emplace_back().op = op;
    return report_.ops.back();
  }

  void compare(PhaseId phase, std::uint32_t index, const Sides& sides) {
    const Step& step = program().phases[phase].steps[index];
    OpAgreement& entry = agreement(step.op);
    ++entry.steps;
    for (std::size_t i = 0; i < sides.elements(); ++i) {
      const double ratio = sides.ratio(i);
      if (ratio > entry.worst) {
        entry.worst = ratio;
        entry.node = step.name;
      }
      if (ratio <= 1) continue;
      report_.difference = describe(Difference::Kind::value, phase, step.output, sides, i);
      name_step(phase, index);
      return;
    }
    entry.values += sides.elements();
    report_.values += sides.elements();
  }

  void blame(PhaseId phase, std::optional<std::uint32_t> index, const Damage& damage,
             Difference::Kind kind = Difference::Kind::outside) {
    const Sides sides{buffer(damage.buffer).type, damage.got, damage.expected, Rule::exact};
    const std::size_t width = size_of(sides.type.dtype);
    std::size_t i = 0;
    while (std::memcmp(damage.got.data() + i * width, damage.expected.data() + i * width, width) == 0) ++i;
    report_.difference = describe(kind, phase, damage.buffer, sides, i);
    if (index) name_step(phase, *index);
  }

  Difference describe(Difference::Kind kind, PhaseId phase, BufferId id, const Sides& sides, std::size_t i) const {
    Difference difference;
    difference.kind = kind;
    difference.executor = report_.executor;
    difference.against = report_.against;
    difference.phase = program().phases[phase].name;
    difference.phase_step = at_;
    difference.steps = program().phases[phase].steps.size();
    difference.buffer = buffer(id).name;
    difference.index = index_of(sides.type.shape, i);
    difference.got = element_text(sides.type.dtype, sides.got, i);
    difference.expected = element_text(sides.type.dtype, sides.expected, i);
    difference.tolerance = sides.tolerance(i);
    const bool outside = kind == Difference::Kind::outside;
    difference.neighbourhood =
        neighbourhood(sides, i, outside ? "after" : report_.executor, outside ? "before" : report_.against);
    return difference;
  }

  void name_step(PhaseId phase, std::uint32_t index) {
    const Step& step = program().phases[phase].steps[index];
    report_.difference->step = index + 1;
    report_.difference->op = step.op;
    report_.difference->node = step.name;
  }

  // ---- side by side

  void run_freely() {
    const auto& phases = planned_.step.phases;
    if (phases.empty() || phases[0].name != "train") nothing_to_do("no training");
    while (report_.training_steps < options_.steps && !report_.difference) {
      at_ = report_.training_steps++;
      candidate_->run(0, 1);
      reference_->run(0, 1);
      compare_parameters();
    }
  }

  void compare_parameters() {
    Divergence worst{report_.training_steps, {}, -1};
    for (const auto& [name, node] : planned_.step.parameters) {
      const BufferId id = planned_.buffer(node);
      const Bytes got = read(*candidate_, id), expected = read(*reference_, id);
      const Sides sides{buffer(id).type, got, expected, Rule::exact};
      double difference = 0, largest = 0;
      std::size_t where = 0;
      for (std::size_t i = 0; i < sides.elements(); ++i) {
        const double a = element(sides.type.dtype, got, i), b = element(sides.type.dtype, expected, i);
        if (!std::isfinite(a) || !std::isfinite(b)) return refuse_parameter(id, sides, i);
        if (std::fabs(a - b) > difference) {
          difference = std::fabs(a - b);
          where = i;
        }
        largest = std::max(largest, std::fabs(b));
      }
      report_.values += sides.elements();
      if (difference > 0 && largest > 0) difference /= largest;
      if (difference > worst.difference) worst = {worst.step, name, difference};
      if (options_.tolerance && difference > *options_.tolerance) return refuse_parameter(id, sides, where);
    }
    report_.growth.push_back(worst);
  }

  void refuse_parameter(BufferId id, const Sides& sides, std::size_t i) {
    report_.difference = describe(Difference::Kind::parameter, 0, id, sides, i);
    report_.difference->tolerance = options_.tolerance.value_or(0);
  }

  const VerifyOptions& options_;
  std::vector<std::shared_ptr<Executor>> executors_;  // candidate, reference
  Planned planned_;
  std::unique_ptr<Runnable> candidate_, reference_, scale_;
  std::vector<Bytes> expected_states_;  // by storage: what the candidate's state was last given; empty: not a state
  std::uint64_t at_ = 0;                // the phase's step counter
  VerifyReport report_;
};

}  // namespace

std::string to_string(const Difference& d) {
  std::string text = fmt::format("{}, step {}: ", d.phase, d.phase_step);
  const std::string place = d.index.empty() ? d.buffer : fmt::format("{}[{}]", d.buffer, fmt::join(d.index, ", "));
  switch (d.kind) {
    case Difference::Kind::value:
      text += fmt::format("{} ({}, {} of {}) differs\n  {} is {} on {} and {} on {}, the tolerance is {:.3g}\n", d.node,
                          d.op, d.step, d.steps, place, d.got, d.executor, d.expected, d.against, d.tolerance);
      break;
    case Difference::Kind::outside:
      text += d.node.empty() ? "some step" : fmt::format("{} ({}, {} of {})", d.node, d.op, d.step, d.steps);
      text += fmt::format(" writes outside its output on {}\n  {} was {} and became {}\n", d.executor, place,
                          d.expected, d.got);
      break;
    case Difference::Kind::start:
      text = fmt::format("{} is not the same before the first step\n  {} is {} on {} and {} on {}\n", d.buffer, place,
                         d.got, d.executor, d.expected, d.against);
      break;
    case Difference::Kind::parameter:
      text += fmt::format("the parameter {} went astray\n  {} is {} on {} and {} on {}", d.buffer, place, d.got,
                          d.executor, d.expected, d.against);
      text += d.tolerance > 0 ? fmt::format(", more than {:.3g} of the largest element apart\n", d.tolerance) : "\n";
      break;
  }
  return text + d.neighbourhood;
}

VerifyReport verify(const Model& model, const VerifyOptions& options) {
  return Verification(model, options).run();
}

}  // namespace graphrun
