#!/usr/bin/python3
"""PyTorch's side of the comparison: the workloads of bench.cpp, which see, in the same language of lines.

    workloads.py float|double

"Cells" are built op by op, as a reader of the equations would; those named "…-layer" are nn.LSTM and its like.
"""
import ctypes
import math
import re
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.set_num_threads(1)
torch.set_default_dtype({"float": torch.float32, "double": torch.float64}[sys.argv[1]])


# ---- What both sides know

def noise(tensor, count):
    """Numbers in ±1: a hash of the tensor's number and the place in it, in 32 bits."""
    mask = 0xffffffff
    x = (torch.arange(count) * 0x9e3779b1 + tensor * 0x85ebca77) & mask
    x = ((x ^ x >> 15) * 0x2c1b3c6d) & mask
    x = ((x ^ x >> 12) * 0x297a2d39) & mask
    return ((x ^ x >> 15) >> 8).double() / 8388608 - 1


class Draw:
    tensor = 0

    def numbers(self, *shape, bound=1.0):
        self.tensor += 1
        return (bound * noise(self.tensor, math.prod(shape))).to(torch.get_default_dtype()).reshape(shape)

    def integers(self, count, low, high):
        self.tensor += 1
        return low + ((noise(self.tensor, count) + 1) / 2 * (high - low)).long()


# ---- What a workload is

class Work:
    """`forward` gives the root, the seed of a root of several elements, and the tensors whose gradients are kept besides
    the parameters'. `kept` names the parameters in our layout: the leaf, and what makes our gradient of its own."""
    train = None

    def __init__(self):
        self.kept, self.leaves = [], []

    def weights(self, draw, names_and_shapes, bound=0.1):
        made = []
        for name, *shape in names_and_shapes:
            x = draw.numbers(*shape, bound=bound).requires_grad_()
            made.append(x)
            self.keep(name, x)
        return made

    def keep(self, name, x, ours=lambda g: g):
        self.kept.append((name, x, ours))
        if not any(x is leaf for leaf in self.leaves):
            self.leaves.append(x)


def put(parameter, *values):
    """Into a module's parameter: values side by side along its first axis."""
    with torch.no_grad():
        parameter.copy_(torch.cat([v for v in values]))
    return parameter


UNIT = 1.7320508075688772  # ±√3 has variance 1


def rnn_step(a, h, U, _):
    return (torch.tanh(a + h[0] @ U),)


def lstm_step(a, state, U, _):
    h, c = state
    i, f, g, o = (a + h @ U).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru_step(a, state, U, b_n):
    h, = state
    x_r, x_z, x_n = a.chunk(3, 1)
    h_r, h_z, h_n = (h @ U).chunk(3, 1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * (h_n + b_n))
    return (n + z * (h - n),)


GATES = {"rnn": 1, "lstm": 4, "gru": 3}
STEPS = {"rnn": rnn_step, "lstm": lstm_step, "gru": gru_step}


def cell_weights(kind, H):
    n = GATES[kind]
    return [("W", H, n * H), ("U", H, n * H), ("b", n * H)] + ([("b_n", H)] if kind == "gru" else [])


def cells(kind, n, draw, last=False):
    T, B, H, step, work = n["T"], n["B"], n["H"], STEPS[kind], Work()
    W, U, b, *b_n = work.weights(draw, cell_weights(kind, H), bound=1 / math.sqrt(H))
    b_n = b_n[0] if b_n else None
    x = draw.numbers(B, T, H, bound=UNIT)

    def forward():
        state, hs = tuple(torch.zeros(B, H) for _ in range(2 if kind == "lstm" else 1)), []
        for t in range(T):
            state = step(x[:, t] @ W + b, state, U, b_n)
            state[0].retain_grad()
            hs.append(state[0])
        return (hs[-1] if last else torch.stack(hs, 1)).pow(2).sum(), None, hs
    work.forward = forward
    return work


def layer(kind, n, draw):
    H, work = n["H"], Work()
    net = getattr(nn, kind.upper())(H, H, batch_first=True)
    drawn = {name: draw.numbers(*shape, bound=1 / math.sqrt(H)) for name, *shape in cell_weights(kind, H)}
    load_recurrent(work, net, "", drawn)
    x = draw.numbers(n["B"], n["T"], H, bound=UNIT)
    work.forward = lambda: (net(x)[0].pow(2).sum(), None, [])
    return work


