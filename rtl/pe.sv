// One processing element of the array: int8 x int8 products, summed in 32 bits (wrapping).
//
// Three registers deep: operands (handed on to the right and downwards one cycle later), product,
// sum. An operand pair at a_i, b_i in cycle t is in sum_o from cycle t + 3 on. en_i moves all of
// it; clear_i empties it; load_i puts load_data_i into the sum (not together with en_i).
`default_nettype none
module pe (
    input  logic        clk_i,
    input  logic        clear_i,
    input  logic        en_i,
    input  logic [7:0]  a_i,
    input  logic [7:0]  b_i,
    output logic [7:0]  a_o,
    output logic [7:0]  b_o,
    input  logic        load_i,
    input  logic [31:0] load_data_i,
    output logic [31:0] sum_o
);

  logic [15:0] product_q;

  always_ff @(posedge clk_i)
    if (clear_i) begin
      a_o       <= '0;
      b_o       <= '0;
      product_q <= '0;
      sum_o     <= '0;
    end else if (en_i) begin
      a_o       <= a_i;
      b_o       <= b_i;
      product_q <= {{8{a_o[7]}}, a_o} * {{8{b_o[7]}}, b_o};
      sum_o     <= sum_o + {{16{product_q[15]}}, product_q};
    end else if (load_i) sum_o <= load_data_i;

endmodule
`default_nettype wire
