"""Mutants of the chip in SystemVerilog: control, addressing, arithmetic and counters."""

from collections.abc import Mapping
from typing import Final

from mutants.mutant import Group, Mutant

ICARUS_ONLY: Final = (
    "not verilator and not every_sum_of_two_bytes and not longest_rows and not pydoc"
    " and not random_initial and not reset_at_every_cycle"
)
"""Verilator takes 17 seconds to build what Icarus compiles in one, and every mutant is built."""

_UNITS: Final = "tests/rtl/test_units.py"
_ARITHMETIC: Final = "tests/rtl/test_arithmetic.py"
_REPLAY: Final = "tests/rtl/test_replay.py"

_RANDOM: Final = f"{_REPLAY}::test_random_programs"
_RESETS: Final = f"{_REPLAY}::test_reset_in_the_middle_of_a_program"
_STALLS: Final = f"{_REPLAY}::test_stalls_change_only_dma_and_total"
_UNDEFINED: Final = f"{_REPLAY}::test_undefined_data_reach_no_request_and_no_counter"

_LOADS: Final = f"{_REPLAY}::test_latency_is_paid_once_a_load"
_TILES: Final = (f"{_ARITHMETIC}::test_strides_of_tiles", f"{_ARITHMETIC}::test_every_tile_shape")
_SUMS: Final = (f"{_ARITHMETIC}::test_sums_of_extreme_bytes_saturate",)
_SOFTMAX: Final = (f"{_ARITHMETIC}::test_softmax_rows",)
_ARGMAX: Final = (f"{_ARITHMETIC}::test_argmax_ties_at_every_position",)
_RECTANGLES: Final = (f"{_ARITHMETIC}::test_requantizer_over_a_rectangle",)
_DMA: Final = (f"{_ARITHMETIC}::test_dma_at_both_ends_of_both_memories",)
_FEW: Final = (f"{_REPLAY}::test_words_behind_an_image_are_cleared",)
_HALT: Final = (f"{_ARITHMETIC}::test_a_program_of_nothing_but_halt", _LOADS, _RANDOM)
_UNIT_REQUANTIZER: Final = (f"{_UNITS}::test_requantizer",)
_UNIT_DIVIDER: Final = (f"{_UNITS}::test_divider",)
_UNIT_SATURATE: Final = (f"{_UNITS}::test_saturate",)


Row = tuple[str, str, str, str, tuple[str, ...]]
"""Name, text to find, replacement, reason, checks."""

_QUICK: Final = ("ties rounded down", "total without control")
_EQUIVALENT: Final[Mapping[str, str]] = {
    "RQ clocked by any instruction": "gating saves power, not results: without a start of its own "
    "the unit has no word on its way, so its registers keep what they hold when clocked",
    "unused rows not masked": "sums of unused rows are never drained and are cleared before the "
    "next tile; the mask keeps undefined bytes from moving registers that nobody reads",
}


def _in(module: str, rows: tuple[Row, ...]) -> tuple[Mutant, ...]:
    """The mutants of one module."""
    return tuple(
        Mutant(
            f"{module}: {name}", f"rtl/{module}.sv", find, replace, reason, checks,
            argument=_EQUIVALENT.get(name, ""), ci=name in _QUICK,
        )
        for name, find, replace, reason, checks in rows
    )  # fmt: skip


