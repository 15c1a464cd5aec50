// SM: softmax of a row of n int8 scores, in Q0.15.
//
// start_i (one cycle, with the instruction, which stays until done) begins; the next cycle is the
// unit's first and the one with done_o its last. enable_i is high with start_i, while the unit
// works and with rst_i; without it no register changes.
//
// Three passes over the row go through one pipeline; stage s holds a word s cycles after its
// address was offered, and each pass ends at the stage that completes what it is for:
//   0 address   1 the word arrives   2 score: the maximum takes it (pass MAXIMUM ends here)
//   3 difference from the maximum, multiplied      4 product, rounded, shifted, limited to 255
//   5 index, looked up                             6 exponential: the sum takes it (SUM ends here)
//   7 exponential times reciprocal, rounded and written (SCALE ends here)
// Cycles: (n + 2) + (n + 6) + 32 division steps + (n + 7) = 3n + 47. The exponentials are computed
// twice, so that no row buffer is needed.
// Assumes: sh in 1 .. 47, n in 1 .. 65535; the destination does not overlap the source.
`default_nettype none
module softmax_unit #(
    parameter int ADDRESS_BITS = 13
) (
    input  logic                                 clk_i,
    input  logic                                 rst_i,
    input  logic                                 enable_i,
    input  logic                                 start_i,
    input  logic [ga2_pkg::INSTRUCTION_BITS-1:0] inst_i,
    output logic                                 done_o,
    output logic                                 sp_re_o,
    output logic [ADDRESS_BITS-1:0]              sp_raddr_o,
    input  logic [7:0]                           sp_rdata_i,
    output logic                                 sp_we_o,
    output logic [ADDRESS_BITS-1:0]              sp_waddr_o,
    output logic [31:0]                          sp_wdata_o
);

  localparam int COUNT_BITS = ga2_pkg::SM_N_BITS;
  localparam int INDEX_BITS = ga2_pkg::EXP_TABLE_BITS;
  localparam int EXP_BITS = ga2_pkg::EXP_BITS;
  localparam int RECIPROCAL_SHIFT = ga2_pkg::RECIPROCAL_SHIFT;

  localparam logic [2:0] IDLE = 3'd0;
  localparam logic [2:0] MAXIMUM = 3'd1;
  localparam logic [2:0] SUM = 3'd2;
  localparam logic [2:0] DIVIDE = 3'd3;
  localparam logic [2:0] SCALE = 3'd4;

  logic [ADDRESS_BITS-1:0] source, target_q, read_addr_q;
  logic [COUNT_BITS-1:0] n, to_read_q;
  logic [15:0] multiplier;
  logic [5:0] shift;

  assign source     = ADDRESS_BITS'(inst_i[ga2_pkg::SM_S_LSB+:ga2_pkg::SM_S_BITS]);
  assign n          = inst_i[ga2_pkg::SM_N_LSB+:ga2_pkg::SM_N_BITS];
  assign multiplier = inst_i[ga2_pkg::SM_MUL_LSB+:ga2_pkg::SM_MUL_BITS];
  assign shift      = inst_i[ga2_pkg::SM_SH_LSB+:ga2_pkg::SM_SH_BITS];

  // The passes: a token goes down the pipeline with every word, a second one with the last.
  logic [2:0] phase_q;
  logic [7:1] valid_q, last_q;  // by stage
  logic reading_q, read_last, begin_pass, end_maximum, end_sum, end_divide;

  assign read_last   = reading_q && to_read_q == COUNT_BITS'(1);
  assign end_maximum = phase_q == MAXIMUM && last_q[2];
  assign end_sum     = phase_q == SUM && last_q[6];
  assign done_o      = phase_q == SCALE && last_q[7];
  assign begin_pass  = start_i || end_maximum || end_divide;

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) begin
        phase_q   <= IDLE;
        reading_q <= 1'b0;
        valid_q   <= '0;
        last_q    <= '0;
      end else begin
        if (start_i) phase_q <= MAXIMUM;
        else if (end_maximum) phase_q <= SUM;
        else if (end_sum) phase_q <= DIVIDE;
        else if (end_divide) phase_q <= SCALE;
        else if (done_o) phase_q <= IDLE;
        if (begin_pass) reading_q <= 1'b1;
        else if (read_last) reading_q <= 1'b0;
        valid_q <= begin_pass ? '0 : {valid_q[6:1], reading_q};
        last_q  <= begin_pass ? '0 : {last_q[6:1], read_last};
      end
      if (begin_pass) begin
        to_read_q   <= n;
        read_addr_q <= source;
      end else if (reading_q) begin
        to_read_q   <= to_read_q - COUNT_BITS'(1);
        read_addr_q <= read_addr_q + ADDRESS_BITS'(1);
      end
    end

  assign sp_re_o    = reading_q;
  assign sp_raddr_o = reading_q ? read_addr_q : '0;

  // Score, maximum, difference.
  logic [7:0] score_q, maximum_q, difference_q;
  logic first_q;

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (valid_q[1]) score_q <= sp_rdata_i;
      if (start_i) first_q <= 1'b1;
      else if (valid_q[2] && phase_q == MAXIMUM) begin
        first_q <= 1'b0;
        if (first_q || $signed(score_q) > $signed(maximum_q)) maximum_q <= score_q;
      end
      if (valid_q[2]) difference_q <= maximum_q - score_q;
    end

  // Index into the table: a product of 24 bits, rounded as the requantizer does it.
  logic [23:0] product_q, halves;
  logic [24:0] rounded;
  logic [INDEX_BITS-1:0] index_q;
  logic [EXP_BITS-1:0] exponential;

  assign halves  = product_q >> (shift - 6'd1);
  assign rounded = {1'b0, halves} + 25'd1;

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (valid_q[3]) product_q <= {16'd0, difference_q} * {8'd0, multiplier};
      if (valid_q[4]) index_q <= |rounded[24:INDEX_BITS+1] ? '1 : rounded[INDEX_BITS:1];
    end

  exp_table u_exp_table (
      .clk_i, .en_i(valid_q[5]), .index_i(index_q), .value_o(exponential)
  );

  // The sum and its reciprocal.
  logic [31:0] sum_q, reciprocal;

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (start_i) sum_q <= '0;
      else if (valid_q[6] && phase_q == SUM) sum_q <= sum_q + 32'(exponential);
    end

  divider u_divider (
      .clk_i, .rst_i, .enable_i, .start_i(end_sum), .divisor_i(sum_q), .done_o(end_divide),
      .quotient_o(reciprocal)
  );

  // Scaling: 16 x 32 bits, rounded half up; at most 2^15.
  localparam int SCALED_BITS = EXP_BITS + 32;

  logic [SCALED_BITS-1:0] scaled_q, nearest;

  assign nearest = scaled_q + (SCALED_BITS'(1) << (RECIPROCAL_SHIFT - 1));

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (valid_q[6]) scaled_q <= {32'd0, exponential} * {16'd0, reciprocal};
      if (start_i) target_q <= ADDRESS_BITS'(inst_i[ga2_pkg::SM_D_LSB+:ga2_pkg::SM_D_BITS]);
      else if (sp_we_o) target_q <= target_q + ADDRESS_BITS'(1);
    end

  assign sp_we_o    = phase_q == SCALE && valid_q[7];
  assign sp_waddr_o = sp_we_o ? target_q : '0;
  assign sp_wdata_o = sp_we_o ? 32'(nearest[SCALED_BITS-1:RECIPROCAL_SHIFT]) : '0;

endmodule
`default_nettype wire
