// Inputs and answers as JSON, the same on both sides of the process border.
//
//   an array of numbers   {"shape": [2,3], "data": [six numbers]}, whatever its rank
//   a list                [value, …]
//   several answers       {"name": value, …}
//   a number              a number; "NaN", "Infinity" and "-Infinity" are strings
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include "assignment.hpp"

namespace lookback {

using Json = nlohmann::ordered_json;  // several answers keep their order: the first wrong one is the cause

inline Json encode(double x) {
    if (std::isfinite(x)) return x;
    return std::isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity";
}
inline Json encode(bool x) { return x; }
inline Json encode(std::size_t n) { return n; }

template <class Numbers> Json encode_array(const std::vector<std::size_t>& shape, const Numbers& numbers) {
    Json data = Json::array();
    for (double x : numbers) data.push_back(encode(x));
    return {{"shape", shape}, {"data", std::move(data)}};
}
inline Json encode(const Matrix& a) { return encode_array({a.rows(), a.columns()}, a.data()); }
inline Json encode(const std::vector<double>& x) { return encode_array({x.size()}, x); }
template <class T> Json encode(const std::vector<T>& list) {
    Json items = Json::array();
    for (const T& item : list) items.push_back(encode(item));
    return items;
}

inline void decode(const Json& json, double& x) { x = json.get<double>(); }
inline void decode(const Json& json, std::size_t& n) { n = json.get<std::size_t>(); }
inline void decode(const Json& json, Matrix& a) {
    a = Matrix(json.at("shape").at(0), json.at("shape").at(1));
    a.data() = json.at("data").get<std::vector<double>>();
}
template <class T> void decode(const Json& json, std::vector<T>& list) {
    for (const Json& item : json) decode(item, list.emplace_back());
}
inline void decode(const Json& json, std::vector<double>& x) { x = json.at("data").get<std::vector<double>>(); }

}  // namespace lookback