_CONTROL: Final = (
    *_in("sequencer", (
        ("decode skipped", "FETCH: state_q <= DECODE;", "FETCH: state_q <= unit;",
         "the instruction is not there yet", _HALT),
        ("HALT marked illegal", "opcode_i != ga2_pkg::OP_HALT", "opcode_i == ga2_pkg::OP_HALT",
         "the bench could not tell the end from a fault", _HALT),
        ("decode costs nothing", "state_q == FETCH || state_q == DECODE;", "state_q == FETCH;",
         "every instruction pays two control cycles", _HALT),
        ("done not cleared by a start",
         "state_q   <= FETCH;\n          done_o    <= 1'b0;", "state_q   <= FETCH;",
         "the second program seems to end at once", _FEW),
        ("second program starts where the first ended",
         "illegal_o <= 1'b0;\n          index_o   <= '0;\n        end",
         "illegal_o <= 1'b0;\n        end",
         "every start is at entry 0", _FEW),
        ("VADD goes to the matrix unit",
         "ga2_pkg::OP_MM: unit = MATRIX;\n      ga2_pkg::OP_LD, ga2_pkg::OP_ST: unit = DMA;\n"
         "      ga2_pkg::OP_RQ, ga2_pkg::OP_VADD, ga2_pkg::OP_SM, ga2_pkg::OP_AMAX: unit = VECTOR;",
         "ga2_pkg::OP_MM, ga2_pkg::OP_VADD: unit = MATRIX;\n"
         "      ga2_pkg::OP_LD, ga2_pkg::OP_ST: unit = DMA;\n"
         "      ga2_pkg::OP_RQ, ga2_pkg::OP_SM, ga2_pkg::OP_AMAX: unit = VECTOR;",
         "the wrong unit executes it", _SUMS),
        ("unknown opcode goes on", "default: unit = IDLE;",
         "default: unit = opcode_i[3] ? DMA : IDLE;",
         "damaged code runs", (f"{_REPLAY}::test_an_unknown_opcode_stops_the_chip",)),
        ("start during a program restarts it", "start_o = start_i && state_q == IDLE",
         "start_o = start_i", "the counters are cleared in the middle",
         (_LOADS, _RANDOM)),
    )),
    *_in("counters", (
        ("total without control", "matrix_i || dma_i || vector_i || control_i",
         "matrix_i || dma_i || vector_i", "the five counters do not add up", _HALT),
        ("not cleared by a start", "if (rst_i || clear_i) begin", "if (rst_i) begin",
         "the second program pays for the first", _HALT),
        ("DMA cycles on the vector counter", "else if (dma_i) dma_o <= dma_o + WIDTH'(1);",
         "else if (dma_i) vector_o <= vector_o + WIDTH'(1);", "the sum is right, the units are not",
         _DMA),
        ("total counts in twos", "total_o <= total_o + WIDTH'(1)", "total_o <= total_o + WIDTH'(2)",
         "a cycle is one", _HALT),
    )),
    *_in("vector_unit", (
        ("write data of two units mixed", "rq_wdata | add_wdata | sm_wdata | max_wdata",
         "rq_wdata | add_wdata | sm_wdata", "the index of AMAX is lost", _ARGMAX),
        ("SM not clocked", "sm_enable  = rst_i || (enable_i && sm_is)",
         "sm_enable  = rst_i || (enable_i && rq_is)", "the unit never ends", _SOFTMAX),
        ("RQ clocked by any instruction", "rq_enable  = rst_i || (enable_i && rq_is)",
         "rq_enable  = rst_i || enable_i",
         "only the unit at work is to be clocked", (_LOADS, _RANDOM)),
    )),
    *_in("ga2", (
        ("unit's write lost", "matrix_we || dma_we || vector_we", "matrix_we || dma_we",
         "results of vector instructions stay behind", _SUMS),
        ("scratchpad address from one unit only", "matrix_raddr | dma_raddr | vector_raddr",
         "matrix_raddr | vector_raddr", "stores read word 0", _DMA),
        ("DMA not stopped by a reset", "dma_start || dma_cycle || rst_i", "dma_start || dma_cycle",
         "a stopped load writes into the next program", (_RESETS,)),
    )),
)  # fmt: skip

