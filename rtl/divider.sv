// Restoring division: quotient_o = floor(2^47 / divisor_i), one quotient bit a cycle.
//
// start_i (one cycle) begins; the 32 steps are the next 32 cycles, done_o is high in the last of
// them, and quotient_o is complete from the cycle after that on. divisor_i must be stable during
// the steps. Of the dividend 2^47, the 16 bits above the quotient's 32 are the first remainder.
// Assumes: divisor_i is at least 65535 = the first entry of the exponential table, which makes the
// quotient fit 32 bits. Nothing changes without enable_i, which must be high with rst_i.
`default_nettype none
module divider (
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic        enable_i,
    input  logic        start_i,
    input  logic [31:0] divisor_i,
    output logic        done_o,
    output logic [31:0] quotient_o
);

  localparam logic [31:0] FIRST = 32'd1 << (ga2_pkg::RECIPROCAL_BITS - 32);

  logic running_q;
  logic [4:0] step_q;
  logic [31:0] remainder_q;
  logic [32:0] shifted, difference;

  assign shifted    = {remainder_q, 1'b0};
  assign difference = shifted - {1'b0, divisor_i};
  assign done_o     = running_q && &step_q;

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) running_q <= 1'b0;
      else if (start_i) running_q <= 1'b1;
      else if (done_o) running_q <= 1'b0;

      if (start_i) begin
        step_q      <= '0;
        remainder_q <= FIRST;
      end else if (running_q) begin
        step_q      <= step_q + 5'd1;
        remainder_q <= difference[32] ? shifted[31:0] : difference[31:0];
        quotient_o  <= {quotient_o[30:0], !difference[32]};
      end
    end

endmodule
`default_nettype wire
