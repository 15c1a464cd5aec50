// LD and ST: n words between external memory and the scratchpad, in order.
//
// start_i (one cycle, with the instruction, which stays until done) begins; the next cycle is the
// unit's first and the one with done_o its last. enable_i is high with start_i, while the unit
// works and with rst_i; without it no register changes. ext_*: a request is taken in a cycle with
// valid and ready; reads are answered in order, one word a cycle with ext_rvalid_i; writes are not
// answered. Stalls of either side only make it wait.
//
// Cycles of LD: requests in cycles 1 .. n; the last answer comes the memory's latency later and
// stays one cycle in the response register while it is written: n + latency + 1, which is n + 9
// with the standard latency of 8.
// Cycles of ST: scratchpad addresses in cycles 1 .. n; each word is read in the next cycle and
// offered from the request register in the one after that: n + 2.
// Assumes: n at least 1; external memory is reset together with the chip, so that no answer is
// left over.
`default_nettype none
module dma #(
    parameter int ADDRESS_BITS = 13,
    parameter int EXTERNAL_BITS = 13
) (
    input  logic                                 clk_i,
    input  logic                                 rst_i,
    input  logic                                 enable_i,
    input  logic                                 start_i,
    input  logic [ga2_pkg::INSTRUCTION_BITS-1:0] inst_i,
    output logic                                 done_o,
    output logic                                 ext_valid_o,
    input  logic                                 ext_ready_i,
    output logic                                 ext_write_o,
    output logic [EXTERNAL_BITS-1:0]             ext_addr_o,
    output logic [31:0]                          ext_wdata_o,
    input  logic                                 ext_rvalid_i,
    input  logic [31:0]                          ext_rdata_i,
    output logic                                 sp_re_o,
    output logic [ADDRESS_BITS-1:0]              sp_raddr_o,
    input  logic [31:0]                          sp_rdata_i,
    output logic                                 sp_we_o,
    output logic [ADDRESS_BITS-1:0]              sp_waddr_o,
    output logic [31:0]                          sp_wdata_o
);

  localparam int COUNT_BITS = ga2_pkg::LD_N_BITS;

  logic is_load;
  logic [ADDRESS_BITS-1:0] load_d, store_s;
  logic [EXTERNAL_BITS-1:0] load_s, store_d;
  logic [COUNT_BITS-1:0] load_n, store_n;

  assign is_load = inst_i[0+:ga2_pkg::OPCODE_BITS] == ga2_pkg::OP_LD;
  assign load_d  = ADDRESS_BITS'(inst_i[ga2_pkg::LD_D_LSB+:ga2_pkg::LD_D_BITS]);
  assign load_s  = EXTERNAL_BITS'(inst_i[ga2_pkg::LD_S_LSB+:ga2_pkg::LD_S_BITS]);
  assign load_n  = inst_i[ga2_pkg::LD_N_LSB+:ga2_pkg::LD_N_BITS];
  assign store_d = EXTERNAL_BITS'(inst_i[ga2_pkg::ST_D_LSB+:ga2_pkg::ST_D_BITS]);
  assign store_s = ADDRESS_BITS'(inst_i[ga2_pkg::ST_S_LSB+:ga2_pkg::ST_S_BITS]);
  assign store_n = inst_i[ga2_pkg::ST_N_LSB+:ga2_pkg::ST_N_BITS];

  // Both directions issue n reads at one memory and retire n writes at the other.
  logic load_q, issuing_q, issue, retire;
  logic [COUNT_BITS-1:0] to_issue_q, to_retire_q;
  logic [ADDRESS_BITS-1:0] sp_addr_q;
  logic [EXTERNAL_BITS-1:0] ext_addr_q;
  logic answer_valid_q, word_valid_q, request_valid_q, move;
  logic [31:0] answer_q, request_q;

  assign move   = !request_valid_q || ext_ready_i;  // the store pipeline, unless it must wait
  assign issue  = issuing_q && (load_q ? ext_ready_i : move);
  assign retire = answer_valid_q || (request_valid_q && ext_ready_i);
  assign done_o = retire && to_retire_q == COUNT_BITS'(1);

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) issuing_q <= 1'b0;
      else if (start_i) issuing_q <= 1'b1;
      else if (issue && to_issue_q == COUNT_BITS'(1)) issuing_q <= 1'b0;

      if (start_i) begin
        load_q      <= is_load;
        to_issue_q  <= is_load ? load_n : store_n;
        to_retire_q <= is_load ? load_n : store_n;
        sp_addr_q   <= is_load ? load_d : store_s;
        ext_addr_q  <= is_load ? load_s : store_d;
      end else begin
        if (issue) to_issue_q <= to_issue_q - COUNT_BITS'(1);
        if (retire) to_retire_q <= to_retire_q - COUNT_BITS'(1);
        if (load_q ? retire : issue) sp_addr_q <= sp_addr_q + ADDRESS_BITS'(1);
        if (load_q ? issue : retire) ext_addr_q <= ext_addr_q + EXTERNAL_BITS'(1);
      end
    end

  // LD: the response register.
  always_ff @(posedge clk_i)
    if (enable_i) begin
      answer_valid_q <= ext_rvalid_i && !rst_i;
      if (ext_rvalid_i) answer_q <= ext_rdata_i;
    end

  assign sp_we_o    = answer_valid_q;
  assign sp_waddr_o = answer_valid_q ? sp_addr_q : '0;
  assign sp_wdata_o = answer_valid_q ? answer_q : '0;

  // ST: the word at the scratchpad's output, then the request register.
  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) begin
        word_valid_q    <= 1'b0;
        request_valid_q <= 1'b0;
      end else if (move) begin
        word_valid_q    <= sp_re_o;
        request_valid_q <= word_valid_q;
      end
      if (move && word_valid_q) request_q <= sp_rdata_i;
    end

  assign sp_re_o    = issue && !load_q;
  assign sp_raddr_o = sp_re_o ? sp_addr_q : '0;

  assign ext_valid_o = request_valid_q || (issuing_q && load_q);
  assign ext_write_o = request_valid_q;
  assign ext_addr_o  = ext_addr_q;
  assign ext_wdata_o = request_q;

endmodule
`default_nettype wire
