// Checkpoints: the format as published, hostile files, and an independent program that reads and writes it.
#include "layers/checkpoint.hpp"
#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include "engine/ops/activation.hpp"
#include "engine/ops/arithmetic.hpp"
#include "engine/ops/linear.hpp"
#include "layers/linear.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/close.hpp"

using namespace lookback;
using namespace lookback::test;

namespace fs = std::filesystem;

namespace {

// A folder of this process that is gone afterwards.
struct Folder {
    fs::path path = fs::temp_directory_path() / ("lookback-checkpoint-" + std::to_string(::getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
    std::string operator/(const std::string& name) const { return path / name; }
};

struct Model {
    Parameter W{Array{{1, 2, 3}, {4, 5, 6}}}, b{Array(Real(-0.0))}, none{filled({0, 2}, 0)};
    void for_each_parameter(const std::string& prefix, const Visitor& f) {
        f(join(prefix, "layer.W"), W);
        f(join(prefix, "b"), b);
        f(join(prefix, "none"), none);
    }
};

// A model whose every value is `value`.
Model filled_with(Real value) {
    return {Parameter(filled({2, 3}, value)), Parameter(filled({}, value)), Parameter(filled({0, 2}, 0))};
}
bool equal(Model& a, Model& b) { return same_bits(a.W.value(), b.W.value()) && same_bits(a.b.value(), b.b.value()); }

std::string bytes_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    return bytes.str();
}
void write(const std::string& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

// A file of the format, with any header and `size` bytes of zeros.
std::string with_header(const std::string& json, std::size_t size, std::optional<std::uint64_t> length = {}) {
    const std::uint64_t n = length.value_or(json.size());
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &n, 8);
    return bytes + json + std::string(size, '\0');
}

}  // namespace

TEST_CASE("what is saved is loaded, bit for bit, with its metadata") {
    const Folder folder;
    const std::string file = folder / "model.safetensors";
    Model model;
    model.W.edit([](Array& w) {
        w(0, 0) = std::numeric_limits<Real>::quiet_NaN();
        w(0, 1) = -std::numeric_limits<Real>::infinity();
        w(0, 2) = std::numeric_limits<Real>::denorm_min();
        w(1, 0) = Real(0.1);
    });
    const Metadata metadata{{"task", "dates"}, {"größe", "\"1\"\n\t\x01 東京"}};
    save(model, file, metadata);
    Model other = filled_with(7);
    CHECK(load(other, file) == metadata);
    CHECK(equal(model, other));
    CHECK(other.none.shape() == Shape{0, 2});
    save(other, file, metadata);  // over the first
    CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);

    const std::string bytes = bytes_of(file);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    CHECK(length % 8 == 0);
    CHECK(bytes[8] == '{');
    CHECK(bytes.size() == 8 + length + 7 * sizeof(Real));
    double third = 0;
    std::memcpy(&third, bytes.data() + 8 + length + 3 * 8, 8);  // row-major, in the model's order
    CHECK(third == 0.1);
}

TEST_CASE("stored as F32, values are rounded once and take half the room") {
    const Folder folder;
    Model model = filled_with(Real(0.1)), other;
    save(model, folder / "exact");
    save(model, folder / "rounded", {}, Stored::rounded);
    CHECK(fs::file_size(folder / "exact") - fs::file_size(folder / "rounded") == 7 * 4);
    CHECK(load(other, folder / "rounded").empty());
    CHECK(other.W.value()(1, 2) == double(0.1f));

    model.b.assign(Array(Real(1e300)));
    CHECK_THROWS_WITH(save(model, folder / "rounded", {}, Stored::rounded),
                      contains("parameter \"b\"") && contains("beyond the range of float"));
    load(other, folder / "rounded");  // the file that stood there stands
    CHECK(other.W.value()(1, 2) == double(0.1f));
    model.b.assign(Array(std::numeric_limits<Real>::infinity()));  // what is infinite stays so
    CHECK_NOTHROW(save(model, folder / "rounded", {}, Stored::rounded));
}

TEST_CASE("a link is followed, and a header that hides something behind a NUL byte is refused") {
    const Folder folder;
    Model model = filled_with(2), first = filled_with(1), other;
    save(first, folder / "weights");
    fs::create_symlink(folder / "weights", folder / "link");
    save(model, folder / "link");
    CHECK(fs::is_symlink(folder / "link"));
    load(other, folder / "weights");
    CHECK(equal(other, model));
    write(folder / "nul", with_header(std::string("{}\0{\"x\":1}", 10), 0));
    CHECK_THROWS_WITH(read_checkpoint(folder / "nul"), contains("NUL"));
}

