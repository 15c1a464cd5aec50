// The arithmetic of RQ, a pipeline of one word a cycle:
// y_o = clamp((x_i * mul_i + 2^(sh_i - 1)) >> sh_i, relu_i ? 0 : -127, 127), sign-extended.
//
// y_o belongs to the x_i of the cycle before, if valid_i was high then. mul_i, sh_i and relu_i must
// be stable. The 32 x 16 bit product is registered; the second stage shifts by sh_i - 1, adds one
// and shifts once more, which equals adding the half first: floor((floor(p / 2^(s-1)) + 1) / 2).
// Assumes: sh_i in 1 .. 47.
`default_nettype none
module requantizer (
    input  logic        clk_i,
    input  logic        valid_i,
    input  logic [31:0] x_i,
    input  logic [15:0] mul_i,
    input  logic [5:0]  sh_i,
    input  logic        relu_i,
    output logic [31:0] y_o
);

  logic [47:0] product_q, halves, rounded;
  logic [7:0] clamped;

  always_ff @(posedge clk_i)
    if (valid_i) product_q <= {{16{x_i[31]}}, x_i} * {32'd0, mul_i};

  assign halves  = $signed(product_q) >>> (sh_i - 6'd1);
  assign rounded = halves + 48'd1;

  saturate #(.WIDTH(47)) u_saturate (.x_i(rounded[47:1]), .y_o(clamped));

  assign y_o = relu_i && clamped[7] ? '0 : {{24{clamped[7]}}, clamped};

endmodule
`default_nettype wire