def load_recurrent(work, net, prefix, drawn, suffix="_l0"):
    """Our W, U, b (and b_n of a GRU, which is the last part of bias_hh) into nn.RNN, nn.LSTM or nn.GRU, or a cell."""
    p = {name: getattr(net, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    put(p["weight_ih"], drawn["W"].T)
    put(p["weight_hh"], drawn["U"].T)
    put(p["bias_ih"], drawn["b"])
    H = net.hidden_size
    put(p["bias_hh"], torch.zeros(len(drawn["b"]) - ("b_n" in drawn) * H), drawn.get("b_n", torch.zeros(0)))
    work.keep(prefix + "W", p["weight_ih"], lambda g: g.T)
    work.keep(prefix + "U", p["weight_hh"], lambda g: g.T)
    work.keep(prefix + "b", p["bias_ih"])
    if "b_n" in drawn:
        work.keep(prefix + "b_n", p["bias_hh"], lambda g: g[2 * H:])
    else:
        work.leaves.append(p["bias_hh"])


def chain(n, draw, *shape):
    work = Work()
    x, one = draw.numbers(*shape).requires_grad_(), draw.numbers(*shape)
    work.leaves.append(x)

    def forward():
        y = x
        for _ in range(n["T"]):
            y = y + one
        return y.sum() if shape else y, None, [x]
    work.forward = forward
    return work


def self_attention(n, draw):
    T, D, work = n["T"], n["D"], Work()
    shape = n["B"], n["N"], T, D
    q, k, v = (draw.numbers(*shape, bound=UNIT).requires_grad_() for _ in range(3))
    seed = draw.numbers(*shape)
    work.leaves += [q, k, v]

    def forward():
        hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
        s = (q * D ** -0.5) @ k.transpose(-2, -1)
        return torch.softmax(s.masked_fill(hidden, -math.inf), -1) @ v, seed, [q, k, v]
    work.forward = forward
    return work


def additive_decoder(n, draw):
    B, D, work = n["B"], n["D"], Work()
    W_q, W_k, v, S, b, C = work.weights(draw, [
        ("attention.W_q", D, D), ("attention.W_k", D, D), ("attention.v", D), ("S.W", D, D), ("S.b", D), ("C.W", D, D)])
    keys = draw.numbers(B, n["T"], D, bound=UNIT).requires_grad_()
    work.leaves.append(keys)

    def forward():
        s, projected = torch.zeros(B, D), keys @ W_k
        for _ in range(n["S"]):
            weights = torch.softmax(torch.tanh(projected + (s @ W_q).unsqueeze(1)) @ v, -1)
            context = (weights.unsqueeze(1) @ keys).squeeze(1)
            s = torch.tanh(s @ S + b + context @ C)
        return s.pow(2).sum(), None, [keys]
    work.forward = forward
    return work


def encoder_block(n, draw):
    E, F, work = n["E"], n["F"], Work()
    net = nn.TransformerEncoderLayer(E, n["N"], F, dropout=0.0, batch_first=True).train()
    names = ([(f"attention.{part}.{p}", *shape) for part in ("query", "key", "value", "output")
              for p, shape in (("W", (E, E)), ("b", (E,)))]
             + [("feed_forward.in.W", E, F), ("feed_forward.in.b", F), ("feed_forward.out.W", F, E),
                ("feed_forward.out.b", E)]
             + [(f"{norm}.{p}", E) for norm in ("norm_attention", "norm_feed_forward") for p in ("gain", "bias")])
    w = {name: draw.numbers(*shape, bound=0.1) for name, *shape in names}
    a = net.self_attn
    put(a.in_proj_weight, *(w[f"attention.{part}.W"].T for part in ("query", "key", "value")))
    put(a.in_proj_bias, *(w[f"attention.{part}.b"] for part in ("query", "key", "value")))
    for i, part in enumerate(("query", "key", "value")):
        work.keep(f"attention.{part}.W", a.in_proj_weight, lambda g, i=i: g[i * E:(i + 1) * E].T)
        if part != "key":
            work.keep(f"attention.{part}.b", a.in_proj_bias, lambda g, i=i: g[i * E:(i + 1) * E])
    for name, module in (("attention.output", a.out_proj), ("feed_forward.in", net.linear1),
                         ("feed_forward.out", net.linear2)):
        load_linear(work, module, name, w[name + ".W"], w[name + ".b"])
    for name, module in (("norm_attention", net.norm1), ("norm_feed_forward", net.norm2)):
        work.keep(name + ".gain", put(module.weight, w[name + ".gain"]))
        work.keep(name + ".bias", put(module.bias, w[name + ".bias"]))
    shape = n["B"], n["T"], E
    x, seed = draw.numbers(*shape, bound=UNIT).requires_grad_(), draw.numbers(*shape)
    work.leaves.append(x)
    work.forward = lambda: (net(x), seed, [x])
    return work


def load_linear(work, module, name, W, b=None):
    work.keep(name + ".W", put(module.weight, W.T), lambda g: g.T)
    if b is not None:
        work.keep(name + ".b", put(module.bias, b))


class DatesModel(nn.Module):
    """Seq2Seq with Bahdanau's decoder: a bidirectional GRU reads, a GRU cell writes."""

    def __init__(self, V_source, V_target, E, H, A):
        super().__init__()
        self.source, self.target = nn.Embedding(V_source, E), nn.Embedding(V_target, E)
        self.encoder = nn.GRU(E, H, batch_first=True, bidirectional=True)
        self.bridge, self.cell = nn.Linear(2 * H, H), nn.GRUCell(E + 2 * H, H)
        self.W_q, self.W_k = nn.Linear(H, A, bias=False), nn.Linear(2 * H, A, bias=False)
        self.v = nn.Parameter(torch.zeros(A))
        self.readout, self.out = nn.Linear(H + 2 * H + E, H), nn.Linear(H, V_target)

    def forward(self, ids, lengths, hidden, inputs):
        packed = pack_padded_sequence(self.source(ids), lengths, batch_first=True, enforce_sorted=False)
        packed, last = self.encoder(packed)
        states, _ = pad_packed_sequence(packed, batch_first=True)
        s, keys = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1))), self.W_k(states)
        y, all_s, all_c = self.target(inputs), [], []
        for t in range(inputs.shape[1]):
            scores = torch.tanh(keys + self.W_q(s).unsqueeze(1)) @ self.v
            weights = torch.softmax(scores.masked_fill(hidden, -math.inf), -1)
            c = (weights.unsqueeze(1) @ states).squeeze(1)
            s = self.cell(torch.cat([y[:, t], c], -1), s)
            all_s.append(s)
            all_c.append(c)
        return self.out(torch.tanh(self.readout(torch.cat([torch.stack(all_s, 1), torch.stack(all_c, 1), y], -1))))


