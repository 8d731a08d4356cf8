#include "compare.hpp"
#include <algorithm>
#include <cstdio>
#include <limits>

namespace lookback {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

bool is_array_of_numbers(const Json& json) {
    return json.is_object() && json.size() == 2 && json.contains("shape") && json.contains("data");
}

std::optional<double> number(const Json& json) {
    if (json.is_number()) return json.get<double>();
    if (json == "NaN") return nan;
    if (json == "Infinity") return infinity;
    if (json == "-Infinity") return -infinity;
    return std::nullopt;
}

// Twelve digits where six would not tell the two apart.
std::string both(double answer, double expected) {
    char text[80];
    for (const char* format : {"%.6g, should be %.6g", "%.12g, should be %.12g"}) {
        std::snprintf(text, sizeof text, format, answer, expected);
        if (std::abs(answer - expected) > 1e-4 * std::abs(expected)) break;
    }
    return text;
}

std::string text(const Json& shape) {
    std::string s = "(";
    for (const Json& n : shape) s += (s.size() > 1 ? "," : "") + n.dump();
    return s + ")";
}

// (1,2) of the element that is the k-th in a row-major array of this shape.
std::string index(std::size_t k, const Json& shape) {
    std::string s;
    for (auto n = shape.rbegin(); n != shape.rend(); ++n) {
        const std::size_t size = n->get<std::size_t>();
        s = std::to_string(k % size) + (s.empty() ? "" : ",") + s;
        k /= size;
    }
    return "(" + s + ")";
}

std::optional<Difference> compare_arrays(const Json& answer, const Json& expected, double tolerance,
                                         const std::string& place) {
    const Json &shape = expected["shape"], &wanted = expected["data"];
    if (!is_array_of_numbers(answer) || !answer["data"].is_array())
        return Difference{place, "is no array of numbers", ""};
    if (answer["shape"] != shape)
        return Difference{place, "has a wrong shape",
                          "its shape is " + text(answer["shape"]) + ", should be " + text(shape)};
    const Json& data = answer["data"];
    if (data.size() != wanted.size())
        return Difference{place, "has a wrong number of elements",
                          std::to_string(data.size()) + " for shape " + text(shape)};
    double largest = 0;
    for (const Json& x : wanted) largest = std::max(largest, std::abs(x.get<double>()));
    const double bound = tolerance * (largest > 0 ? largest : 1);
    std::size_t wrong = 0, first = 0;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
        const double a = number(data[k]).value_or(nan);
        if (std::abs(a - wanted[k].get<double>()) <= bound) continue;  // NaN does not
        if (!wrong++) first = k;
    }
    if (!wrong) return std::nullopt;
    const double a = number(data[first]).value_or(nan);
    return Difference{place + index(first, shape), std::isfinite(a) ? "is wrong" : "is not finite",
                      both(a, wanted[first]) + "; shape " + text(shape) + ", " + std::to_string(wrong) + " of " +
                          std::to_string(wanted.size()) + " wrong"};
}

std::optional<Difference> compare_at(const Json& answer, const Json& expected, double tolerance,
                                     const std::string& place) {
    if (is_array_of_numbers(expected)) return compare_arrays(answer, expected, tolerance, place);
    if (expected.is_object()) {
        for (const auto& [name, value] : expected.items()) {
            const std::string inner = place.empty() ? name : place + "." + name;
            if (!answer.is_object() || !answer.contains(name)) return Difference{inner, "is missing", ""};
            if (auto d = compare_at(answer[name], value, tolerance, inner)) return d;
        }
        return std::nullopt;
    }
    if (expected.is_array()) {
        if (!answer.is_array()) return Difference{place, "is no list", ""};
        if (answer.size() != expected.size())
            return Difference{place, "has a wrong length",
                              std::to_string(answer.size()) + " entries, should be " + std::to_string(expected.size())};
        for (std::size_t i = 0; i < expected.size(); ++i)
            if (auto d = compare_at(answer[i], expected[i], tolerance, place + "[" + std::to_string(i) + "]")) return d;
        return std::nullopt;
    }
    if (expected.is_boolean()) {
        if (answer == expected) return std::nullopt;
        return Difference{place, "is wrong", answer.dump() + ", should be " + expected.dump()};
    }
    const double b = expected.get<double>(), a = number(answer).value_or(nan);
    if (std::abs(a - b) <= tolerance * (b != 0 ? std::abs(b) : 1)) return std::nullopt;
    return Difference{place, std::isfinite(a) ? "is wrong" : "is not finite", both(a, b)};
}

}  // namespace

std::optional<Difference> compare(const Json& answer, const Json& expected, double tolerance) {
    return compare_at(answer, expected, tolerance, "");
}

}  // namespace lookback
