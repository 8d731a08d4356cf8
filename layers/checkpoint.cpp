#include "checkpoint.hpp"
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>
#include "engine/file.hpp"

namespace lookback {

namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::size_t longest_header = 100'000'000;  // that of the reference implementation

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
    fail<ValueError>("checkpoint", file + ": " + what);
}

std::string in_quotes(const std::string& name) {  // short, on one line
    std::string shown = "\"";
    for (const char c : name.substr(0, 80)) shown += c < ' ' && c >= 0 ? '?' : c;
    return shown + (name.size() > 80 ? "…\"" : "\"");
}

// ---- The header, read event by event: nothing is built of what is not wanted, and nothing recurses

struct Entry {
    std::string dtype;
    std::vector<std::uint64_t> shape, offsets;
    bool has_dtype = false, has_shape = false, has_offsets = false;
};

struct Header {
    Metadata metadata;
    std::map<std::string, Entry> entries;
};

class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
public:
    HeaderReader(const std::string& file, Header& header) : file_(file), header_(header) {}

    bool start_object(std::size_t) override {
        if (depth_ >= 2 || in_array_) unexpected("an object");
        if (depth_ == 1 && !in_metadata_) entry_ = &header_.entries[name_];
        ++depth_;
        return true;
    }
    bool end_object() override {
        if (depth_ == 2 && entry_ && !(entry_->has_dtype && entry_->has_shape && entry_->has_offsets))
            refuse(file_, "tensor " + in_quotes(name_) + " lacks dtype, shape or data_offsets");
        entry_ = nullptr;
        in_metadata_ = false;
        --depth_;
        return true;
    }
    bool key(std::string& key) override {
        if (depth_ == 1) {
            name_ = key;
            in_metadata_ = key == "__metadata__";
            if (in_metadata_ ? std::exchange(had_metadata_, true) : header_.entries.contains(key))
                refuse(file_, in_quotes(key) + " stands twice in the header");
            return true;
        }
        field_ = key;
        if (in_metadata_) {
            if (header_.metadata.contains(key)) refuse(file_, "metadata " + in_quotes(key) + " stands twice");
            return true;
        }
        bool* had = key == "dtype"          ? &entry_->has_dtype
                    : key == "shape"        ? &entry_->has_shape
                    : key == "data_offsets" ? &entry_->has_offsets
                                            : nullptr;
        if (!had) refuse(file_, "tensor " + in_quotes(name_) + " has an unknown field " + in_quotes(key));
        if (std::exchange(*had, true))
            refuse(file_, "tensor " + in_quotes(name_) + " has two fields " + in_quotes(key));
        return true;
    }
    bool start_array(std::size_t) override {
        if (!entry_ || field_ == "dtype" || in_array_) unexpected("a list");
        return in_array_ = true;
    }
    bool end_array() override {
        in_array_ = false;
        return true;
    }
    bool number_unsigned(std::uint64_t n) override {
        if (!in_array_) unexpected("a number");
        std::vector<std::uint64_t>& list = field_ == "shape" ? entry_->shape : entry_->offsets;
        if (list.size() == (field_ == "shape" ? max_axes : 2))
            refuse(file_, "the " + field_ + " of tensor " + in_quotes(name_) + " is too long");
        list.push_back(n);
        return true;
    }
    bool string(std::string& text) override {
        if (depth_ == 2 && in_metadata_)
            header_.metadata[field_] = text;
        else if (entry_ && field_ == "dtype" && !in_array_)
            entry_->dtype = text;
        else
            unexpected("a text");
        return true;
    }
    bool null() override { unexpected("null"); }
    bool boolean(bool) override { unexpected("true or false"); }
    bool number_integer(std::int64_t) override { unexpected("a negative number"); }
    bool number_float(double, const std::string&) override { unexpected("a number that is not whole, or too large"); }
    bool binary(binary_t&) override { unexpected("bytes"); }
    bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) override {
        refuse(file_, "the header is not JSON at byte " + std::to_string(8 + at));
    }

