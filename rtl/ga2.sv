// GA2, the chip: program memory, scratchpad, sequencer, matrix unit, vector unit, DMA, counters.
//
// The host writes the program entry by entry while the chip is idle (program_*), then pulses
// start_i; done_o is high from HALT to the next start. The counters are cleared by start_i and
// frozen at HALT. index_o is the index of the current instruction; illegal_o marks a stop at an
// unknown opcode. rst_i (synchronous) stops a program wherever it is: memories keep what they
// hold, and the next start runs from entry 0.
// External memory: see dma.sv; it is reset together with the chip.
// One unit works at a time, and only that one is clocked; the others drive zeros, so that the ports
// are or-ed, not muxed.
`default_nettype none
module ga2 #(
    parameter int EXTERNAL_WORDS = 8192,
    parameter int SCRATCHPAD_WORDS = 8192,
    parameter int OPERAND_DEPTH = 256,
    parameter int PROGRAM_ENTRIES = 16384,
    parameter int COUNTER_BITS = 32,
    parameter int EXTERNAL_BITS = $clog2(EXTERNAL_WORDS),
    parameter int INDEX_BITS = PROGRAM_ENTRIES > 1 ? $clog2(PROGRAM_ENTRIES) : 1
) (
    input  logic                                 clk_i,
    input  logic                                 rst_i,
    input  logic                                 program_we_i,
    input  logic [INDEX_BITS-1:0]                program_index_i,
    input  logic [ga2_pkg::INSTRUCTION_BITS-1:0] program_entry_i,
    input  logic                                 start_i,
    output logic                                 done_o,
    output logic                                 illegal_o,
    output logic [INDEX_BITS-1:0]                index_o,
    output logic                                 ext_valid_o,
    input  logic                                 ext_ready_i,
    output logic                                 ext_write_o,
    output logic [EXTERNAL_BITS-1:0]             ext_addr_o,
    output logic [31:0]                          ext_wdata_o,
    input  logic                                 ext_rvalid_i,
    input  logic [31:0]                          ext_rdata_i,
    output logic [COUNTER_BITS-1:0]              total_o,
    output logic [COUNTER_BITS-1:0]              matrix_o,
    output logic [COUNTER_BITS-1:0]              dma_o,
    output logic [COUNTER_BITS-1:0]              vector_o,
    output logic [COUNTER_BITS-1:0]              control_o
);

  localparam int ADDRESS_BITS = $clog2(SCRATCHPAD_WORDS);

  logic [ga2_pkg::INSTRUCTION_BITS-1:0] inst;
  logic begin_program, fetch;
  logic matrix_start, dma_start, vector_start;
  logic matrix_done, dma_done, vector_done;
  logic matrix_cycle, dma_cycle, vector_cycle, control_cycle;
  logic matrix_re, dma_re, vector_re, matrix_we, dma_we, vector_we;
  logic [ADDRESS_BITS-1:0] matrix_raddr, dma_raddr, vector_raddr;
  logic [ADDRESS_BITS-1:0] matrix_waddr, dma_waddr, vector_waddr;
  logic [31:0] matrix_wdata, dma_wdata, vector_wdata, sp_rdata;

  ram #(.WIDTH(ga2_pkg::INSTRUCTION_BITS), .DEPTH(PROGRAM_ENTRIES), .ADDRESS_BITS(INDEX_BITS))
  u_program (
      .clk_i, .re_i(fetch), .raddr_i(index_o), .rdata_o(inst),
      .we_i(program_we_i), .waddr_i(program_index_i), .wdata_i(program_entry_i)
  );

  ram #(.WIDTH(32), .DEPTH(SCRATCHPAD_WORDS)) u_scratchpad (
      .clk_i,
      .re_i(matrix_re || dma_re || vector_re),
      .raddr_i(matrix_raddr | dma_raddr | vector_raddr),
      .rdata_o(sp_rdata),
      .we_i(matrix_we || dma_we || vector_we),
      .waddr_i(matrix_waddr | dma_waddr | vector_waddr),
      .wdata_i(matrix_wdata | dma_wdata | vector_wdata)
  );

  sequencer #(.INDEX_BITS(INDEX_BITS)) u_sequencer (
      .clk_i, .rst_i, .start_i, .start_o(begin_program), .done_o, .illegal_o, .index_o,
      .fetch_o(fetch), .opcode_i(inst[0+:ga2_pkg::OPCODE_BITS]),
      .matrix_start_o(matrix_start), .dma_start_o(dma_start), .vector_start_o(vector_start),
      .unit_done_i(matrix_done || dma_done || vector_done),
      .matrix_cycle_o(matrix_cycle), .dma_cycle_o(dma_cycle), .vector_cycle_o(vector_cycle),
      .control_cycle_o(control_cycle)
  );

  counters #(.WIDTH(COUNTER_BITS)) u_counters (
      .clk_i, .rst_i, .clear_i(begin_program),
      .matrix_i(matrix_cycle), .dma_i(dma_cycle), .vector_i(vector_cycle),
      .control_i(control_cycle),
      .total_o, .matrix_o, .dma_o, .vector_o, .control_o
  );

  matrix_unit #(.ADDRESS_BITS(ADDRESS_BITS), .OPERAND_DEPTH(OPERAND_DEPTH)) u_matrix (
      .clk_i, .rst_i, .enable_i(matrix_start || matrix_cycle || rst_i),
      .start_i(matrix_start), .inst_i(inst), .done_o(matrix_done),
      .sp_re_o(matrix_re), .sp_raddr_o(matrix_raddr), .sp_rdata_i(sp_rdata),
      .sp_we_o(matrix_we), .sp_waddr_o(matrix_waddr), .sp_wdata_o(matrix_wdata)
  );

  dma #(.ADDRESS_BITS(ADDRESS_BITS), .EXTERNAL_BITS(EXTERNAL_BITS)) u_dma (
      .clk_i, .rst_i, .enable_i(dma_start || dma_cycle || rst_i),
      .start_i(dma_start), .inst_i(inst), .done_o(dma_done),
      .ext_valid_o, .ext_ready_i, .ext_write_o, .ext_addr_o, .ext_wdata_o,
      .ext_rvalid_i, .ext_rdata_i,
      .sp_re_o(dma_re), .sp_raddr_o(dma_raddr), .sp_rdata_i(sp_rdata),
      .sp_we_o(dma_we), .sp_waddr_o(dma_waddr), .sp_wdata_o(dma_wdata)
  );

  vector_unit #(.ADDRESS_BITS(ADDRESS_BITS)) u_vector (
      .clk_i, .rst_i, .enable_i(vector_start || vector_cycle || rst_i),
      .start_i(vector_start), .inst_i(inst), .done_o(vector_done),
      .sp_re_o(vector_re), .sp_raddr_o(vector_raddr), .sp_rdata_i(sp_rdata),
      .sp_we_o(vector_we), .sp_waddr_o(vector_waddr), .sp_wdata_o(vector_wdata)
  );

endmodule
`default_nettype wire
