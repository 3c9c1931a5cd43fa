// output_file.h: a file of results that replaces an old file as a whole, or not at all.
// Contract: the constructor checks that the file can be written, and changes no file. The bytes go to a new file in the
// same folder, unnamed if the file system supports that. commit() flushes it to disk and replaces the old file. Without
// commit(), the old file stays and the new one is removed. A symbolic link is followed, not replaced. Pipes, devices
// and /dev/stdout are written directly. Throws Error: kind input from the constructor, kind run afterwards.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graphrun/export.h"

namespace graphrun {

// Writes all bytes to a descriptor of the process; waits if the descriptor is non-blocking. False: see errno.
GRAPHRUN_API bool write_all(int descriptor, std::string_view bytes) noexcept;

struct OutputState;

class GRAPHRUN_API OutputFile {
 public:
  explicit OutputFile(const std::string& path, const char* code = "file.write");  // code: code of its Errors
  ~OutputFile();
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;

  // Waits until a pipe has a reader. Otherwise the first write() waits. No effect for other files.
  void connect();

  // Appends all bytes. After a failure, the incomplete bytes are removed, and later calls throw the same Error.
  void write(std::string_view bytes);

  // For a file that is complete after each write(), such as a log: makes it visible before commit() and returns its
  // path. If a file of that name exists, it stays until commit(), and the new file has another name in the same folder.
  // `replaces`: replaces that file at once.
  std::string publish(bool replaces = false);

  void commit();  // once, as the last call

  // commit() leaves it to the caller to bring the file and its name to the disk (fsync).
  void defer_sync();

  const std::string& path() const;
  bool is_direct() const;  // written in place, as for a pipe; commit() replaces nothing

  // Whether another path or output is the same file, under any name. Always false for a terminal and /dev/null.
  bool is(const std::string& other) const;
  bool is(const OutputFile& other) const;

 private:
  std::unique_ptr<OutputState> state_;
};

}  // namespace graphrun
