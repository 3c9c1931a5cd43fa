#include "executors/flat_program.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "executors/common/load_check.h"
#include "graphrun/error.h"
#include "graphrun/params.h"

namespace graphrun {
namespace {

static_assert(GR_MAX_RANK == kMaxRank && GR_MAX_OPERANDS == kMaxOperands && GR_NO_BUFFER == kNoBuffer);
static_assert(std::is_same_v<BufferId, std::uint32_t>);  // operands are shared by pointer
static_assert(static_cast<int>(DType::f32) == GR_F32 && static_cast<int>(DType::boolean) == GR_BOOL);
static_assert(static_cast<int>(BufferKind::data) == GR_DATA && static_cast<int>(BufferKind::slot) == GR_SLOT);
static_assert(static_cast<int>(BufferKind::activation) == GR_ACTIVATION);
static_assert(static_cast<int>(BufferKind::workspace) == GR_WORKSPACE);

gr_tensor_type flat_type(const TensorType& type) {
  gr_tensor_type flat{};
  flat.type.dtype = static_cast<gr_dtype>(type.dtype);
  flat.type.rank = type.shape.rank();
  for (int axis = 0; axis < type.shape.rank(); ++axis) flat.type.shape[axis] = type.shape[axis];
  flat.rows = type.rows;
  return flat;
}

// Names are literals, which are null-terminated.
std::vector<gr_attribute> flat_attributes(const Params& params) {
  std::vector<gr_attribute> attributes;
  params.describe([&attributes](std::string_view name, const auto& value) {
    gr_attribute& attribute = attributes.emplace_back();
    attribute.name = name.data();
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_arithmetic_v<T>) {
      // 1e30 is out of range: the conversion would be undefined.
      if (!std::is_floating_point_v<T> || std::abs(static_cast<double>(value)) < 0x1p63)
        attribute.integer = static_cast<std::int64_t>(value);
      attribute.number = static_cast<double>(value);
    } else {
      attribute.list = value.data();
      attribute.list_count = value.size();
    }
  });
  return attributes;
}

}  // namespace

TensorType type_of(const gr_tensor_type& flat) {
  if (flat.type.rank < 0 || flat.type.rank > kMaxRank || static_cast<int>(flat.type.dtype) < 0 ||
      static_cast<int>(flat.type.dtype) > GR_BOOL) {
    throw Error(ErrorKind::input, "executor.signature", "invalid tensor type: rank or dtype out of range");
  }
  TensorType type{static_cast<DType>(flat.type.dtype), {}, flat.rows};
  for (int axis = 0; axis < flat.type.rank; ++axis) type.shape.push_back(flat.type.shape[axis]);
  return type;
}

FlatSignature::FlatSignature(const StepSignature& step)
    : params_(step.params), output_(flat_type(step.output)), attributes_(flat_attributes(params_)) {
  for (const TensorType& input : step.inputs) inputs_.push_back(flat_type(input));
  flat_ = {sizeof flat_,          name_of(step.op).data(), array_of(inputs_), &output_,
           array_of(attributes_), step.partial_rows,       &params_};
}

FlatProgram::FlatProgram(const Program& program) : program_(program) {
  for (const Buffer& buffer : program_.buffers) types_.push_back(flat_type(buffer.type));
  for (const Buffer& buffer : program_.buffers) {
    buffers_.push_back({buffer.name.c_str(), &types_[buffers_.size()], static_cast<std::int32_t>(buffer.kind),
                        buffer.poll ? 1 : 0, buffer.storage, buffer.offset, buffer.bytes});
  }
  for (const Phase& phase : program_.phases) {
    std::vector<gr_step>& steps = steps_.emplace_back();
    for (const Step& step : phase.steps) {
      const FlatSignature& signature = signatures_.emplace_back(signature_of(program_, step));
      steps.push_back(
          {step.name.c_str(), &signature.get(), array_of(step.inputs), step.output, step.workspace, step.row_count});
    }
    phases_.push_back({phase.name.c_str(), phase.capacity, array_of(steps)});
  }
  for (const InitialValue& value : program_.initial)
    initial_.push_back({value.buffer, value.bytes.data(), value.bytes.size()});
  flat_ = {sizeof flat_,       program_.name.c_str(), program_.target.c_str(), program_.arena_bytes,
           array_of(buffers_), array_of(phases_),     array_of(initial_)};
}

}  // namespace graphrun
