#include "file.hpp"
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

namespace lookback {

static std::string put(const std::filesystem::path& path, std::string_view bytes) {
    errno = 0;
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    file.close();
    return file ? "" : std::strerror(errno ? errno : EIO);
}

std::string replace_file(const std::filesystem::path& path, std::string_view bytes) {
    std::error_code error;
    std::filesystem::path target = std::filesystem::canonical(path, error);
    if (error) target = path;
    if (std::filesystem::exists(target, error) && !std::filesystem::is_regular_file(target, error))
        return put(target, bytes);
    std::filesystem::path beside = target;
    beside += "." + std::to_string(std::random_device()()) + ".part";
    std::string wrong = put(beside, bytes);
    if (wrong.empty()) {
        std::filesystem::rename(beside, target, error);
        if (!error) return "";
        wrong = error.message();
    }
    std::filesystem::remove(beside, error);
    return wrong;
}

}  // namespace lookback
