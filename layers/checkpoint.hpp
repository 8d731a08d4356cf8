// Weights in a file, in the safetensors format: what NumPy or PyTorch can read without this library, and a file from
// there can be read here. As published: 8 bytes N (little-endian), N bytes of JSON, then the numbers, in row-major
// order and without gaps.
//   {"__metadata__": {"task": "dates"}, "encoder.W": {"dtype": "F64", "shape": [2,3], "data_offsets": [0,48]}, …}
#pragma once
#include <map>
#include "parameters.hpp"

namespace lookback {

using Metadata = std::map<std::string, std::string>;  // any texts, UTF-8

// What a file holds.
struct Checkpoint {
    Metadata metadata;
    std::map<std::string, Array> tensors;
};

enum class Stored {
    exactly,  // as F64 (F32 in a build with float): what is loaded is what was saved, bit for bit
    rounded   // to F32: half as large
};

// Writes all parameters under their paths. The file is written beside its place and then moved there: a reader never
// sees half of it, and if something fails the old file is still there.
// throws ValueError naming the file, if it can't be written, or a path or metadata is not UTF-8
void save(const Parameters& model, const std::string& file, const Metadata& metadata = {},
          Stored stored = Stored::exactly);

// Reads a whole file, from wherever it came. F64 and F32 are read, NaN and ∞ too; F32 becomes double exactly, but F64
// is not rounded to float.
// throws ValueError naming the file, on anything but a well-formed file: shorter or longer than it says; a header that
//   is no such JSON, is over 100 MB, or names a tensor twice; an unknown dtype; more than 6 axes; offsets that overlap,
//   leave gaps, or do not fit the shape
Checkpoint read_checkpoint(const std::string& file);

// Gives a model the values of a file, which must hold exactly its parameters, by path and shape. Returns the metadata.
// throws ValueError as read_checkpoint does, or naming file and parameter if one is missing, unknown or of another
//   shape. All is read and checked before the first is assigned: after an error the model is as it was
Metadata load(const Parameters& model, const std::string& file);

}  // namespace lookback
