// Fetches, decodes and dispatches, one instruction at a time, until HALT.
//
// start_i begins at entry 0 if the chip is idle, else it is ignored. fetch_o reads the program
// memory at index_o; in the next cycle opcode_i is the instruction's (decode), and *_start_o goes
// to its unit, whose first cycle comes next; its last is the one with unit_done_i. Each
// instruction spends exactly these two cycles here, HALT too. After HALT, done_o is high until the
// next start. An unknown opcode stops like HALT, with illegal_o high as well.
// index_o is the index of the current instruction; after the stop, that of the HALT.
// *_cycle_o tell which counter the current cycle belongs to; start_o that a program begins.
`default_nettype none
module sequencer #(
    parameter int INDEX_BITS = 14
) (
    input  logic                            clk_i,
    input  logic                            rst_i,
    input  logic                            start_i,
    output logic                            start_o,
    output logic                            done_o,
    output logic                            illegal_o,
    output logic [INDEX_BITS-1:0]           index_o,
    output logic                            fetch_o,
    input  logic [ga2_pkg::OPCODE_BITS-1:0] opcode_i,
    output logic                            matrix_start_o,
    output logic                            dma_start_o,
    output logic                            vector_start_o,
    input  logic                            unit_done_i,
    output logic                            matrix_cycle_o,
    output logic                            dma_cycle_o,
    output logic                            vector_cycle_o,
    output logic                            control_cycle_o
);

  localparam logic [2:0] IDLE = 3'd0;
  localparam logic [2:0] FETCH = 3'd1;
  localparam logic [2:0] DECODE = 3'd2;
  localparam logic [2:0] MATRIX = 3'd3;
  localparam logic [2:0] DMA = 3'd4;
  localparam logic [2:0] VECTOR = 3'd5;

  logic [2:0] state_q, unit;
  logic halt;

  always_comb
    case (opcode_i)
      ga2_pkg::OP_MM: unit = MATRIX;
      ga2_pkg::OP_LD, ga2_pkg::OP_ST: unit = DMA;
      ga2_pkg::OP_RQ, ga2_pkg::OP_VADD, ga2_pkg::OP_SM, ga2_pkg::OP_AMAX: unit = VECTOR;
      default: unit = IDLE;
    endcase

  assign start_o = start_i && state_q == IDLE;
  assign fetch_o = state_q == FETCH;
  assign halt    = state_q == DECODE && unit == IDLE;

  assign matrix_start_o = state_q == DECODE && unit == MATRIX;
  assign dma_start_o    = state_q == DECODE && unit == DMA;
  assign vector_start_o = state_q == DECODE && unit == VECTOR;

  assign matrix_cycle_o  = state_q == MATRIX;
  assign dma_cycle_o     = state_q == DMA;
  assign vector_cycle_o  = state_q == VECTOR;
  assign control_cycle_o = state_q == FETCH || state_q == DECODE;

  always_ff @(posedge clk_i)
    if (rst_i) begin
      state_q   <= IDLE;
      done_o    <= 1'b0;
      illegal_o <= 1'b0;
      index_o   <= '0;
    end else
      case (state_q)
        IDLE:
        if (start_i) begin
          state_q   <= FETCH;
          done_o    <= 1'b0;
          illegal_o <= 1'b0;
          index_o   <= '0;
        end
        FETCH: state_q <= DECODE;
        DECODE: begin
          state_q <= unit;
          if (halt) begin
            done_o    <= 1'b1;
            illegal_o <= opcode_i != ga2_pkg::OP_HALT;
          end
        end
        default:
        if (unit_done_i) begin
          state_q <= FETCH;
          index_o <= index_o + INDEX_BITS'(1);
        end
      endcase

endmodule
`default_nettype wire
