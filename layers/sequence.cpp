#include "sequence.hpp"

namespace lookback {

Visible::Visible(const char* layer, const Tensor& x, const std::optional<Mask>& mask) {
    if (x.rank() != 3) fail<ShapeError>(layer, "x is (B,T,I), not " + text(x.shape()));
    B_ = x.shape(0);
    T_ = x.shape(1);
    counts_.assign(T_, B_);
    if (!mask) return;
    if (mask->shape() != Shape{B_, T_} && mask->shape() != Shape{B_, 1, T_})
        fail<ShapeError>(
            layer, "a mask " + text(mask->shape()) + " for x " + text(x.shape()) + ": (B,T) or (B,1,T) is wanted");
    counts_.assign(T_, 0);
    for (std::size_t i = 0; i < mask->size(); ++i) counts_[i % T_] += (*mask)[i];
    for (std::size_t count : counts_)
        if (count != B_) mask_ = mask->reshape({B_, T_, 1});
}

Visible::Rows Visible::rows(std::size_t t) const {
    return counts_[t] == B_ ? Rows::all : counts_[t] == 0 ? Rows::none : Rows::some;
}

Mask Visible::step(std::size_t t) const {
    std::vector<bool> rows(B_);
    for (std::size_t b = 0; b < B_; ++b) rows[b] = (*mask_)[b * T_ + t];
    return Mask({B_, 1}, std::move(rows));
}

Tensor Visible::zeroed(const Tensor& x) const { return mask_ ? masked_fill(x, *mask_, 0) : x; }

std::vector<Window> windows(std::size_t T, std::size_t length) {
    if (length == 0) fail<ValueError>("windows", "a length of 0");
    std::vector<Window> all;
    for (std::size_t start = 0; start < T; start += length) all.push_back({start, std::min(T, start + length)});
    return all;
}

}  // namespace lookback