_ADDRESSING: Final = (
    *_in("walker", (
        ("row too few", "last_row_q <= rows_i - COUNT_BITS'(1)",
         "last_row_q <= rows_i - COUNT_BITS'(2)",
         "the last row is left out", _RECTANGLES),
        ("stride of one word", "next_row_q <= next_row_q + stride_q",
         "next_row_q <= next_row_q + ADDRESS_BITS'(1)",
         "rows overlap from the third on", _RECTANGLES),
        ("second row follows the first without a gap",
         "next_row_q <= base_i + ADDRESS_BITS'(stride_i)",
         "next_row_q <= base_i + ADDRESS_BITS'(cols_i)", "the stride counts from the third row on",
         _RECTANGLES),
        ("column not reset at the end of a row",
         "row_o      <= row_o + COUNT_BITS'(1);\n          col_o      <= '0;",
         "row_o      <= row_o + COUNT_BITS'(1);",
         "the second row never ends as it should", _RECTANGLES),
    )),
    *_in("matrix_unit", (
        ("B transposed when it is not",
         "rows   = transposed ? K_BITS'(n) : k;\n        cols   = transposed ? k",
         "rows   = transposed ? k : K_BITS'(n);\n        cols   = !transposed ? k",
         "rows and columns of B are exchanged", _TILES),
        ("stride of A taken for B", "stride = stride_b;", "stride = stride_a;",
         "rows of B are as far apart as those of A", _TILES),
        ("bank by row for both layouts", "phase_q == LOAD_B && !transposed;", "1'b0;",
         "a B that is not transposed lands in the wrong banks", _TILES),
        ("sums of D never loaded", "accumulate ? ADDEND : LOAD_A", "LOAD_A",
         "accumulation replaces", _TILES),
        ("one step too few", "step_q == k - K_BITS'(1)", "step_q == k - K_BITS'(2)",
         "the last column of A does not count", _TILES),
        ("unused rows not masked", "rows_used    = ~(4'b1111 << m)", "rows_used    = 4'b1111",
         "bytes of an earlier tile move in the array", (*_TILES, _UNDEFINED)),
        ("tail one diagonal short", ".tail_i(m + n - 3'd2)", ".tail_i(m + n - 3'd3)",
         "the last sum is drained before its last product", _TILES),
        ("row ends one column late", "walk_col[1:0] == 2'(n - 3'd1)", "walk_col[1:0] == 2'(n)",
         "sums of one row drain into the next", _TILES),
        ("done a cycle early", "assign done_o     = write_last_q;",
         "assign done_o     = draining && walk_last;",
         "the last sum is never written, and a cycle is missing", _TILES),
    )),
    *_in("dma", (
        ("one word too few", "issue && to_issue_q == COUNT_BITS'(1)",
         "issue && to_issue_q == COUNT_BITS'(2)",
         "the last word is not moved", _DMA),
        ("scratchpad address of a load moves with requests", "load_q ? retire : issue) sp_addr_q",
         "issue) sp_addr_q", "words of a load are written too far up", _DMA),
        ("store does not wait", "assign move   = !request_valid_q || ext_ready_i;",
         "assign move   = 1'b1;", "a word is lost when memory is not ready", (_STALLS,)),
        ("load does not wait", "issue  = issuing_q && (load_q ? ext_ready_i : move)",
         "issue  = issuing_q && (load_q ? 1'b1 : move)",
         "a request is lost when memory is not ready",
         (_STALLS,)),
        ("answer kept through a reset", "answer_valid_q <= ext_rvalid_i && !rst_i",
         "answer_valid_q <= ext_rvalid_i", "a stopped load still writes a word",
         (_RESETS,)),
        ("addresses of load and store exchanged", "ext_addr_q  <= is_load ? load_s : store_d",
         "ext_addr_q  <= is_load ? store_d : load_s", "fields of ST are not those of LD", _DMA),
    )),
    *_in("requantize_unit", (
        ("source stride for the target", ".stride_i(target_stride)", ".stride_i(source_stride)",
         "results are spread like their sources", _RECTANGLES),
        ("address of the next word", "sp_waddr_o = write_q ? write_addr",
         "sp_waddr_o = write_q ? write_addr + ADDRESS_BITS'(1)",
         "everything is written one word too far", _RECTANGLES),
    )),
    *_in("operand_memory", (
        ("write to the wrong bank", "bank_i == 2'(i)", "bank_i == 2'(3 - i)",
         "rows of a tile are reversed", _TILES),
        ("output not cleared behind the last step", "clear_i || (shown_q && !read_q)", "clear_i",
         "the last step is added again and again while the skew runs out", _TILES),
    )),
)  # fmt: skip