TEST_CASE("a header is judged before the numbers are read") {
    const Folder folder;
    const std::string file = folder / "sparse";
    {
        std::ofstream out(file, std::ios::binary);
        const std::string header = R"({"b":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})";
        const std::uint64_t length = header.size();
        out.write(reinterpret_cast<const char*>(&length), sizeof length) << header;
    }
    fs::resize_file(file, std::uintmax_t(1) << 40);  // a terabyte of nothing: it could not be read whole
    CHECK_THROWS_WITH(read_checkpoint(file), contains("bytes after the last tensor"));
}

TEST_CASE("a file that does not hold exactly the model's parameters is refused and changes nothing") {
    const Folder folder;
    const std::string file = folder / "other.safetensors";
    struct Other {
        std::vector<std::pair<std::string, Parameter>> parameters;
        void for_each_parameter(const std::string&, const Visitor& f) {
            for (auto& [path, p] : parameters) f(path, p);
        }
        Other& add(const std::string& path, Array value) {
            parameters.emplace_back(path, Parameter(std::move(value)));
            return *this;
        }
    };
    Other other;
    std::string expected;
    SECTION("one is missing") {
        other.add("layer.W", filled({2, 3}, 9)).add("none", filled({0, 2}, 0));
        expected = "has no parameter \"b\"";
    }
    SECTION("one is of another shape") {
        other.add("layer.W", filled({2, 3}, 9)).add("b", filled({1}, 9)).add("none", filled({0, 2}, 0));
        expected = "parameter \"b\" is (1), but () in the model";
    }
    SECTION("one is transposed") {
        other.add("layer.W", filled({3, 2}, 9)).add("b", filled({}, 9)).add("none", filled({0, 2}, 0));
        expected = "parameter \"layer.W\" is (3,2), but (2,3) in the model";
    }
    SECTION("one is too many") {
        other.add("layer.W", filled({2, 3}, 9))
            .add("b", filled({}, 9))
            .add("none", filled({0, 2}, 0))
            .add("V", Array{1});
        expected = "parameter \"V\" is not in the model";
    }
    save(other, file);
    Model model, before;
    CHECK_THROWS_WITH(load(model, file), contains(expected) && contains(file));
    CHECK(equal(model, before));
}

