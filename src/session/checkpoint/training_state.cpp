#include "session/checkpoint/training_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/checksum.h"
#include "base/file.h"
#include "graph/frontend/builder_impl.h"
#include "graphrun/error.h"
#include "session/weights/initial_values.h"
#include "session/weights/weights_file.h"

namespace graphrun {
namespace {

constexpr std::size_t kBytesPerRead = std::size_t{1} << 20;
constexpr std::size_t kSumBytes = 8;
constexpr std::string_view kFormat = "1";
constexpr std::string_view kText = "checkpoint", kPlan = "checkpoint.plan_hash", kModel = "checkpoint.model_hash",
                           kExecutor = "checkpoint.executor";

std::string text_key(std::string_view entry) {
  return fmt::format("checkpoint.{}", entry);
}
std::string state_name(std::string_view name) {
  return std::string(kCheckpointPrefix) + std::string(name);
}

// Two i32, so that it needs no more alignment than the values before it.
const TensorType kSumType = {DType::i32, Shape{2}, 0};
const TensorType kReal = {DType::f64, Shape{}, 0}, kCount = {DType::u64, Shape{}, 0};

// Progress of train(), in addition to the program's states.
struct ProgressField {
  std::string_view name;
  double& (*real)(TrainingProgress&);
  std::uint64_t& (*count)(TrainingProgress&);
};
#define REAL(member) [](TrainingProgress& p) -> double& { return p.member; }, nullptr
#define COUNT(member) nullptr, [](TrainingProgress& p) -> std::uint64_t& { return p.member; }
constexpr ProgressField kProgress[] = {
    {"epoch_sum", REAL(epoch.sum)},
    {"epoch_samples", REAL(epoch.samples)},
    {"epoch_loss", REAL(epoch.mean)},
    {"unreported", COUNT(unreported)},
    {"best_loss", REAL(best_loss)},
    {"best_step", COUNT(best_step)},
    {"stopping.seen", COUNT(stopping.stopping.seen)},
    {"stopping.best", REAL(stopping.stopping.best)},
    {"stopping.waited", COUNT(stopping.stopping.waited)},
    {"stopping.best_step", COUNT(stopping.best_step)},
    {"stopping.best_epoch", COUNT(stopping.best_epoch)},
    {"plateau.seen", COUNT(stopping.plateau.seen)},
    {"plateau.best", REAL(stopping.plateau.best)},
    {"plateau.waited", COUNT(stopping.plateau.waited)},
    {"plateau.cooldown", COUNT(stopping.cooldown)},
    {"plateau.lr_factor", REAL(stopping.lr_factor)},
};
#undef REAL
#undef COUNT

[[noreturn]] void reject(const std::string& path, std::string_view code, std::string_view why, std::string hint = {}) {
  throw Error(ErrorKind::input, std::string(code), fmt::format("'{}' {}", path, why), std::move(hint));
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

CheckpointFile::CheckpointFile(const std::string& path)
    : path_(path), bytes_(std::make_shared<const std::string>(read_file(path))), contents_(path, bytes_) {
  const std::string format = contents_.text(std::string(kText));
  if (format.empty())
    reject(path, "checkpoint.none", "is not a checkpoint: it has no training state",
           "--weights=FILE starts a training run from weights");
  const std::span<const std::byte> bytes = std::as_bytes(std::span(*bytes_));
  std::uint64_t sum = 0;  // the size suffices: the header alone is longer
  std::memcpy(&sum, bytes.last(kSumBytes).data(), kSumBytes);
  if (sum != checksum(bytes.first(bytes.size() - kSumBytes)))
    reject(path, "checkpoint.damaged", "is damaged: the checksum does not match");
  if (format != kFormat)
    reject(path, kOtherFormat, fmt::format("is a checkpoint of format {}, expected {}", format, kFormat),
           "the version of graphrun that wrote it can resume it");
}

TrainingState::TrainingState(SessionAccess::Impl& session)
    : loaded_(session.loaded), trainer_(session.trainer.state()), config_(training_config(loaded_.model)) {
  loaded_.training();  // throws if there is nothing to train
  const Model& model = loaded_.model;
  const GraphBuilder::Impl& graph = model.graph.impl();
  const std::unordered_map<std::string, ir::NodeId> trained(loaded_.compiled.step.parameters.begin(),
                                                            loaded_.compiled.step.parameters.end());
  for (const auto& [id, parameter] : graph.parameters) {
    const ir::Node& node = graph.graph[id];
    if (const auto used = trained.find(node.name); used != trained.end())
      parts_.push_back(
          {node.name, loaded_.program().buffers[loaded_.buffer(used->second)].type, loaded_.buffer(used->second)});
    else  // unused, so it keeps its initial value
      add_constant(node.name,
                   initial_value(parameter.init, node.name, {parameter_type(model.train.precision), node.type.shape, 0},
                                 model.train.seed));
  }
  for (auto& [name, values] : fitted_arrays(model.data)) add_constant(name, std::move(values));
  add_states(BufferKind::slot);
  add_states(BufferKind::counter);
  add_progress();
  parts_.push_back({state_name("checksum"), kSumType});

  data::Texts texts = safetensors_texts(notes_of(model, loaded_.program().math, true));
  const auto add = [&](std::string_view key, std::string text) { texts.emplace_back(key, std::move(text)); };
  add(kText, std::string(kFormat));
  add(kExecutor, std::string(loaded_.executor->name()));
  add(kModel, fingerprint_of(config_));
  add(kPlan, plan_hash(loaded_.program()));
  for (const ConfigEntry& entry : config_) add(text_key(entry.key), entry.text);

  std::vector<std::pair<std::string, TensorType>> types;
  for (const StoredValue& part : parts_) types.emplace_back(part.name, part.type);
  data::SafetensorsHeader header = data::safetensors_header(types, texts);
  header_ = std::move(header.bytes);
  std::vector<StoredValue> ordered;
  for (const std::size_t i : header.order) ordered.push_back(std::move(parts_[i]));
  parts_ = std::move(ordered);
  piece_.resize(kBytesPerRead);
}

void TrainingState::add_states(BufferKind kind) {
  const std::vector<Buffer>& buffers = loaded_.program().buffers;
  for (BufferId id = 0; id < buffers.size(); ++id) {
    if (buffers[id].kind == kind && buffers[id].storage == id)
      parts_.push_back({state_name(buffers[id].name), buffers[id].type, id});
  }
}

void TrainingState::add_progress() {
  TrainingProgress& progress = trainer_.progress;
  for (const ProgressField& field : kProgress) {
    StoredValue part{state_name(field.name), field.real ? kReal : kCount};
    part.host = field.real ? std::as_writable_bytes(std::span(&field.real(progress), 1))
                           : std::as_writable_bytes(std::span(&field.count(progress), 1));
    parts_.push_back(std::move(part));
  }
  if (std::vector<EpochMean>& means = trainer_.objectives; !means.empty()) {
    StoredValue part{state_name("objectives"), {DType::f64, {static_cast<std::int64_t>(means.size()), 3}, 0}};
    part.host = std::as_writable_bytes(std::span(means));
    parts_.push_back(std::move(part));
  }
  // Parameters that early_stopping would restore at the end.
  for (std::size_t i = 0; i < trainer_.best.buffers().size(); ++i) {
    const Buffer& buffer = loaded_.program().buffers[trainer_.best.buffers()[i]];
    parts_.push_back({state_name("best:" + buffer.name), buffer.type, kNoBuffer, trainer_.best.bytes(i)});
  }
}

void TrainingState::add_constant(std::string name, HostTensor value) {
  StoredValue part{std::move(name), {value.dtype(), value.shape(), 0}};
  part.is_state = false;
  part.host = constants_.emplace_back(std::move(value)).bytes();  // stays in place when the tensor moves
  parts_.push_back(std::move(part));
}

std::uint64_t TrainingState::step() const {
  return loaded_.done[loaded_.training()];
}

void TrainingState::read(const StoredValue& part, std::uint64_t first, std::span<std::byte> to) const {
  if (part.buffer != kNoBuffer) return loaded_.runnable->read_range(part.buffer, first, to);
  const auto from = part.host.subspan(first, to.size());
  std::copy(from.begin(), from.end(), to.begin());
}

bool TrainingState::write(const std::function<void(std::string_view)>& sink) {
  if (!loaded_.parameters_finite()) return false;
  Checksum sum;
  const auto put = [&](std::span<const std::byte> bytes) {
    sum.add(bytes);
    sink(as_text(bytes));
  };
  put(std::as_bytes(std::span(header_)));
  for (const StoredValue& part : std::span(parts_).first(parts_.size() - 1)) {
    const std::uint64_t bytes = part.type.bytes();
    for (std::uint64_t first = 0; first < bytes; first += kBytesPerRead) {
      const auto piece = std::span(piece_).first(std::min<std::uint64_t>(kBytesPerRead, bytes - first));
      read(part, first, piece);
      put(piece);
    }
  }
  const std::uint64_t value = sum.value();
  sink(as_text(std::as_bytes(std::span(&value, 1))));
  return true;
}

// Runs after the config check, so a mismatch here is very unlikely.
void TrainingState::check_parts(const CheckpointFile& file) const {
  std::vector<Diagnostic> found;
  const auto add = [&](std::string message) {
    found.push_back({.code = "checkpoint.differs", .message = std::move(message), .file = file.path()});
  };
  for (const std::string& line : differences([&](auto key) { return file.contents().text(text_key(key)); }, config_))
    add(line);
  if (found.empty()) {
    for (const StoredValue& part : parts_) {
      if (!file.contents().has(part.name)) {
        const bool is_needed = !part.name.starts_with(state_name("evaluate."));
        if (is_needed) add(fmt::format("the checkpoint has no '{}'", part.name));
        continue;
      }
      const data::TensorInfo info = file.contents().info(part.name);
      if (info.dtype != name_of(part.type.dtype) || !(info.shape == part.type.shape))
        add(fmt::format("'{}' is {}{} in the checkpoint, {} here", part.name, info.dtype, to_string(info.shape),
                        to_string(part.type)));
    }
  }
  if (!found.empty()) throw Error(ErrorKind::input, std::move(found));
}

CheckpointInfo TrainingState::restore(const CheckpointFile& file) {
  check_parts(file);
  const auto bytes_of = [&](const auto& part) { return std::as_bytes(std::span(file.contents().values(part.name))); };
  const auto number_of = [&](ir::NodeId counter) -> std::optional<std::uint64_t> {
    const BufferId id = loaded_.buffer(counter);
    for (const StoredValue& part : parts_) {
      if (part.buffer != id || !file.contents().has(part.name)) continue;
      std::uint64_t number = 0;
      std::memcpy(&number, bytes_of(part).data(), sizeof number);
      return number;
    }
    return std::nullopt;
  };

  const std::size_t training = loaded_.training();
  const std::uint64_t of_epoch = loaded_.steps_of_epoch();
  CheckpointInfo info;
  info.path = file.path();
  info.step = number_of(loaded_.phases()[training].counter).value();
  info.epoch = static_cast<std::int64_t>(info.step / of_epoch);
  info.executor = file.contents().text(std::string(kExecutor));
  info.model_hash = file.contents().text(std::string(kModel));
  info.plan_hash = file.contents().text(std::string(kPlan));
  info.same_plan = info.plan_hash == plan_hash(loaded_.program());
  const auto epochs = static_cast<std::uint64_t>(loaded_.model.train.epochs);
  if (info.step / of_epoch > epochs || (info.step / of_epoch == epochs && info.step % of_epoch != 0))
    reject(file.path(), "checkpoint.beyond",
           fmt::format("is of step {}, in epoch {}: beyond the {} epochs of this training", info.step, info.epoch + 1,
                       epochs),
           "--epochs=N continues with more epochs");

  for (const StoredValue& part : parts_) {
    if (!part.is_state || &part == &parts_.back() || !file.contents().has(part.name)) continue;
    const std::span<const std::byte> bytes = bytes_of(part);
    if (part.buffer != kNoBuffer)
      loaded_.runnable->write(part.buffer, bytes);
    else
      std::copy(bytes.begin(), bytes.end(), part.host.begin());
  }
  for (std::size_t phase = 0; phase < loaded_.done.size(); ++phase) {
    const ir::NodeId counter = loaded_.phases()[phase].counter;
    if (counter == ir::kNoNode) continue;
    if (const auto steps = number_of(counter)) loaded_.set_done(phase, *steps);
  }
  trainer_.resumes = true;
  info.best_step = trainer_.progress.best_step;
  return info;
}

}  // namespace graphrun