_UNIT_ARITHMETIC: Final = (
    *_in("requantizer", (
        ("ties rounded down", "rounded = halves + 48'd1", "rounded = halves",
         "half goes up", _UNIT_REQUANTIZER),
        ("logical shift", "$signed(product_q) >>> (sh_i", "product_q >> (sh_i",
         "negative products become large ones", _UNIT_REQUANTIZER),
        ("unsigned operand", "{{16{x_i[31]}}, x_i}", "{16'd0, x_i}",
         "sums are signed", _UNIT_REQUANTIZER),
        ("signed multiplier", "{32'd0, mul_i}", "{{32{mul_i[15]}}, mul_i}",
         "normalized multipliers have their top bit set", _UNIT_REQUANTIZER),
        ("relu ignored", "relu_i && clamped[7] ? '0 :", "1'b0 ? '0 :",
         "negative values stay", _UNIT_REQUANTIZER),
        ("product moves without a word", "if (valid_i) product_q", "product_q",
         "the unit works while it is not asked to", _UNIT_REQUANTIZER),
    )),
    *_in("saturate", (
        ("-128 let through", "!(&x_i[WIDTH-2:7] && |x_i[6:0])", "!(&x_i[WIDTH-2:7])",
         "-128 never appears", _UNIT_SATURATE),
        ("no limit above", "y_o      = above ? HIGH :", "y_o      =",
         "large values wrap", _UNIT_SATURATE),
        ("only the lowest bit above int8 looked at", "|x_i[WIDTH-2:7];", "x_i[7];",
         "256 is taken for 0", _UNIT_SATURATE),
    )),
    *_in("divider", (
        ("restores when it should not", "difference[32] ? shifted[31:0] : difference[31:0]",
         "difference[32] ? difference[31:0] : shifted[31:0]",
         "the remainder is wrong", _UNIT_DIVIDER),
        ("quotient inverted", "{quotient_o[30:0], !difference[32]}",
         "{quotient_o[30:0], difference[32]}",
         "a bit is 1 where the divisor fits", _UNIT_DIVIDER),
        ("first remainder one bit off", "32'd1 << (ga2_pkg::RECIPROCAL_BITS - 32)",
         "32'd1 << (ga2_pkg::RECIPROCAL_BITS - 31)", "2^48 is divided", _UNIT_DIVIDER),
        ("goes on after a reset", "if (rst_i) running_q <= 1'b0;\n      else if (start_i)",
         "if (start_i)",
         "a stopped softmax ends in the next program", _UNIT_DIVIDER),
    )),
    *_in("pe", (
        ("unsigned A", "{{8{a_o[7]}}, a_o}", "{8'd0, a_o}",
         "negative operands become large", _TILES),
        ("unsigned product", "{{16{product_q[15]}}, product_q}", "{16'd0, product_q}",
         "negative products become large", _TILES),
        ("not cleared", "product_q <= '0;\n        sum_o     <= '0;", "product_q <= '0;",
         "a tile starts from the sums of the last one", _TILES),
        ("product of operands one step apart", "* {{8{b_o[7]}}, b_o}", "* {{8{b_i[7]}}, b_i}",
         "a meets the next b", _TILES),
    )),
    *_in("array", (
        ("no skew of B", "delay #(.WIDTH(8), .STAGES(i)) u_b", "delay #(.WIDTH(8), .STAGES(0)) u_b",
         "columns meet rows of another step", _TILES),
        ("sums of a row not moved", ".right_i(left)", ".right_i(1'b0)",
         "a row drains its first sum four times", _TILES),
        ("addend into the first element", "(N * N)'(1) << load_element_i", "(N * N)'(1)",
         "only one sum is accumulated", _TILES),
    )),
    *_in("add_unit", (
        ("unsigned operands", "{first_q[7], first_q} + {sp_rdata_i[7], sp_rdata_i}",
         "{1'b0, first_q} + {1'b0, sp_rdata_i}", "sums of negative numbers saturate above", _SUMS),
        ("sum not sign-extended", "{{24{sum_q[7]}}, sum_q}", "{24'd0, sum_q}",
         "a word holds a whole number", _SUMS),
        ("same address for both operands", "second_q ? b_q : a_q", "a_q",
         "b is never read", _SUMS),
        ("ends a word early", "write_q && to_write_q == COUNT_BITS'(1)",
         "write_q && to_write_q == COUNT_BITS'(2)",
         "the last word is not written", _SUMS),
    )),
    *_in("argmax_unit", (
        ("last of equal maxima", "$signed(word_q) > $signed(best_q)",
         "$signed(word_q) >= $signed(best_q)",
         "ties go to the smaller index", _ARGMAX),
        ("unsigned comparison", "$signed(word_q) > $signed(best_q)", "word_q > best_q",
         "negative words win", _ARGMAX),
        ("first word not taken", "if (first_q || $signed(word_q)", "if ($signed(word_q)",
         "the best of the last row stays", _ARGMAX),
        ("index one too high", "32'(best_index_q)", "32'(index_q)",
         "the index of the last word", _ARGMAX),
    )),
    *_in("softmax_unit", (
        ("maximum unsigned", "$signed(score_q) > $signed(maximum_q)", "score_q > maximum_q",
         "negative scores win", _SOFTMAX),
        ("index not limited", "|rounded[24:INDEX_BITS+1] ? '1 : rounded", "rounded",
         "distant scores become near ones", _SOFTMAX),
        ("index rounded down", "rounded = {1'b0, halves} + 25'd1", "rounded = {1'b0, halves}",
         "half goes up", _SOFTMAX),
        ("sum kept from the last row", "if (start_i) sum_q <= '0;\n      else if", "if",
         "rows no longer sum to one", _SOFTMAX),
        ("sum of both passes", "valid_q[6] && phase_q == SUM) sum_q", "valid_q[6]) sum_q",
         "the exponentials of the second pass come too late to count", _SOFTMAX),
        ("result rounded down", "nearest = scaled_q + (SCALED_BITS'(1) << (RECIPROCAL_SHIFT - 1))",
         "nearest = scaled_q", "half goes up", _SOFTMAX),
        ("maximum of the last row kept", "if (first_q || $signed(score_q)", "if ($signed(score_q)",
         "rows of lower scores vanish", _SOFTMAX),
        ("maximum ends a cycle late", "phase_q == MAXIMUM && last_q[2]",
         "phase_q == MAXIMUM && last_q[3]",
         "3n + 48 cycles", _SOFTMAX),
    )),
    *_in("exp_table", (
        ("entry 1 too small", "8'd1: value_o <= 16'd63519;", "8'd1: value_o <= 16'd63518;",
         "the table is not Python's", (f"{_UNITS}::test_every_entry_of_the_exponential_table",)),
        ("output moves without enable", "if (en_i)\n      case", "case",
         "the table is read while nobody asks",
         (f"{_UNITS}::test_every_entry_of_the_exponential_table",)),
    )),
    *_in("ram", (
        ("reads without enable", "if (re_i) rdata_o", "rdata_o",
         "a word must hold until the next read", (_RANDOM, _STALLS)),
    )),
    *_in("delay", (
        ("one stage too many", "line_q[WIDTH*(STAGES-1)+:WIDTH]", "line_q[0+:WIDTH]",
         "all delays are one cycle", _TILES),
    )),
)  # fmt: skip

GROUP: Final = Group(
    "rtl",
    (*_CONTROL, *_ADDRESSING, *_UNIT_ARITHMETIC),
    full=(_UNITS, _ARITHMETIC, _REPLAY),
    keyword=ICARUS_ONLY,
)
