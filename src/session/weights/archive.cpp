#include "session/weights/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "data/formats/npy.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

// Texts stored with the tensors: in safetensors under its own keys, in NPZ as arrays of bytes.
struct Note {
  std::string WeightsNotes::*text;
  std::string_view key, array;
};
constexpr Note kNotes[] = {{&WeightsNotes::model, "graphrun.model", {}},
                           {&WeightsNotes::provenance, "graphrun.origin", "data:origin"},
                           {&WeightsNotes::math, "graphrun.math", "train:math"},
                           {&WeightsNotes::precision, "graphrun.precision", "train:precision"}};

// Converts text to an array of its bytes.
HostTensor bytes_of(const std::string& text) {
  HostTensor tensor(DType::i32, Shape{static_cast<std::int64_t>(text.size())});
  std::transform(text.begin(), text.end(), tensor.elements<std::int32_t>().begin(),
                 [](char c) { return static_cast<std::int32_t>(static_cast<unsigned char>(c)); });
  return tensor;
}

std::string text_of(const data::Array& array, const std::string& path, std::string_view name) {
  const auto* bytes = std::get_if<std::vector<std::int32_t>>(&array.values);
  const bool is_text =
      bytes && std::all_of(bytes->begin(), bytes->end(), [](std::int32_t b) { return b >= 0 && b < 256; });
  if (!is_text) throw Error(ErrorKind::input, "weights.fitted", fmt::format("'{}': '{}' is not a text", path, name));
  std::string text;
  for (const std::int32_t byte : *bytes) text += static_cast<char>(static_cast<unsigned char>(byte));
  return text;
}

data::TensorInfo info_of(const data::Npz& file, const std::string& name) {
  const data::NpyHeader header = file.header(name);  // NumPy's 'f4' is f32 here
  return {header.type == "b1" ? "bool" : fmt::format("{}{}", header.type[0], 8 * (header.type[1] - '0')), header.shape};
}
data::TensorInfo info_of(const data::Safetensors& file, const std::string& name) {
  return file.info(name);
}

std::string text_under(const data::Npz&, std::string_view) {
  return {};
}
std::string text_under(const data::Safetensors& file, std::string_view key) {
  return file.text(std::string(key));
}

// A safetensors file converted from our NPZ by other tools also has the arrays.
template <class File>
class ArchiveOf final : public Archive {
 public:
  ArchiveOf(const std::string& path, std::shared_ptr<const std::string> bytes) : file_(path, std::move(bytes)) {
    for (const Note& note : kNotes) notes_.*note.text = text_under(file_, note.key);
    for (const std::string& name : file_.names()) {
      const Note* note = std::find_if(std::begin(kNotes), std::end(kNotes),
                                      [&](const Note& n) { return !n.array.empty() && n.array == name; });
      if (note == std::end(kNotes)) {
        names_.push_back(name);
      } else if ((notes_.*note->text).empty()) {
        notes_.*note->text = text_of(file_.read(name), path, name);
      }
    }
  }
  const std::vector<std::string>& names() const override { return names_; }
  data::TensorInfo info(const std::string& name) const override { return info_of(file_, name); }
  data::Array read(const std::string& name) const override { return file_.read(name); }
  const WeightsNotes& notes() const override { return notes_; }

 private:
  File file_;
  std::vector<std::string> names_;
  WeightsNotes notes_;
};

}  // namespace

bool is_safetensors_name(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".safetensors";
}

bool is_safetensors(const std::string& path, std::string_view bytes) {
  return data::is_safetensors(bytes) || (is_safetensors_name(path) && !bytes.starts_with("PK"));
}

std::shared_ptr<const Archive> open_archive(const std::string& path, std::shared_ptr<const std::string> bytes) {
  if (is_safetensors(path, *bytes)) return std::make_shared<ArchiveOf<data::Safetensors>>(path, std::move(bytes));
  return std::make_shared<ArchiveOf<data::Npz>>(path, std::move(bytes));
}

data::Texts safetensors_texts(const WeightsNotes& notes) {
  data::Texts texts = {{"format", "graphrun"}, {"graphrun.version", GRAPHRUN_VERSION}};
  for (const Note& note : kNotes) {
    if (!(notes.*note.text).empty()) texts.emplace_back(note.key, notes.*note.text);
  }
  return texts;
}

std::string archive_bytes(const std::string& path, std::vector<std::pair<std::string, HostTensor>> tensors,
                          const WeightsNotes& notes) {
  if (is_safetensors_name(path)) return data::safetensors_bytes(tensors, safetensors_texts(notes));
  for (const Note& note : kNotes) {
    if (!(notes.*note.text).empty() && !note.array.empty())
      tensors.emplace_back(note.array, bytes_of(notes.*note.text));
  }
  return data::npz_bytes(tensors);
}

}  // namespace graphrun