private:
    [[noreturn]] void unexpected(const char* what) const {
        refuse(file_, std::string(what) + " where the header may not have one" +
                          (name_.empty() ? "" : ", at " + in_quotes(name_)));
    }
    const std::string& file_;
    Header& header_;
    int depth_ = 0;
    bool in_array_ = false, in_metadata_ = false, had_metadata_ = false;
    std::string name_, field_;
    Entry* entry_ = nullptr;  // the tensor whose fields are read
};

// ---- The numbers ----------------------------------------------------------------------------------------------------

template <class Number> Array numbers(const char* bytes, const Shape& shape) {
    Array array = Array::from_shape(shape);
    for (std::size_t i = 0; i < array.size(); ++i) {
        Number n;
        std::memcpy(&n, bytes + i * sizeof n, sizeof n);
        array.data()[i] = Real(n);
    }
    return array;
}

// false if a finite number does not fit: it would come back as infinite.
template <class Number> bool append(std::string& bytes, const Array& array) {
    for (std::size_t i = 0; i < array.size(); ++i) {
        const Number n = Number(array.data()[i]);
        if (std::isinf(n) && std::isfinite(array.data()[i])) return false;
        bytes.append(reinterpret_cast<const char*>(&n), sizeof n);
    }
    return true;
}

std::string read_bytes(std::ifstream& in, const std::string& file, std::size_t count) {
    std::string bytes(count, '\0');
    if (!in.read(bytes.data(), std::streamsize(count))) refuse(file, "can't be read");
    return bytes;
}

// Judges an entry, which must begin where the one before ended, at `at`; moves `at` to its end.
void check_bytes(const std::string& file, const std::string& name, const Entry& entry, std::uint64_t data_size,
                 std::uint64_t& at) {
    const auto bad = [&](const std::string& what) { refuse(file, "tensor " + in_quotes(name) + " " + what); };
    if (entry.dtype != "F64" && entry.dtype != "F32") bad("is of dtype " + in_quotes(entry.dtype) + ", not F64 or F32");
    if (entry.dtype == "F64" && sizeof(Real) == 4) bad("is F64: this build computes with F32, and does not round");
    if (entry.offsets.size() != 2) bad("needs two data_offsets");
    const std::uint64_t begin = entry.offsets[0], end = entry.offsets[1];
    if (begin != at) bad("begins at " + std::to_string(begin) + " where " + std::to_string(at) + " is due");
    if (end < begin || end > data_size) bad("ends at " + std::to_string(end) + ", outside of the data");
    std::uint64_t bytes = entry.dtype == "F64" ? 8 : 4, strides = bytes;
    for (const std::uint64_t n : entry.shape) {  // (0, 2⁶³) has no bytes, and strides beyond memory
        bytes *= n;
        if (__builtin_mul_overflow(strides, std::max<std::uint64_t>(n, 1), &strides) || strides >> 62)
            bad("is larger than memory");
    }
    if (bytes != end - begin)
        bad(text(Shape(entry.shape.begin(), entry.shape.end())) + " does not fill its " + std::to_string(end - begin) +
            " bytes");
    at = end;
}

}  // namespace

