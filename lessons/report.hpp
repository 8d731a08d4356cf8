// A trace to look at: the viewer's page with the trace inside, one file that needs no server and no network.
#pragma once
#include <filesystem>
#include "engine/trace.hpp"

namespace lookback {

// The page is notebooks/viewer/viewer.html. Whatever the trace holds stays text in it. Written is the whole file or
// nothing.   throws ValueError if the page can't be read or the report not be written
void write_report(const Trace& trace, const std::filesystem::path& html);

}  // namespace lookback
