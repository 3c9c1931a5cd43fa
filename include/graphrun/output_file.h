// output_file.h: a file of results that takes the place of an old one whole or not at all.
// Contract: the constructor finds out whether the file can be written and changes nothing that is there. What is
// written goes to a file of its own in the same folder, which has no name where the file system offers that; commit()
// brings it to the disk and into its place. Without commit() the old file stays and nothing is left behind. A symbolic
// link is followed, not replaced. What is no regular file (a pipe, a device, /dev/stdout) is written directly. Throws
// Error: kind input from the constructor, kind run afterwards.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graphrun/export.h"

namespace graphrun {

// Writes all of it to a descriptor of the process, and waits where that does not. False: errno says why.
GRAPHRUN_API bool write_all(int descriptor, std::string_view bytes) noexcept;

struct OutputState;

class GRAPHRUN_API OutputFile {
 public:
  explicit OutputFile(const std::string& path, const char* code = "file.write");  // code: of its Errors
  ~OutputFile();
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;

  // Waits until a pipe has a reader, as the first write() does otherwise; no other file waits.
  void connect();

  // Appends all of it. What could not be written whole is taken back, and later calls throw the same Error again.
  void write(std::string_view bytes);

  // For a file that is whole after each write(), as a log is: it can be seen from now on, under its name or, where
  // there is a file of that name, which then stays until commit(), under another in the same folder. The path where it
  // is. `replaces`: it takes that file's place now, having all of it that is to stay.
  std::string publish(bool replaces = false);

  void commit();  // once, as the last call

  const std::string& path() const;
  bool is_direct() const;  // written in place: what is written is there at once, and commit() replaces nothing

  // Whether another path, or another output, is the same file, by whatever name. A terminal or /dev/null is nobody's.
  bool is(const std::string& other) const;
  bool is(const OutputFile& other) const;

 private:
  std::unique_ptr<OutputState> state_;
};

}  // namespace graphrun
