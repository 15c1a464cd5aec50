// The vector unit: RQ, VADD, SM and AMAX, one small unit each behind the ports of one.
//
// start_i (one cycle, with the instruction, which stays until done) begins the one that the opcode
// names; the next cycle is the unit's first and the one with done_o its last. enable_i is high with
// start_i, while the unit works and with rst_i; without it no register changes. Units that are not
// at work drive zeros, so that their ports are simply or-ed.
`default_nettype none
module vector_unit #(
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

  logic [ga2_pkg::OPCODE_BITS-1:0] opcode;
  logic rq_is, add_is, sm_is, max_is;
  logic rq_enable, add_enable, sm_enable, max_enable;
  logic rq_done, add_done, sm_done, max_done;
  logic rq_re, add_re, sm_re, max_re;
  logic rq_we, add_we, sm_we, max_we;
  logic [ADDRESS_BITS-1:0] rq_raddr, add_raddr, sm_raddr, max_raddr;
  logic [ADDRESS_BITS-1:0] rq_waddr, add_waddr, sm_waddr, max_waddr;
  logic [31:0] rq_wdata, add_wdata, sm_wdata, max_wdata;

  assign opcode = inst_i[0+:ga2_pkg::OPCODE_BITS];
  assign rq_is  = opcode == ga2_pkg::OP_RQ;
  assign add_is = opcode == ga2_pkg::OP_VADD;
  assign sm_is  = opcode == ga2_pkg::OP_SM;
  assign max_is = opcode == ga2_pkg::OP_AMAX;

  // Only the unit at work is clocked.
  assign rq_enable  = rst_i || (enable_i && rq_is);
  assign add_enable = rst_i || (enable_i && add_is);
  assign sm_enable  = rst_i || (enable_i && sm_is);
  assign max_enable = rst_i || (enable_i && max_is);

  requantize_unit #(.ADDRESS_BITS(ADDRESS_BITS)) u_requantize (
      .clk_i, .rst_i, .enable_i(rq_enable), .start_i(start_i && rq_is), .inst_i,
      .done_o(rq_done),
      .sp_re_o(rq_re), .sp_raddr_o(rq_raddr), .sp_rdata_i,
      .sp_we_o(rq_we), .sp_waddr_o(rq_waddr), .sp_wdata_o(rq_wdata)
  );

  add_unit #(.ADDRESS_BITS(ADDRESS_BITS)) u_add (
      .clk_i, .rst_i, .enable_i(add_enable), .start_i(start_i && add_is), .inst_i,
      .done_o(add_done),
      .sp_re_o(add_re), .sp_raddr_o(add_raddr), .sp_rdata_i(sp_rdata_i[7:0]),
      .sp_we_o(add_we), .sp_waddr_o(add_waddr), .sp_wdata_o(add_wdata)
  );

  softmax_unit #(.ADDRESS_BITS(ADDRESS_BITS)) u_softmax (
      .clk_i, .rst_i, .enable_i(sm_enable), .start_i(start_i && sm_is), .inst_i,
      .done_o(sm_done),
      .sp_re_o(sm_re), .sp_raddr_o(sm_raddr), .sp_rdata_i(sp_rdata_i[7:0]),
      .sp_we_o(sm_we), .sp_waddr_o(sm_waddr), .sp_wdata_o(sm_wdata)
  );

  argmax_unit #(.ADDRESS_BITS(ADDRESS_BITS)) u_argmax (
      .clk_i, .rst_i, .enable_i(max_enable), .start_i(start_i && max_is), .inst_i,
      .done_o(max_done),
      .sp_re_o(max_re), .sp_raddr_o(max_raddr), .sp_rdata_i,
      .sp_we_o(max_we), .sp_waddr_o(max_waddr), .sp_wdata_o(max_wdata)
  );

  assign done_o     = rq_done || add_done || sm_done || max_done;
  assign sp_re_o    = rq_re || add_re || sm_re || max_re;
  assign sp_raddr_o = rq_raddr | add_raddr | sm_raddr | max_raddr;
  assign sp_we_o    = rq_we || add_we || sm_we || max_we;
  assign sp_waddr_o = rq_waddr | add_waddr | sm_waddr | max_waddr;
  assign sp_wdata_o = rq_wdata | add_wdata | sm_wdata | max_wdata;

endmodule
`default_nettype wire
