// Walks over the addresses of a rectangle, row by row: rows x cols words, a stride apart.
//
// load_i takes the rectangle (rows and cols at least 1); from the next cycle on addr_o, row_o and
// col_o are those of its first word, and each cycle with step_i moves to the next one. last_o tells
// that the current word is the last. Nothing changes without enable_i. Addresses wrap at
// ADDRESS_BITS.
`default_nettype none
module walker #(
    parameter int ADDRESS_BITS = 13,
    parameter int COUNT_BITS = 16,
    parameter int STRIDE_BITS = 16
) (
    input  logic                    clk_i,
    input  logic                    enable_i,
    input  logic                    load_i,
    input  logic [ADDRESS_BITS-1:0] base_i,
    input  logic [COUNT_BITS-1:0]   rows_i,
    input  logic [COUNT_BITS-1:0]   cols_i,
    input  logic [STRIDE_BITS-1:0]  stride_i,
    input  logic                    step_i,
    output logic [ADDRESS_BITS-1:0] addr_o,
    output logic [COUNT_BITS-1:0]   row_o,
    output logic [COUNT_BITS-1:0]   col_o,
    output logic                    last_o
);

  logic [ADDRESS_BITS-1:0] next_row_q, stride_q;
  logic [COUNT_BITS-1:0] last_row_q, last_col_q;
  logic last_col;

  assign last_col = col_o == last_col_q;
  assign last_o   = last_col && row_o == last_row_q;

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (load_i) begin
        addr_o     <= base_i;
        next_row_q <= base_i + ADDRESS_BITS'(stride_i);
        stride_q   <= ADDRESS_BITS'(stride_i);
        row_o      <= '0;
        col_o      <= '0;
        last_row_q <= rows_i - COUNT_BITS'(1);
        last_col_q <= cols_i - COUNT_BITS'(1);
      end else if (step_i) begin
        if (last_col) begin
          addr_o     <= next_row_q;
          next_row_q <= next_row_q + stride_q;
          row_o      <= row_o + COUNT_BITS'(1);
          col_o      <= '0;
        end else begin
          addr_o <= addr_o + ADDRESS_BITS'(1);
          col_o  <= col_o + COUNT_BITS'(1);
        end
      end
    end

endmodule
`default_nettype wire
