// VADD: the saturating sum of two vectors of n int8 words, into a third or in place.
//
// start_i (one cycle, with the instruction, which stays until done) begins; the next cycle is the
// unit's first and the one with done_o its last. enable_i is high with start_i, while the unit
// works and with rst_i; without it no register changes.
// Cycles: the one read port takes the addresses a[0], b[0], a[1], .. in cycles 1 .. 2n; the last
// word of b is added to its partner in the next cycle, and the sum written in the one after that:
// 2n + 2.
`default_nettype none
module add_unit #(
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

  localparam int COUNT_BITS = ga2_pkg::VADD_N_BITS;

  logic [COUNT_BITS-1:0] n, to_read_q, to_write_q;
  logic [ADDRESS_BITS-1:0] a_q, b_q, d_q;
  logic reading_q, second_q;  // an address is offered; it is one of b
  logic have_a_q, have_b_q;  // the word that arrives
  logic write_q;
  logic [7:0] first_q, sum_q, saturated;
  logic [8:0] sum;

  assign n   = inst_i[ga2_pkg::VADD_N_LSB+:ga2_pkg::VADD_N_BITS];
  assign sum = {first_q[7], first_q} + {sp_rdata_i[7], sp_rdata_i};

  saturate #(.WIDTH(9)) u_saturate (.x_i(sum), .y_o(saturated));

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) begin
        reading_q <= 1'b0;
        have_a_q  <= 1'b0;
        have_b_q  <= 1'b0;
        write_q   <= 1'b0;
      end else begin
        if (start_i) reading_q <= 1'b1;
        else if (second_q && to_read_q == COUNT_BITS'(1)) reading_q <= 1'b0;
        have_a_q <= reading_q && !second_q;
        have_b_q <= reading_q && second_q;
        write_q  <= have_b_q;
      end
      if (start_i) begin
        second_q   <= 1'b0;
        to_read_q  <= n;
        to_write_q <= n;
        a_q        <= ADDRESS_BITS'(inst_i[ga2_pkg::VADD_A_LSB+:ga2_pkg::VADD_A_BITS]);
        b_q        <= ADDRESS_BITS'(inst_i[ga2_pkg::VADD_B_LSB+:ga2_pkg::VADD_B_BITS]);
        d_q        <= ADDRESS_BITS'(inst_i[ga2_pkg::VADD_D_LSB+:ga2_pkg::VADD_D_BITS]);
      end else begin
        if (reading_q) begin
          second_q <= !second_q;
          if (second_q) begin
            b_q       <= b_q + ADDRESS_BITS'(1);
            to_read_q <= to_read_q - COUNT_BITS'(1);
          end else a_q <= a_q + ADDRESS_BITS'(1);
        end
        if (write_q) begin
          d_q        <= d_q + ADDRESS_BITS'(1);
          to_write_q <= to_write_q - COUNT_BITS'(1);
        end
      end
      if (have_a_q) first_q <= sp_rdata_i;
      if (have_b_q) sum_q <= saturated;
    end

  assign sp_re_o    = reading_q;
  assign sp_raddr_o = !reading_q ? '0 : second_q ? b_q : a_q;
  assign sp_we_o    = write_q;
  assign sp_waddr_o = write_q ? d_q : '0;
  assign sp_wdata_o = write_q ? {{24{sum_q[7]}}, sum_q} : '0;
  assign done_o     = write_q && to_write_q == COUNT_BITS'(1);

endmodule
`default_nettype wire
