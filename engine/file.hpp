// Files that are whole or not there: traces, reports and checkpoints are written through this.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace lookback {

// Puts `bytes` in the place of the file; what goes wrong, a full disk or a crash, leaves the old one as it was. Links
// are followed; what is no plain file, as a pipe or a terminal, is written to. Returns what went wrong, "" if nothing:
// "No space left on device".
std::string replace_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace lookback