TEST_CASE("a hostile or broken header is an error that names the file") {
    const Folder folder;
    const std::string file = folder / "hostile.safetensors";
    const auto entry = [](const std::string& name, const std::string& dtype, const std::string& shape,
                          const std::string& offsets) {
        return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
               "}";
    };
    const std::string good = entry("b", "F64", "[]", "[0,8]");
    const std::string deep(100'000, '['), deep_objects = [] {
        std::string s = "{";
        for (int i = 0; i < 100'000; ++i) s += "\"a\":{";
        return s;
    }();
    struct Case {
        std::string bytes, expected;
    };
    const std::vector<Case> cases{
        {"", "has no header"},
        {"1234567", "has no header"},
        {std::string(8, '\0'), "does not begin with {"},
        {with_header("{" + good + "}", 8, std::uint64_t(-1)), "a header of 18446744073709551615 bytes"},
        {with_header("{" + good + "}", 8, std::uint64_t(1) << 63), "a header of"},
        {with_header("{" + good + "}", 8, 100), "a header of 100 bytes"},
        {with_header(" {" + good + "}", 8), "does not begin with {"},
        {with_header("[]", 0), "does not begin with {"},
        {with_header("{" + good + "}}", 8), "not JSON"},
        {with_header("{" + good, 8), "not JSON"},
        {with_header("{\"b\":" + deep, 0), "a list where"},
        {with_header(deep_objects, 0), "unknown field \"a\""},
        {with_header("{\"b\":{\"shape\":" + deep, 0), "a list where"},
        {with_header("{\"\xff\":{}}", 0), "not JSON"},
        {with_header("{\"b\":{}}", 0), "lacks dtype, shape or data_offsets"},
        {with_header("{\"b\":1}", 0), "a number where"},
        {with_header("{\"b\":null}", 0), "null where"},
        {with_header("{\"b\":true}", 0), "true or false where"},
        {with_header("{\"b\":\"x\"}", 0), "a text where"},
        {with_header("{" + good + "," + good + "}", 8), "\"b\" stands twice"},
        {with_header("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0), "metadata \"a\" stands twice"},
        {with_header("{\"__metadata__\":{},\"__metadata__\":{}}", 0), "\"__metadata__\" stands twice"},
        {with_header("{\"__metadata__\":{\"a\":1}}", 0), "a number where"},
        {with_header("{\"__metadata__\":{\"a\":{}}}", 0), "an object where"},
        {with_header("{\"__metadata__\":[]}", 0), "a list where"},
        {with_header("{\"__metadata__\":\"x\"}", 0), "a text where"},
        {with_header("{\"b\":{\"dtype\":\"F64\",\"dtype\":\"F64\"}}", 0), "two fields \"dtype\""},
        {with_header("{\"b\":{\"dtype\":\"F64\",\"more\":[]}}", 0), "unknown field \"more\""},
        {with_header("{" + entry("b", "I64", "[]", "[0,8]") + "}", 8), "of dtype \"I64\""},
        {with_header("{" + entry("b", "F64", "[]", "[0,4]") + "}", 4), "() does not fill its 4 bytes"},
        {with_header("{" + entry("b", "F64", "[2]", "[0,8]") + "}", 8), "(2) does not fill its 8 bytes"},
        {with_header("{" + entry("b", "F64", "[]", "[8,0]") + "}", 8), "begins at 8 where 0 is due"},
        {with_header("{" + entry("b", "F64", "[]", "[0,16]") + "}", 8), "ends at 16, outside"},
        {with_header("{" + entry("b", "F64", "[]", "[0,8,16]") + "}", 8), "data_offsets of tensor \"b\" is too long"},
        {with_header("{" + entry("b", "F64", "[]", "[0]") + "}", 8), "needs two data_offsets"},
        {with_header("{" + entry("b", "F64", "[]", "[-8,0]") + "}", 8), "a negative number"},
        {with_header("{" + entry("b", "F64", "[1.0]", "[0,8]") + "}", 8), "not whole"},
        {with_header("{" + entry("b", "F64", "[99999999999999999999]", "[0,8]") + "}", 8), "too large"},
        {with_header("{" + entry("b", "F64", "[1,1,1,1,1,1,1]", "[0,8]") + "}", 8),
         "the shape of tensor \"b\" is too long"},
        {with_header("{" + entry("b", "F64", "[4294967296,4294967296]", "[0,0]") + "}", 0), "larger than memory"},
        {with_header("{" + entry("b", "F64", "[0,9223372036854775808]", "[0,0]") + "}", 0), "larger than memory"},
        {with_header("{" + good + "," + entry("c", "F64", "[]", "[4,12]") + "}", 12), "begins at 4 where 8 is due"},
        {with_header("{" + good + "," + entry("c", "F64", "[]", "[0,8]") + "}", 8), "begins at 0 where 8 is due"},
        {with_header("{" + good + "," + entry("c", "F64", "[]", "[16,24]") + "}", 24), "begins at 16 where 8 is due"},
        {with_header("{" + good + "}", 9), "1 bytes after the last tensor"},
    };
    for (const auto& [bytes, expected] : cases) {
        INFO(bytes.substr(0, 200));
        write(file, bytes);
        CHECK_THROWS_WITH(read_checkpoint(file), contains(expected) && contains(file));
    }
    write(file, with_header("{" + good + "}   ", 8));
    CHECK(read_checkpoint(file).tensors.at("b")() == 0);
    write(file, with_header("{}", 0));
    CHECK(read_checkpoint(file).tensors.empty());
    CHECK_THROWS_WITH(read_checkpoint(folder / "none"), contains("there is no such file"));
    CHECK_THROWS_WITH(read_checkpoint(folder.path), contains("is not a file"));
}

TEST_CASE("a file cut at any byte, or longer than it says, leaves the model as it was") {
    const Folder folder;
    const std::string file = folder / "cut.safetensors";
    Model saved = filled_with(5), model, before;
    save(saved, file, {{"task", "x"}});
    const std::string bytes = bytes_of(file);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        write(file, bytes.substr(0, length));
        REQUIRE_THROWS_AS(load(model, file), ValueError);
        REQUIRE(equal(model, before));
    }
    write(file, bytes + '\0');
    REQUIRE_THROWS_AS(load(model, file), ValueError);
    REQUIRE(equal(model, before));
    write(file, bytes);
    load(model, file);
    CHECK(equal(model, saved));
}

TEST_CASE("a file with any byte flipped is either refused, or loaded whole") {
    const Folder folder;
    const std::string file = folder / "flipped.safetensors";
    Model saved = filled_with(5);
    save(saved, file, {{"task", "x"}});
    const std::string bytes = bytes_of(file);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    Generator generator(1);
    std::size_t refused = 0, loaded = 0;
    for (std::size_t i = 0; i < 3000; ++i) {
        std::string flipped = bytes;
        for (std::int64_t flips = generator.integer(1, 4); flips-- > 0;)
            flipped[std::size_t(generator.integer(0, std::int64_t(bytes.size())))] ^= char(generator.integer(1, 256));
        write(file, flipped);
        Model model, before;
        try {
            load(model, file);
            ++loaded;
            const Checkpoint whole = read_checkpoint(file);
            REQUIRE(same_bits(model.W.value(), whole.tensors.at("layer.W")));
            REQUIRE(same_bits(model.b.value(), whole.tensors.at("b")));
        } catch (const ValueError& error) {
            ++refused;
            REQUIRE_THAT(error.what(), contains(file));
            REQUIRE(equal(model, before));
        }
    }
    CHECK(refused > 1000);  // a flip in the header, but for those inside the metadata and the padding
    CHECK(loaded > 100);    // flips among the numbers alone
}

TEST_CASE("what can't be saved is an error, and the old file stays") {
    const Folder folder;
    Model model;
    CHECK_THROWS_WITH(save(model, folder / "no folder" + "/x"), contains("can't be written"));
    const std::string file = folder / "x";
    save(model, file);
    const std::string bytes = bytes_of(file);
    CHECK_THROWS_WITH(save(model, file, {{"a", "\xff"}}), contains("not UTF-8") && contains(file));
    CHECK(bytes_of(file) == bytes);
    fs::create_directory(folder / "folder");
    CHECK_THROWS_WITH(save(model, folder / "folder"), contains("can't be written"));
    CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 2);
}

// ---- An independent program: tests/fixtures/safetensors_numpy.py ----------------------------------------------------

static const std::string fixtures = LOOKBACK_SOURCE_DIR "/tests/fixtures/";

static void check_example(const std::string& file) {
    const Checkpoint example = read_checkpoint(file);
    CHECK(example.metadata == Metadata{{"made by", "numpy"}, {"städte", "Köln\n東京"}});
    CHECK(example.tensors.size() == 5);
    Array W = Array::from_shape({2, 3});
    for (std::size_t i = 0; i < 6; ++i) W.data()[i] = Real(double(i) / 7 - 0.4);
    CHECK(same_bits(example.tensors.at("W"), W));
    CHECK(same_bits(example.tensors.at("b"), Array{0.5, -0.25, 0.125}));
    CHECK(example.tensors.at("empty").shape() == Shape{0, 4});
    CHECK(same_bits(example.tensors.at("number"), Array(Real(2.5))));
    const Array& special = example.tensors.at("größe.\U0001f4c5");
    CHECK(std::isnan(special(0)));
    CHECK(special(1) == std::numeric_limits<double>::infinity());
    CHECK(std::signbit(special(2)));
    CHECK(special(3) == 5e-324);
}

TEST_CASE("a file that NumPy wrote straight from the published format loads here") {
    check_example(fixtures + "numpy.safetensors");
}

TEST_CASE("NumPy loads a model from our file alone and computes the same outputs; we load what it writes") {
    if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
        WARN("no /usr/bin/python3 with NumPy: only the committed file was read");
        return;
    }
    const Folder folder;
    const std::string script = "/usr/bin/python3 " + fixtures + "safetensors_numpy.py ";
    REQUIRE(std::system((script + "example " + (folder / "example")).c_str()) == 0);
    check_example(folder / "example");
    CHECK(bytes_of(folder / "example") == bytes_of(fixtures + "numpy.safetensors"));

    Generator generator(3);
    Linear linear(4, 3, generator);
    Parameter x(generator.normal({5, 4}));
    struct Question {
        Linear& linear;
        Parameter& x;
        void for_each_parameter(const std::string& prefix, const Visitor& f) {
            linear.for_each_parameter(prefix, f);
            f(join(prefix, "x"), x);
        }
    } question{linear, x};
    Tape tape;
    const Array y = tanh(linear(tape.leaf(x))).value();
    for (const Stored stored : {Stored::exactly, Stored::rounded}) {
        save(question, folder / "in", {{"task", "x"}}, stored);
        REQUIRE(std::system((script + "answer " + (folder / "in") + " " + (folder / "out")).c_str()) == 0);
        const Checkpoint answer = read_checkpoint(folder / "out");
        const double tolerance = stored == Stored::exactly ? 1e-14 : 1e-6;
        CHECK(close(answer.tensors.at("y"), y, tolerance, tolerance));
        CHECK(answer.metadata == Metadata{{"task", "x"}});
        if (stored == Stored::exactly) CHECK(same_bits(answer.tensors.at("W"), linear.W.value()));
    }
}
