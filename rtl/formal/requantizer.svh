// y_o is clamp((x_i * mul_i + 2^(sh_i - 1)) >> sh_i) of the cycle before, computed at 64 bits.
logic signed [63:0] spec_x, spec_mul, spec_sum, spec_shifted, spec_clamped, expected_q;
logic past_q, relu_q;
logic [5:0] sh_q;

initial past_q = 1'b0;

assign spec_x       = {{32{x_i[31]}}, x_i};
assign spec_mul     = {48'd0, mul_i};
assign spec_sum     = spec_x * spec_mul + (64'sd1 <<< (sh_i - 6'd1));
assign spec_shifted = spec_sum >>> sh_i;
assign spec_clamped = spec_shifted > 64'sd127 ? 64'sd127 :
                      spec_shifted < -64'sd127 ? -64'sd127 : spec_shifted;

always_ff @(posedge clk_i) begin
  past_q     <= valid_i;
  sh_q       <= sh_i;
  relu_q     <= relu_i;
  expected_q <= relu_i && spec_clamped[63] ? 64'sd0 : spec_clamped;
end

always_comb begin
  assume (sh_i >= 6'd1 && sh_i <= 6'd47);
  if (past_q) begin
    assume (sh_i == sh_q && relu_i == relu_q);
    assert (y_o == expected_q[31:0]);
  end
end
