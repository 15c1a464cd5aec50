// One processing element of the array: int8 x int8 products, summed in 32 bits (wrapping).
//
// Three registers deep: operands (handed on to the right and downwards one cycle later), product,
// sum. An operand pair at a_i, b_i in cycle t is in sum_o from cycle t + 3 on.
// Nothing changes in a cycle without enable_i. With it, the first of these that is high acts:
// clear_i empties all registers, load_i, right_i and below_i replace the sum by the word given
// with it; if none is, operands and products move on and the product is added.
`default_nettype none
module pe (
    input  logic        clk_i,
    input  logic        enable_i,
    input  logic        clear_i,
    input  logic [7:0]  a_i,
    input  logic [7:0]  b_i,
    output logic [7:0]  a_o,
    output logic [7:0]  b_o,
    input  logic        load_i,
    input  logic [31:0] load_sum_i,
    input  logic        right_i,
    input  logic [31:0] right_sum_i,
    input  logic        below_i,
    input  logic [31:0] below_sum_i,
    output logic [31:0] sum_o
);

  logic [15:0] product_q;

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (clear_i) begin
        a_o       <= '0;
        b_o       <= '0;
        product_q <= '0;
        sum_o     <= '0;
      end else if (load_i) sum_o <= load_sum_i;
      else if (right_i) sum_o <= right_sum_i;
      else if (below_i) sum_o <= below_sum_i;
      else begin
        a_o       <= a_i;
        b_o       <= b_i;
        product_q <= {{8{a_o[7]}}, a_o} * {{8{b_o[7]}}, b_o};
        sum_o     <= sum_o + {{16{product_q[15]}}, product_q};
      end
    end

endmodule
`default_nettype wire