def training_step(n, draw):
    V_source, V_target, steps, E, H, A, first = 60, 14, 10, 24, 48, 48, 3
    B, work, net = n["B"], Work(), DatesModel(V_source, V_target, E, H, A)

    def w(*shape):
        return draw.numbers(*shape, bound=0.1)

    def gru(inputs):
        return {"W": w(inputs, 3 * H), "U": w(H, 3 * H), "b": w(3 * H), "b_n": w(H)}
    work.keep("source.table", put(net.source.weight, w(V_source, E)))
    work.keep("target.table", put(net.target.weight, w(V_target, E)))
    load_recurrent(work, net.encoder, "encoder.0.forward.", gru(E))
    load_recurrent(work, net.encoder, "encoder.0.backward.", gru(E), "_l0_reverse")
    load_linear(work, net.bridge, "decoder.bridge", w(2 * H, H), w(H))
    drawn, C = gru(E), w(2 * H, 3 * H)
    load_recurrent(work, net.cell, "decoder.cell.", {**drawn, "W": torch.cat([drawn["W"], C])}, "")
    work.kept = [(name, x, (lambda g: g.T[:E]) if name == "decoder.cell.W" else ours) for name, x, ours in work.kept]
    work.keep("decoder.C.W", net.cell.weight_ih, lambda g: g.T[E:])
    load_linear(work, net.W_q, "decoder.attention.W_q", w(H, A))
    load_linear(work, net.W_k, "decoder.attention.W_k", w(2 * H, A))
    work.kept = [(name.replace("W_q.W", "W_q").replace("W_k.W", "W_k"), x, ours) for name, x, ours in work.kept]
    work.keep("decoder.attention.v", put(net.v, w(A)))
    load_linear(work, net.readout, "decoder.out", w(3 * H + E, H), w(H))
    load_linear(work, net.out, "out", w(H, V_target), w(V_target))

    lengths = draw.integers(B, 8, 24)
    rows = [draw.integers(int(length), first, V_source) for length in lengths]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    targets = torch.stack([draw.integers(steps, first, V_target) for _ in range(B)])
    inputs = torch.cat([torch.full((B, 1), 1), targets], 1)
    targets = torch.cat([targets, torch.full((B, 1), 2)], 1)
    hidden = torch.arange(ids.shape[1]) >= lengths.unsqueeze(1)
    adam = torch.optim.Adam(net.parameters(), lr=4e-3)

    def forward():
        logits = net(ids, lengths, hidden, inputs)
        return functional.cross_entropy(logits.reshape(-1, V_target), targets.reshape(-1)), None, []

    def train():
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        adam.step()
    work.forward, work.train = forward, train
    return work


