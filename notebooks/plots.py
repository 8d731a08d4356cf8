"""The look of all figures: colours that survive colour blindness (Okabe and Ito), and a second cue beside each: measured
curves have markers, theory is a thin dashed line in black, on top."""

import re

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A7A7A"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
plt.rcParams.update({
    "figure.figsize": (8.5, 4.2), "figure.dpi": 100, "figure.constrained_layout.use": True, "font.size": 11,
    "axes.titlesize": 11, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
    "legend.frameon": False, "legend.fontsize": 10, "lines.linewidth": 2.2, "lines.markersize": 6,
    "axes.prop_cycle": plt.cycler(color=COLOURS) + plt.cycler(marker=MARKERS)})
DASHED = {"color": "black", "linestyle": "--", "linewidth": 1.2, "marker": "", "zorder": 5}


def raised(text):
    """h_t and A^k with their indices set low and high."""
    return re.sub(r"([_^])(−?\w+)", r"$\1{\2}$", text)


def curve(axes, trace, name, label=None, theory=None, **how):
    """A series with its labels, and, if the trace has it (or theory names it), the theory line that belongs to it."""
    s, theory = trace.series[name], name + " theory" if theory is None else theory
    axes.plot(s.x, s.y, label=label or raised(name), **({"markevery": 0.12} if len(s.x) > 12 else {}) | how)
    if theory in trace.series:
        axes.plot(trace.series[theory].x, trace.series[theory].y, **DASHED)
    axes.set(xlabel=axes.get_xlabel() or raised(s.x_label), ylabel=axes.get_ylabel() or raised(s.y_label))
    if axes.get_xscale() == "linear" and (s.x == s.x.round()).all():
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def powers(axes, x):
    """Ticks of a logarithmic x axis at these places, as plain numbers."""
    axes.set_xticks(x, [f"{v:g}" for v in x])
    axes.set_xticks([], minor=True)


def heat(axes, matrix, numbers=None, **how):
    """A matrix with its tokens on both axes, and inside what `numbers` makes of each number, say "{:.2f}".format."""
    data, (rows, columns) = matrix.data, matrix.data.shape
    signed = {"cmap": "PuOr_r", "vmin": -np.abs(data).max(), "vmax": np.abs(data).max()}
    image = axes.imshow(data, aspect="auto", **(signed if data.min() < 0 else {"cmap": "Blues", "vmin": 0}) | how)
    axes.grid(False)
    axes.set(xlabel=raised(matrix.column_label), ylabel=raised(matrix.row_label))
    for set_ticks, names in ((axes.set_xticks, matrix.columns), (axes.set_yticks, matrix.rows)):
        set_ticks(range(len(names)), ["␣" if n == " " else n for n in names]) if names else None
    for i, j in np.ndindex(rows, columns) if numbers else ():
        light = np.dot(image.cmap(image.norm(data[i, j]))[:3], (0.3, 0.6, 0.1)) > 0.5
        axes.text(j, i, numbers(data[i, j]), ha="center", va="center", color="black" if light else "white")
    return image
