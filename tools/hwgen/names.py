# SPDX-License-Identifier: BSD-2-Clause
"""Name rules of the contract: case, keywords and collisions between generated symbols."""

import re

LOWER = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")
UPPER = re.compile(r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$")
# An enum value always gets a prefix, so it may start with a digit.
UPPER_VALUE = re.compile(r"^[A-Z0-9]+(_[A-Z0-9]+)*$")

# Fields are members of SystemVerilog structs and C++ constants; structs are C++ namespaces.
# Lists: every reserved word of IEEE 1800-2017 and of C++20, plus macros of C libraries
# and the C++ words that Verilator warns about.
SV_KEYWORDS = frozenset(
    """
    alias always always_comb always_ff always_latch and assert assign assume automatic before begin
    bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class
    clocking cmos config const constraint context continue cover covergroup coverpoint cross
    deassign default defparam design disable dist do edge else end endcase endclass endclocking
    endconfig endfunction endgenerate endgroup endinterface endmodule endpackage endprimitive
    endprogram endproperty endsequence endspecify endtable endtask enum event eventually expect
    export extends extern final first_match for force foreach forever fork forkjoin function
    generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies
    import incdir include initial inout input inside instance int integer interconnect interface
    intersect join join_any join_none large let liblist library local localparam logic longint
    macromodule matches medium modport module nand negedge nettype new nexttime nmos nor
    noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge
    primitive priority program property protected pull0 pull1 pulldown pullup
    pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real
    realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1
    s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal
    showcancelled signed small soft solve specify specparam static string strong strong0 strong1
    struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout
    time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef
    union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait
    wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
    accept_on endchecker
    """.split()
)
CPP_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class const
    continue default do else enum export extern for if int not or return signed static struct this
    typedef union unsigned virtual void while xor char char8_t char16_t char32_t
    co_await co_return co_yield compl concept consteval constexpr constinit const_cast decltype
    delete double dynamic_cast explicit false float friend goto inline long mutable namespace
    noexcept not_eq nullptr operator or_eq private public register reinterpret_cast requires short
    sizeof static_assert static_cast switch template thread_local throw true try typeid typename
    using volatile wchar_t xor_eq restrict errno linux unix stdin stdout stderr std vector
    """.split()
)


class SpecError(Exception):
    """All problems found in one specification, one line each."""

    def __init__(self, problems: list[str]):
        super().__init__("\n".join(problems))
        self.problems = problems


def member(name: str) -> str:
    """A field's name in SystemVerilog and C++: the same in both, so one escape serves both."""
    return name + "_" if name in SV_KEYWORDS or name in CPP_KEYWORDS else name


def camel(name: str) -> str:
    """wr_id or WR_ID to WrId."""
    return "".join(part.capitalize() for part in name.lower().split("_"))


class Symbols:
    """Symbols of one output; two origins for one symbol are a specification error."""

    def __init__(self, output: str, taken: tuple[str, ...] = ()):
        self.output = output
        self.origin = {name: "hwgen itself" for name in taken}
        self.problems: list[str] = []

    def add(self, symbol: str, origin: str) -> str:
        if symbol in self.origin:
            self.problems.append(
                f"{origin}: its symbol {symbol} in {self.output} is also made by "
                f"{self.origin[symbol]}"
            )
        self.origin[symbol] = origin
        return symbol

    def finish(self) -> None:
        if self.problems:
            raise SpecError(self.problems)