def scores(kind, n, draw):
    D, work = n["D"], Work()
    w = work.weights(draw, {"bilinear": [("W", D, D)], "additive": [("W_q", D, D), ("W_k", D, D), ("v", D)]}.get(kind, []))
    q, k = draw.numbers(n["B"], n["Q"], D).requires_grad_(), draw.numbers(n["B"], n["T"], D).requires_grad_()
    seed = draw.numbers(n["B"], n["Q"], n["T"])
    work.leaves += [q, k]

    def score():
        if kind == "additive":
            W_q, W_k, v = w
            return torch.tanh((q @ W_q).unsqueeze(2) + (k @ W_k).unsqueeze(1)) @ v
        keys = k @ w[0].T if kind == "bilinear" else k
        return (q * D ** -0.5 if kind == "scaled-dot" else q) @ keys.transpose(-2, -1)
    work.forward = lambda: (score(), seed, [q, k])
    return work


def make(kind, *sizes):
    n, draw = {size[0]: int(size[1:]) for size in sizes}, Draw()
    whole = {"attention": self_attention, "attention-fused": self_attention, "decoder": additive_decoder,
             "encoder": encoder_block, "dates": training_step, "chain": chain,
             "chain-4x4": lambda n, draw: chain(n, draw, 4, 4)}
    if kind in whole:
        return whole[kind](n, draw)
    if kind in ("dot", "scaled-dot", "bilinear", "additive"):
        return scores(kind, n, draw)
    cell, _, form = kind.partition("-")
    return layer(cell, n, draw) if form == "layer" else cells(cell, n, draw, last=form == "last")


# ---- What is done with it

def run(work):
    for leaf in work.leaves:
        leaf.grad = None
    root, seed, wanted = work.forward()
    middle = time.process_time()
    root.backward(seed)
    return root, wanted, middle


def once(work):
    """From nothing to nothing: what was recorded is released within the time."""
    start = time.process_time()
    middle = run(work)[2]
    end = time.process_time()
    if work.train:
        work.train()
    return time.process_time() - start, middle - start, end - middle


def measure(work, seconds):
    total, count = (0, 0, 0), 0
    while count == 0 or total[0] < seconds:
        total = [a + b for a, b in zip(total, once(work))]
        count += 1
    print(*(t / count for t in total))


def answer(work):
    def tell(name, x):
        x = x.detach().double().reshape(-1)
        print(name, x.norm().item(), (x * noise(0, len(x))).sum().item())
    root, wanted, _ = run(work)
    tell("loss", root)
    for name, x, ours in work.kept:
        tell(name, ours(x.grad))
    for i, x in enumerate(wanted):
        tell(f"wanted.{i}", x.grad)


def memory(key):
    with open("/proc/self/status") as status:
        return int(re.search(key + r":\s+(\d+)", status.read())[1]) * 1024


def peak(work):
    ctypes.CDLL(None).malloc_trim(0)  # what was freed before is not to be used again
    before = memory("VmRSS")
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # VmHWM begins anew
    once(work)
    print(memory("VmHWM") - before)


def blas():
    """The OpenBLAS that torch has loaded: its kernel and its threads."""
    with open("/proc/self/maps") as maps:
        path = next((line.split()[-1] for line in maps if "libopenblas" in line), None)
    if not path:
        return "none", 0
    library = ctypes.CDLL(path)
    library.openblas_get_corename.restype = ctypes.c_char_p
    return library.openblas_get_corename().decode(), library.openblas_get_num_threads()


print(sys.argv[1], *blas(), "\nend", flush=True)
work = None
for line in sys.stdin:
    command, *rest = line.split()
    if command == "work":
        work = make(*rest)
    elif command == "answer":
        answer(work)
    elif command == "round":
        measure(work, float(rest[0]))
    elif command == "peak":
        peak(work)
    elif command == "flush":
        torch.set_flush_denormal(rest[0] == "1")
    print("end", flush=True)
