"""The 26 benchmark bodies for DST allocation, and how their ops may run on Wormhole with a 16-bit DST.

A body is ``inputs | ops | outputs``; an op is ``result=op operand...``. Ops ending in ``_s`` carry a scalar. Cycles are the
counted ones of the published op table (HiFi4, accurate variants, the releases' default macros).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from tilewright.dst.problem import Costs, Form, Leaf, Op, Operand, Place, Problem, ResultRule

BODIES = {
    "gelu_tanh": "x | u=square x; v=mul u x; w=mul_s v; s=add w x; t=mul_s s; h=tanh t; p=add_s h; q=mul p x; y=mul_s q | y",
    "silu_exp": "x | n=neg x; e=exp n; d=add_s e; r=recip d; y=mul r x | y",
    "swiglu": "g u | n=neg g; e=exp n; d=add_s e; r=recip d; s=mul r g; y=mul s u | y",
    "softmax_exp": "x m | d=sub x m; s=mul_s d; y=exp s | y",
    "softmax_norm": "e s | r=recip s; y=mul e r | y",
    "online_softmax_merge": "m1 m2 l1 l2 | m=max m1 m2; a=sub m1 m; b=sub m2 m; ea=exp a; eb=exp b; p=mul l1 ea;"
    " q=mul l2 eb; l=add p q | m l ea eb",
    "rmsnorm_apply": "x ms w | a=add_s ms; r=rsqrt a; t=mul x r; y=mul t w | y",
    "layernorm_affine": "x mean var g b | d=sub x mean; a=add_s var; r=rsqrt a; n=mul d r; s=mul n g; y=add s b | y",
    "rotary": "x1 x2 c s | a=mul x1 c; b=mul x2 s; y1=sub a b; d=mul x2 c; e=mul x1 s; y2=add d e | y1 y2",
    "complex_mul": "a b c d | p=mul a c; q=mul b d; re=sub p q; r=mul a d; s=mul b c; im=add r s | re im",
    "fft_butterfly": "ar ai br bi wr wi | p=mul br wr; q=mul bi wi; tr=sub p q; r=mul br wi; s=mul bi wr; ti=add r s;"
    " o1=add ar tr; o2=sub ar tr; o3=add ai ti; o4=sub ai ti | o1 o2 o3 o4",
    "horner8": "x | y1=mul_s x; z1=add_s y1; y2=mul z1 x; z2=add_s y2; y3=mul z2 x; z3=add_s y3; y4=mul z3 x; z4=add_s y4;"
    " y5=mul z4 x; z5=add_s y5; y6=mul z5 x; z6=add_s y6; y7=mul z6 x; z7=add_s y7; y8=mul z7 x; z8=add_s y8 | z8",
    "estrin7": "x | x2=square x; x4=square x2; a=mul_s x; a1=add_s a; b=mul_s x; b1=add_s b; c=mul_s x; c1=add_s c;"
    " d=mul_s x; d1=add_s d; e=mul b1 x2; f=add e a1; g=mul d1 x2; h=add g c1; i=mul h x4; y=add i f | y",
    "adam": "p g m v | a=mul_s m; b=mul_s g; m2=add a b; g2=square g; c=mul_s g2; d=mul_s v; v2=add c d; mh=mul_s m2;"
    " vh=mul_s v2; s=sqrt vh; e=add_s s; st=div mh e; ls=mul_s st; p2=sub p ls | p2 m2 v2",
    "mish": "x | e=exp x; o=add_s e; l=log o; t=tanh l; y=mul t x | y",
    "hardswish": "x | a=add_s x; r=relu6 a; s=mul_s r; y=mul s x | y",
    "quant_dequant": "x | a=mul_s x; r=round a; z=add_s r; c=clamp_s z; d=sub_s c; y=mul_s d; e=sub y x | y e",
    "lerp": "a b w | d=sub b a; m=mul d w; y=add m a | y",
    "focal_loss": "z t | p=sigmoid z; q=rsub_s p; pt=where t p q; l=log pt; o=rsub_s pt; o2=square o; f=mul o2 l;"
    " y=mul_s f | y",
    "gru_cell": "xr hr xz hz xn hn h | a=add xr hr; r=sigmoid a; b=add xz hz; z=sigmoid b; c=mul r hn; d=add xn c;"
    " n=tanh d; e=sub h n; f=mul e z; y=add f n | y",
    "lstm_cell": "i f g o c | si=sigmoid i; sf=sigmoid f; tg=tanh g; so=sigmoid o; a=mul sf c; b=mul si tg; c2=add a b;"
    " tc=tanh c2; h=mul so tc | c2 h",
    "welford": "x mean m2 | d=sub x mean; s=mul_s d; mean2=add mean s; d2=sub x mean2; q=mul d d2; m22=add m2 q"
    " | mean2 m22",
    "euler_lorenz": "x y z | a=sub y x; dx=mul_s a; b=rsub_s z; c=mul x b; dy=sub c y; e=mul x y; f=mul_s z; dz=sub e f;"
    " sx=mul_s dx; x2=add x sx; sy=mul_s dy; y2=add y sy; sz=mul_s dz; z2=add z sz | x2 y2 z2",
    "rk4_logistic": "y | a1=rsub_s y; b1=mul a1 y; k1=mul_s b1; h1=mul_s k1; y1=add h1 y; a2=rsub_s y1; b2=mul a2 y1;"
    " k2=mul_s b2; h2=mul_s k2; y2=add h2 y; a3=rsub_s y2; b3=mul a3 y2; k3=mul_s b3; h3=mul_s k3; y3=add h3 y;"
    " a4=rsub_s y3; b4=mul a4 y3; k4=mul_s b4; s1=add k2 k3; s2=mul_s s1; s3=add s2 k1; s4=add s3 k4; s5=mul_s s4;"
    " yo=add s5 y | yo",
    "black_scholes": "S K T | q=div S K; lg=log q; sq=sqrt T; vs=mul_s sq; rt=mul_s T; nu=add lg rt; d1=div nu vs;"
    " d2=sub d1 vs; u1=mul_s d1; e1=erf u1; p1=add_s e1; n1=mul_s p1; u2=mul_s d2; e2=erf u2; p2=add_s e2; n2=mul_s p2;"
    " nr=mul_s T; df=exp nr; A=mul S n1; kd=mul K df; Bk=mul kd n2; call=sub A Bk | call",
    "mandelbrot": "zr zi cr ci | a=square zr; b=square zi; c=mul zr zi; d=sub a b; zr2=add d cr; e=mul_s c; zi2=add e ci;"
    " m=add a b | zr2 zi2 m",
}

# Fewest slots with FPU forms and reloads, and fewest copies with reloads, as published with the set.
PUBLISHED_SLOTS = dict(
    zip(BODIES, (1, 1, 1, 1, 1, 5, 1, 2, 3, 3, 4, 1, 3, 4, 1, 1, 2, 1, 3, 3, 3, 3, 3, 4, 3, 3), strict=True)
)
PUBLISHED_COPIES = {"adam": 2, "focal_loss": 2, "lstm_cell": 1, "welford": 1, "rk4_logistic": 5}

IN_PLACE_CYCLES = {  # (math cycles, init cycles)
    "square": (176, 5), "neg": (144, 5), "abs": (144, 5), "exp": (676, 16), "log": (944, 13), "recip": (560, 19),
    "sqrt": (912, 15), "rsqrt": (1040, 16), "tanh": (520, 15), "sigmoid": (1488, 20), "relu": (216, 9),
    "relu6": (404, 5), "round": (480, 5), "erf": (1808, 15), "clamp_s": (432, 5), "mul_s": (176, 5), "add_s": (176, 5),
    "sub_s": (180, 5), "rsub_s": (496, 5),
}  # fmt: skip
SFPU_BINARY_CYCLES = {"add": (208, 5), "sub": (208, 5), "mul": (756, 5), "div": (1460, 14), "max": (143, 18), "min": (143, 18)}
FPU_CYCLES = {"add": 14, "sub": 14, "mul": 70}
REUSE_TO_SRCA = {"add": 42, "sub": 42, "mul": 102}
REUSE_TO_SRCB = {"add": 54, "sub": 54, "mul": 110}
WHERE_CYCLES, WHERE_ON_CONDITION_CYCLES, WHERE_INIT = 160, 124, 16
STATELESS_INIT = 5
ROUND_TRIPS = 16
FPU_INIT, FPU_PAIR_UNPACK, FPU_SINGLE_UNPACK = 49, 70, 40


# bf16 tiles on Wormhole.
LEAF = Leaf(load_math_cycles=14, load_unpack_cycles=40, init_cycles=37)
COSTS = Costs(sync=20, copy=133, copy_init_cycles=5, pack=46, spill_unpack=40, hand_over=158)


def dst(value: int) -> Operand:
    return Operand(value, Place.DST)


def buffer(value: int) -> Operand:
    return Operand(value, Place.BUFFER)


def init_key(name: str, cycles: int) -> str:
    """As in the compiler: ops whose init sets nothing of their own run under any vector unit init."""
    return "sfpu" if cycles == STATELESS_INIT else name


class BodyBuilder:
    """Turns the text of a body into a problem with all forms of every op."""

    def __init__(self, text: str, *, fpu: bool = True, round_trips: bool = False):
        inputs, ops, outputs = (part.split() if i != 1 else part.split(";") for i, part in enumerate(text.split("|")))
        self.inputs = list(inputs)
        self.number = {name: i for i, name in enumerate(self.inputs)}
        self.fpu = fpu
        self.round_trips = round_trips
        self.lines: list[tuple[str, list[int]]] = []
        for line in ops:
            result, call = line.strip().split("=")
            name, *operands = call.split()
            self.lines.append((name, [self.number[o] for o in operands]))
            self.number[result.strip()] = len(self.number)
        self.outputs = [self.number[name] for name in outputs]
        self.uses: dict[int, int] = {}
        for _, operands in self.lines:
            for value in operands:
                self.uses[value] = self.uses.get(value, 0) + 1

    def problem(self, capacity: int, tiles: int = 64) -> Problem:
        ops = tuple(
            Op(operands=tuple(operands), forms=tuple(self.forms(name, operands)), name=name)
            for name, operands in self.lines
        )
        leaves = tuple(replace(LEAF, name=name) for name in self.inputs)
        outputs = tuple(self.outputs)
        problem = Problem(leaves=leaves, ops=ops, outputs=outputs, capacity=capacity, tiles=tiles, costs=COSTS)
        return replace(problem, round_trips=ROUND_TRIPS) if self.round_trips else problem

    def is_leaf(self, value: int) -> bool:
        return value < len(self.inputs)

    def is_readable(self, value: int) -> bool:
        """Whether the matrix unit may find a value in a buffer."""
        return self.round_trips or self.is_leaf(value)

    def forms(self, name: str, operands: list[int]) -> Iterator[Form]:
        if name in IN_PLACE_CYCLES:
            math, init = IN_PLACE_CYCLES[name]
            yield Form(
                key=name, operands=(dst(operands[0]),), result=ResultRule.IN_PLACE, reuses=0,
                math_cycles=math, init=init_key(name, init), init_cycles=init,
            )  # fmt: skip
            return
        in_dst = tuple(dst(value) for value in operands)
        if name == "where":
            yield Form(
                key="where", operands=in_dst, result=ResultRule.FREE,
                math_cycles=WHERE_CYCLES, init="where", init_cycles=WHERE_INIT,
            )  # fmt: skip
            yield Form(
                key="where on condition", operands=in_dst, result=ResultRule.IN_PLACE, reuses=0,
                math_cycles=WHERE_ON_CONDITION_CYCLES, init="where", init_cycles=WHERE_INIT,
            )  # fmt: skip
            return
        math, init = SFPU_BINARY_CYCLES[name]
        yield Form(
            key=f"sfpu {name}", operands=in_dst, result=ResultRule.FREE,
            math_cycles=math, init=init_key(f"sfpu {name}", init), init_cycles=init,
        )  # fmt: skip
        if self.fpu and name in FPU_CYCLES:
            yield from self.fpu_forms(name, *operands)

    def fpu_forms(self, name: str, first: int, second: int) -> Iterator[Form]:
        if self.is_readable(first) and self.is_readable(second):
            rule = ResultRule.ZEROED if name == "mul" else ResultRule.FREE
            yield Form(
                key=f"fpu {name}", operands=(buffer(first), buffer(second)), result=rule,
                math_cycles=FPU_CYCLES[name], unpack_cycles=FPU_PAIR_UNPACK, init=f"fpu {name}", init_cycles=FPU_INIT,
            )  # fmt: skip
        if self.is_readable(second):
            yield self.reuse(name, "srca", first, second, REUSE_TO_SRCA[name])
        if self.is_readable(first):
            side, cycles = ("srcb", REUSE_TO_SRCB[name]) if name == "sub" else ("srca", REUSE_TO_SRCA[name])
            yield self.reuse(name, side, second, first, cycles)
        if name == "add":
            for product, addend in ((first, second), (second, first)):
                yield from self.multiply_add(product, addend)

    def reuse(self, name: str, side: str, kept: int, read: int, cycles: int) -> Form:
        return Form(
            key=f"reuse {name} {side}", operands=(dst(kept), buffer(read)), result=ResultRule.IN_PLACE, reuses=0,
            math_cycles=cycles, unpack_cycles=FPU_SINGLE_UNPACK, init=f"reuse {name} {side}", init_cycles=FPU_INIT,
        )  # fmt: skip

    def multiply_add(self, product: int, addend: int) -> Iterator[Form]:
        """FPU multiply of two leaves onto the addend, if nobody else wants the product."""
        op = product - len(self.inputs)
        if op < 0 or self.lines[op][0] != "mul" or self.uses[product] != 1 or product in self.outputs:
            return
        first, second = self.lines[op][1]
        if product == addend or not (self.is_readable(first) and self.is_readable(second)):
            return
        yield Form(
            key="fpu multiply-add", operands=(buffer(first), buffer(second), dst(addend)),
            result=ResultRule.ACCUMULATE, reuses=2, absorbs=(op,), math_cycles=FPU_CYCLES["mul"],
            unpack_cycles=FPU_PAIR_UNPACK, init="fpu mul", init_cycles=FPU_INIT,
        )  # fmt: skip


def benchmark_problem(
    name: str, capacity: int, *, tiles: int = 64, fpu: bool = True, round_trips: bool = False
) -> Problem:
    return BodyBuilder(BODIES[name], fpu=fpu, round_trips=round_trips).problem(capacity, tiles)


def random_text(seed: int, count: int) -> str:
    """A random body: about half unary, up to eight inputs, one to four outputs; sums join what nobody uses."""
    choose = random.Random(seed)
    names = [f"i{n}" for n in range(choose.randint(1, 8))]
    inputs = " ".join(names)
    lines: list[str] = []
    while len(lines) < count:
        near = names[-6:] if choose.random() < 0.8 else names
        if choose.random() < 0.45:
            call = f"{choose.choice(('exp', 'neg', 'tanh', 'mul_s', 'add_s'))} {choose.choice(near)}"
        else:
            call = f"{choose.choice(('add', 'sub', 'mul'))} {choose.choice(near)} {choose.choice(names)}"
        lines.append(f"v{len(lines)}={call}")
        names.append(f"v{len(lines) - 1}")
    used = {word for line in lines for word in line.split()[1:]}
    sinks = [f"v{n}" for n in range(count) if f"v{n}" not in used]
    while len(sinks) > 4:
        lines.append(f"v{len(lines)}=add {sinks.pop()} {sinks.pop()}")
        sinks.append(f"v{len(lines) - 1}")
    return f"{inputs} | {'; '.join(lines)} | {' '.join(sinks)}"
