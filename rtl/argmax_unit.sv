// AMAX: the index of the first maximum of a row of n signed 32-bit words.
//
// start_i (one cycle, with the instruction, which stays until done) begins; the next cycle is the
// unit's first and the one with done_o its last. enable_i is high with start_i, while the unit
// works and with rst_i; without it no register changes.
// Cycles: addresses in cycles 1 .. n; each word goes into the word register in the next cycle and
// is compared with the best so far in the one after that; the index is written once the last
// comparison is known: n + 3.
`default_nettype none
module argmax_unit #(
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

  localparam int COUNT_BITS = ga2_pkg::AMAX_N_BITS;

  logic [COUNT_BITS-1:0] n, to_read_q, index_q, best_index_q;
  logic [ADDRESS_BITS-1:0] target, source_q;
  logic reading_q, fetched_q, fetched_last_q, compare_q, compare_last_q, write_q, first_q;
  logic [31:0] word_q, best_q;

  assign n      = inst_i[ga2_pkg::AMAX_N_LSB+:ga2_pkg::AMAX_N_BITS];
  assign target = ADDRESS_BITS'(inst_i[ga2_pkg::AMAX_D_LSB+:ga2_pkg::AMAX_D_BITS]);

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) begin
        reading_q      <= 1'b0;
        fetched_q      <= 1'b0;
        fetched_last_q <= 1'b0;
        compare_q      <= 1'b0;
        compare_last_q <= 1'b0;
        write_q        <= 1'b0;
      end else begin
        if (start_i) reading_q <= 1'b1;
        else if (to_read_q == COUNT_BITS'(1)) reading_q <= 1'b0;
        fetched_q      <= reading_q;
        fetched_last_q <= reading_q && to_read_q == COUNT_BITS'(1);
        compare_q      <= fetched_q;
        compare_last_q <= fetched_last_q;
        write_q        <= compare_last_q;
      end
      if (start_i) begin
        to_read_q <= n;
        source_q  <= ADDRESS_BITS'(inst_i[ga2_pkg::AMAX_S_LSB+:ga2_pkg::AMAX_S_BITS]);
        first_q   <= 1'b1;
        index_q   <= '0;
      end else begin
        if (reading_q) begin
          to_read_q <= to_read_q - COUNT_BITS'(1);
          source_q  <= source_q + ADDRESS_BITS'(1);
        end
        if (compare_q) begin
          first_q <= 1'b0;
          index_q <= index_q + COUNT_BITS'(1);
          if (first_q || $signed(word_q) > $signed(best_q)) begin
            best_q       <= word_q;
            best_index_q <= index_q;
          end
        end
      end
      if (fetched_q) word_q <= sp_rdata_i;
    end

  assign sp_re_o    = reading_q;
  assign sp_raddr_o = reading_q ? source_q : '0;
  assign sp_we_o    = write_q;
  assign sp_waddr_o = write_q ? target : '0;
  assign sp_wdata_o = write_q ? 32'(best_index_q) : '0;
  assign done_o     = write_q;

endmodule
`default_nettype wire
