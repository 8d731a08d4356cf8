// The rules of the house, read off the sources: which way includes go, what may be named where, what README claims.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <vector>
#include "tests/support/catch.hpp"

namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

struct Source {
    std::string path, text;  // from the root: "engine/ops/linear.cpp"
};

std::vector<Source> sources() {
    const fs::path root = LOOKBACK_SOURCE_DIR;
    std::vector<Source> all;
    for (const char* folder : {"engine", "layers", "lessons"})
        for (const auto& entry : fs::recursive_directory_iterator(root / folder))
            if (entry.path().extension() == ".hpp" || entry.path().extension() == ".cpp")
                all.push_back({fs::relative(entry.path(), root).generic_string(), contents(entry.path())});
    return all;
}

// What a file includes, quoted ones as paths from the root.
std::vector<std::string> includes(const Source& source) {
    static const std::regex line(R"re(#\s*include\s*(["<])([^">]+)[">])re");
    std::vector<std::string> all;
    for (std::sregex_iterator at(source.text.begin(), source.text.end(), line), end; at != end; ++at) {
        const std::string name = (*at)[2];
        const fs::path beside = (fs::path(source.path).parent_path() / name).lexically_normal();
        const bool relative = (*at)[1] == "\"" && fs::exists(fs::path(LOOKBACK_SOURCE_DIR) / beside);
        all.push_back(relative ? beside.generic_string() : name);
    }
    return all;
}

bool starts(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

// Everything that is wrong with one file, a line each.
std::vector<std::string> broken_rules(const Source& source) {
    std::vector<std::string> wrong;
    const std::string& path = source.path;
    const auto only_in = [&](const std::string& included, const std::string& pattern,
                             const std::vector<std::string>& allowed) {
        if (included.find(pattern) == std::string::npos) return;
        for (const std::string& a : allowed)
            if (path == a) return;
        wrong.push_back(path + " includes " + included);
    };
    const auto layer = [](const std::string& p) {
        return starts(p, "engine/") ? 0 : starts(p, "layers/") ? 1 : starts(p, "lessons/") ? 2 : -1;
    };
    for (const std::string& name : includes(source)) {
        if (layer(name) > layer(path)) wrong.push_back(path + " includes " + name + ": arrows go the other way");
        if (starts(name, "tests/")) wrong.push_back(path + " includes " + name);
        if (starts(path, "engine/ops/") && starts(name, "engine/ops/") &&
            fs::path(path).stem() != fs::path(name).stem())
            wrong.push_back(path + " includes another family, " + name);
        if (!starts(path, "engine/ops/") && starts(path, "engine/") && starts(name, "engine/ops/") &&
            path != "engine/ops.hpp")
            wrong.push_back(path + " includes " + name + ": the core knows no op");
        only_in(name, "xtensor-blas/", {"engine/spectrum.cpp"});
        if (name.find("xtensor-blas/") == std::string::npos)
            only_in(name, "xtensor/", {"engine/array.hpp", "engine/expression.hpp"});
        only_in(name, "cblas", {"engine/blas.cpp"});
        if (!starts(path, "lessons/assignments/"))  // whose grader and probe speak it
            only_in(name, "nlohmann/", {"engine/trace.cpp", "layers/checkpoint.cpp"});
        only_in(name, "catch", {});
    }
    // (xt::adapt is a view of memory, nothing lazy)
    static const std::regex lazy(
        R"(\bauto\s*&{0,2}\s+\w+\s*=\s*xt::(?!adapt)|xt::eval\s*\(|evaluation_strategy::immediate)");
    if (std::regex_search(source.text, lazy)) wrong.push_back(path + " keeps an array expression unevaluated");
    static const std::regex reducer(R"(xt::(sum|mean|prod|amax|amin|variance|stddev|norm_\w+)\s*\()");
    if (std::regex_search(source.text, reducer)) wrong.push_back(path + " reduces by xtensor: kernels.hpp does it");
    return wrong;
}

}  // namespace

TEST_CASE("includes go one way, and each library is named in one place") {
    std::size_t files = 0;
    for (const Source& source : sources()) {
        ++files;
        for (const std::string& rule : broken_rules(source)) FAIL_CHECK(rule);
    }
    CHECK(files > 40);
}

TEST_CASE("the rules of the house find what breaks them") {
    const auto breaks = [](const char* path, const char* text) { return !broken_rules({path, text}).empty(); };
    CHECK(breaks("engine/tape.cpp", "#include \"layers/linear.hpp\"\n"));
    CHECK(breaks("engine/tape.cpp", "#include \"engine/ops/linear.hpp\"\n"));
    CHECK(breaks("engine/ops/linear.cpp", "#include \"reduce.hpp\"\n"));
    CHECK(breaks("layers/linear.cpp", "#include \"lessons/lesson.hpp\"\n"));
    CHECK(breaks("engine/tape.cpp", "#include <xtensor/xmath.hpp>\n"));
    CHECK(breaks("engine/tape.cpp", "#include <cblas.h>\n"));
    CHECK(breaks("layers/linear.cpp", "#include <nlohmann/json.hpp>\n"));
    CHECK(breaks("engine/a.cpp", "auto e = xt::exp(x);"));
    CHECK(breaks("engine/a.cpp", "const Array y = p / xt::sum(p, {1}, xt::keep_dims);"));
    CHECK_FALSE(breaks("engine/ops/linear.cpp", "#include \"linear.hpp\"\n#include \"engine/blas.hpp\"\n"));
}

TEST_CASE("README tells how long the engine is") {
    std::size_t lines = 0;
    for (const Source& source : sources())
        if (starts(source.path, "engine/"))
            lines += std::size_t(std::count(source.text.begin(), source.text.end(), '\n'));
    const std::string readme = contents(fs::path(LOOKBACK_SOURCE_DIR) / "README.md");
    std::smatch claim;
    REQUIRE(std::regex_search(readme, claim, std::regex(R"(engine is ([0-9,]+) lines)")));
    std::string number = claim[1];
    number.erase(std::remove(number.begin(), number.end(), ','), number.end());
    CHECK(std::stoul(number) == lines);
}

TEST_CASE("g++ is told not to match template template arguments the new way, which this xtensor can't bear") {
    const std::string cmake = contents(fs::path(LOOKBACK_SOURCE_DIR) / "CMakeLists.txt");
    CHECK(cmake.find("-fno-new-ttp-matching") != std::string::npos);
}