Checkpoint read_checkpoint(const std::string& file) {
    std::error_code error;
    if (!fs::is_regular_file(file, error))
        refuse(file, fs::exists(file, error) ? "is not a file" : "there is no such file");
    const std::uint64_t size = fs::file_size(file);
    std::ifstream in(file, std::ios::binary);
    std::uint64_t length = 0;
    if (size < sizeof length) refuse(file, "has no header: " + std::to_string(size) + " bytes");
    std::memcpy(&length, read_bytes(in, file, sizeof length).data(), sizeof length);
    if (length > longest_header || length > size - sizeof length)
        refuse(file, "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(size));
    const std::string json = read_bytes(in, file, length);
    if (!json.starts_with('{')) refuse(file, "the header does not begin with {");
    if (json.find('\0') != std::string::npos)
        refuse(file, "the header holds a NUL byte");  // the parser would stop there

    Header header;
    HeaderReader reader(file, header);
    nlohmann::json::sax_parse(json.begin(), json.end(), &reader);

    std::vector<std::pair<std::string, Entry>> in_order(header.entries.begin(), header.entries.end());
    std::stable_sort(in_order.begin(), in_order.end(),
                     [](const auto& a, const auto& b) { return a.second.offsets < b.second.offsets; });
    const std::uint64_t data_size = size - sizeof length - length;
    std::uint64_t at = 0;
    for (const auto& [name, entry] : in_order) check_bytes(file, name, entry, data_size, at);
    if (at != data_size) refuse(file, std::to_string(data_size - at) + " bytes after the last tensor");

    Checkpoint checkpoint{std::move(header.metadata), {}};  // nothing is allocated before all of the header is judged
    for (const auto& [name, entry] : in_order) {
        const std::string bytes = read_bytes(in, file, entry.offsets[1] - entry.offsets[0]);
        const Shape shape(entry.shape.begin(), entry.shape.end());
        checkpoint.tensors.emplace(
            name, entry.dtype == "F64" ? numbers<double>(bytes.data(), shape) : numbers<float>(bytes.data(), shape));
    }
    return checkpoint;
}

Metadata load(const Parameters& model, const std::string& file) {
    Checkpoint checkpoint = read_checkpoint(file);
    for (const auto& [path, p] : model) {
        const auto found = checkpoint.tensors.find(path);
        if (found == checkpoint.tensors.end()) refuse(file, "has no parameter " + in_quotes(path));
        if (found->second.shape() != p->shape())
            refuse(file, "parameter " + in_quotes(path) + " is " + text(found->second.shape()) + ", but " +
                             text(p->shape()) + " in the model");
    }
    if (checkpoint.tensors.size() != model.size()) {  // then there are more: which one?
        for (const auto& [path, p] : model) checkpoint.tensors.erase(path);
        refuse(file, "parameter " + in_quotes(checkpoint.tensors.begin()->first) + " is not in the model");
    }
    for (const auto& [path, p] : model) p->assign(std::move(checkpoint.tensors.at(path)));
    return checkpoint.metadata;
}

// ---- Writing --------------------------------------------------------------------------------------------------------

static std::string serialised(const Parameters& model, const std::string& file, const Metadata& metadata,
                              Stored stored) {
    const bool f64 = sizeof(Real) == 8 && stored == Stored::exactly;
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::string data;
    for (const auto& [path, p] : model) {
        if (path == "__metadata__") refuse(file, "no parameter may have the path __metadata__");
        const std::size_t begin = data.size();
        if (!(f64 ? append<double>(data, p->value()) : append<float>(data, p->value())))
            refuse(file, "parameter " + in_quotes(path) + " holds a number beyond the range of float");
        header[path] = {{"dtype", f64 ? "F64" : "F32"},
                        {"shape", std::vector<std::size_t>(p->shape().begin(), p->shape().end())},
                        {"data_offsets", {begin, data.size()}}};
    }
    std::string json;
    try {
        json = header.dump();
    } catch (const nlohmann::json::exception&) {
        refuse(file, "a path or metadata is not UTF-8");
    }
    json.resize((json.size() + 7) / 8 * 8, ' ');  // so that the numbers are aligned
    if (json.size() > longest_header) refuse(file, "a header over 100 MB");
    const std::uint64_t length = json.size();
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + json + data;
}

void save(const Parameters& model, const std::string& file, const Metadata& metadata, Stored stored) {
    const std::string wrong = replace_file(file, serialised(model, file, metadata, stored));
    if (!wrong.empty()) refuse(file, "can't be written: " + wrong);
}

}  // namespace lookback
