// RQ: r x c words of the scratchpad, requantized to int8, into another rectangle or in place.
//
// start_i (one cycle, with the instruction, which stays until done) begins; the next cycle is the
// unit's first and the one with done_o its last. enable_i is high with start_i, while the unit
// works and with rst_i; without it no register changes.
// Cycles, n = r*c: addresses in cycles 1 .. n; each word is multiplied in the next cycle, and
// rounded and written in the one after that: n + 2.
`default_nettype none
module requantize_unit #(
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
    input  logic [31:0]                          sp_rdata_i,
    output logic                                 sp_we_o,
    output logic [ADDRESS_BITS-1:0]              sp_waddr_o,
    output logic [31:0]                          sp_wdata_o
);

  localparam int COUNT_BITS = ga2_pkg::RQ_R_BITS;

  logic [ADDRESS_BITS-1:0] source, target, read_addr, write_addr;
  logic [COUNT_BITS-1:0] rows, cols;
  logic [15:0] source_stride, target_stride;
  logic reading_q, read_last, valid_q, write_q, write_last;
  logic [31:0] result;

  assign target        = ADDRESS_BITS'(inst_i[ga2_pkg::RQ_D_LSB+:ga2_pkg::RQ_D_BITS]);
  assign source        = ADDRESS_BITS'(inst_i[ga2_pkg::RQ_S_LSB+:ga2_pkg::RQ_S_BITS]);
  assign rows          = inst_i[ga2_pkg::RQ_R_LSB+:ga2_pkg::RQ_R_BITS];
  assign cols          = inst_i[ga2_pkg::RQ_C_LSB+:ga2_pkg::RQ_C_BITS];
  assign target_stride = inst_i[ga2_pkg::RQ_SD_LSB+:ga2_pkg::RQ_SD_BITS];
  assign source_stride = inst_i[ga2_pkg::RQ_SS_LSB+:ga2_pkg::RQ_SS_BITS];

  walker #(.ADDRESS_BITS(ADDRESS_BITS), .COUNT_BITS(COUNT_BITS)) u_source (
      .clk_i, .enable_i, .load_i(start_i), .base_i(source), .rows_i(rows), .cols_i(cols),
      .stride_i(source_stride), .step_i(reading_q),
      .addr_o(read_addr), .row_o(), .col_o(), .last_o(read_last)
  );

  walker #(.ADDRESS_BITS(ADDRESS_BITS), .COUNT_BITS(COUNT_BITS)) u_target (
      .clk_i, .enable_i, .load_i(start_i), .base_i(target), .rows_i(rows), .cols_i(cols),
      .stride_i(target_stride), .step_i(write_q),
      .addr_o(write_addr), .row_o(), .col_o(), .last_o(write_last)
  );

  requantizer u_requantizer (
      .clk_i, .valid_i(valid_q), .x_i(sp_rdata_i),
      .mul_i(inst_i[ga2_pkg::RQ_MUL_LSB+:ga2_pkg::RQ_MUL_BITS]),
      .sh_i(inst_i[ga2_pkg::RQ_SH_LSB+:ga2_pkg::RQ_SH_BITS]),
      .relu_i(inst_i[ga2_pkg::RQ_RELU_LSB]),
      .y_o(result)
  );

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) begin
        reading_q <= 1'b0;
        valid_q   <= 1'b0;
        write_q   <= 1'b0;
      end else begin
        if (start_i) reading_q <= 1'b1;
        else if (read_last) reading_q <= 1'b0;
        valid_q <= reading_q;
        write_q <= valid_q;
      end
    end

  assign sp_re_o    = reading_q;
  assign sp_raddr_o = reading_q ? read_addr : '0;
  assign sp_we_o    = write_q;
  assign sp_waddr_o = write_q ? write_addr : '0;
  assign sp_wdata_o = write_q ? result : '0;
  assign done_o     = write_q && write_last;

endmodule
`default_nettype wire
