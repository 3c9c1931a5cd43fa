// weights_contents.cpp: lists the arrays of a weights file for inspection.
#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/file.h"
#include "base/not_moved.h"
#include "graphrun/error.h"
#include "graphrun/weights.h"
#include "session/weights/archive.h"

namespace graphrun {

struct WeightsFile::Impl {
  std::string path;
  std::shared_ptr<const Archive> file;
  std::vector<ArrayInfo> entries;
};

WeightsFile::WeightsFile(const std::string& path) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->file = open_archive(path, std::make_shared<const std::string>(read_file(path)));
  for (const std::string& name : impl_->file->names()) {
    const data::TensorInfo info = impl_->file->info(name);
    impl_->entries.push_back({name, info.dtype, info.shape});
  }
}
WeightsFile::~WeightsFile() = default;
WeightsFile::WeightsFile(WeightsFile&&) noexcept = default;
WeightsFile& WeightsFile::operator=(WeightsFile&&) noexcept = default;

const std::vector<WeightsFile::ArrayInfo>& WeightsFile::entries() const {
  return not_moved(impl_, "weights file").entries;
}

const std::string& WeightsFile::provenance() const {
  return not_moved(impl_, "weights file").file->notes().provenance;
}

HostTensor WeightsFile::read(const std::string& name) const {
  const Impl& impl = not_moved(impl_, "weights file");
  const std::vector<std::string>& names = impl.file->names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string near = nearest_name(name, names);
    throw Error(ErrorKind::input, "weights.unknown", fmt::format("'{}' has no array '{}'", impl.path, name),
                near.empty() ? std::string() : fmt::format("did you mean '{}'?", near));
  }
  const data::Array array = impl.file->read(name);
  return std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        using Kept = std::conditional_t<std::is_same_v<T, std::uint8_t>, std::int32_t, T>;
        HostTensor tensor(dtype_of<Kept>(), array.shape);
        std::copy(values.begin(), values.end(), tensor.elements<Kept>().begin());
        return tensor;
      },
      static_cast<const decltype(array.values)::Base&>(array.values));
}

}  // namespace graphrun
