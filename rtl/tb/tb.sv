// The bench of both simulators: runs a list of jobs, each a program with its memory images.
//
// +jobs=DIR   DIR/jobs.txt has a line a job: number, entries, cycle limit, reset cycle, words of
//             external memory, words of the scratchpad. DIR/<number>.program.hex, .external.hex
//             and .scratchpad.hex are the images; the words behind them become 0. With -1 words,
//             the scratchpad has no image and stays as it is. With a reset cycle above 0, the job
//             is first run up to that cycle, reset, and then run as a whole.
// +out=DIR    receives <number>.external.hex and <number>.scratchpad.hex, both up to the last word
//             that is not 0 (at least one word), and results.txt, which has a line a job: number, verdict, index of the instruction at the end, and the
//             counters total, matrix, dma, vector, control; then the line "end". The verdict is
//             done, hang (the limit was reached), illegal (unknown opcode) or undefined (an x on
//             a request to external memory).
// +stall=P    percentage of stalled cycles of external memory (0)
// +seed=N     seed of the stalls (1)
// +latency=N  cycles from a request of external memory to its answer (8)
// +wave=FILE  writes a waveform
//
// The job's limit counts the cycles from start to done. The bench drives and samples on the
// falling edge.
`default_nettype none
module tb #(
    parameter int EXTERNAL_WORDS = 8192,
    parameter int SCRATCHPAD_WORDS = 8192,
    parameter int OPERAND_DEPTH = 256,
    parameter int PROGRAM_ENTRIES = 16384
);

  localparam int EXTERNAL_BITS = $clog2(EXTERNAL_WORDS);
  localparam int INDEX_BITS = PROGRAM_ENTRIES > 1 ? $clog2(PROGRAM_ENTRIES) : 1;

  logic clk = 1'b0;
  always #5 clk = !clk;

  logic rst, start, done, illegal, program_we;
  logic [INDEX_BITS-1:0] program_index, index;
  logic [ga2_pkg::INSTRUCTION_BITS-1:0] program_entry;
  logic ext_valid, ext_ready, ext_write, ext_rvalid;
  logic [EXTERNAL_BITS-1:0] ext_addr;
  logic [31:0] ext_wdata, ext_rdata;
  logic [31:0] total, matrix, dma, vector, control;
  logic [7:0] latency;
  logic [6:0] stall_percent;
  logic [31:0] seed;

  ga2 #(
      .EXTERNAL_WORDS(EXTERNAL_WORDS), .SCRATCHPAD_WORDS(SCRATCHPAD_WORDS),
      .OPERAND_DEPTH(OPERAND_DEPTH), .PROGRAM_ENTRIES(PROGRAM_ENTRIES)
  ) u_dut (
      .clk_i(clk), .rst_i(rst),
      .program_we_i(program_we), .program_index_i(program_index), .program_entry_i(program_entry),
      .start_i(start), .done_o(done), .illegal_o(illegal), .index_o(index),
      .ext_valid_o(ext_valid), .ext_ready_i(ext_ready), .ext_write_o(ext_write),
      .ext_addr_o(ext_addr), .ext_wdata_o(ext_wdata),
      .ext_rvalid_i(ext_rvalid), .ext_rdata_i(ext_rdata),
      .total_o(total), .matrix_o(matrix), .dma_o(dma), .vector_o(vector), .control_o(control)
  );

  external_memory #(.WORDS(EXTERNAL_WORDS)) u_external (
      .clk_i(clk), .rst_i(rst), .latency_i(latency), .stall_percent_i(stall_percent),
      .seed_i(seed),
      .valid_i(ext_valid), .ready_o(ext_ready), .write_i(ext_write), .addr_i(ext_addr),
      .wdata_i(ext_wdata), .rvalid_o(ext_rvalid), .rdata_o(ext_rdata)
  );

  string jobs, out, wave, verdict;
  int list, results, option;
  int number, entries, limit, reset_cycle, external_words, scratchpad_words, cycles, last;
  logic undefined;
  logic [ga2_pkg::INSTRUCTION_BITS-1:0] entry [0:PROGRAM_ENTRIES-1];

  // One cycle must do.
  task reset;
    rst = 1'b1;
    @(negedge clk);
    rst = 1'b0;
  endtask

  task load_memories;
    $readmemh($sformatf("%0s/%0d.external.hex", jobs, number), u_external.mem, 0,
              external_words - 1);
    for (int i = external_words; i < EXTERNAL_WORDS; i++) u_external.mem[i] = '0;
    if (scratchpad_words >= 0) begin
      $readmemh($sformatf("%0s/%0d.scratchpad.hex", jobs, number), u_dut.u_scratchpad.mem, 0,
                scratchpad_words - 1);
      for (int i = scratchpad_words; i < SCRATCHPAD_WORDS; i++) u_dut.u_scratchpad.mem[i] = '0;
    end
  endtask

  task load_program;
    $readmemh($sformatf("%0s/%0d.program.hex", jobs, number), entry, 0, entries - 1);
    program_we = 1'b1;
    for (int i = 0; i < entries; i++) begin
      program_index = INDEX_BITS'(i);
      program_entry = entry[i];
      @(negedge clk);
    end
    program_we = 1'b0;
  endtask

  // Runs from the start for at most this many cycles. Every instruction but HALT takes longer than
  // the second, early start.
  task run(input int bound);
    start = 1'b1;
    @(negedge clk);
    start     = 1'b0;
    cycles    = 0;
    undefined = 1'b0;
    while (done !== 1'b1 && cycles < bound) begin
      @(negedge clk);
      cycles = cycles + 1;
      start  = cycles == 3;  // too early: a running chip must ignore it
      if (ext_valid !== 1'b0)
        if (^{ext_valid, ext_write, ext_addr} === 1'bx) undefined = 1'b1;
    end
    start = 1'b0;
  endtask

  task report;
    if (undefined) verdict = "undefined";
    else if (done !== 1'b1) verdict = "hang";
    else if (illegal !== 1'b0) verdict = "illegal";
    else verdict = "done";
    $fwrite(results, "%0d %0s %0d %0d %0d %0d %0d %0d\n", number, verdict, index, total,
            matrix, dma, vector, control);
    last = EXTERNAL_WORDS - 1;
    while (last > 0 && u_external.mem[last] === '0) last = last - 1;
    $writememh($sformatf("%0s/%0d.external.hex", out, number), u_external.mem, 0, last);
    last = SCRATCHPAD_WORDS - 1;
    while (last > 0 && u_dut.u_scratchpad.mem[last] === '0) last = last - 1;
    $writememh($sformatf("%0s/%0d.scratchpad.hex", out, number), u_dut.u_scratchpad.mem, 0, last);
  endtask

  initial begin
    rst           = 1'b1;
    start         = 1'b0;
    program_we    = 1'b0;
    program_index = '0;
    program_entry = '0;
    if ($value$plusargs("jobs=%s", jobs) == 0) $fatal(1, "+jobs=DIR is missing");
    if ($value$plusargs("out=%s", out) == 0) $fatal(1, "+out=DIR is missing");
    if ($value$plusargs("stall=%d", option) == 0) option = 0;
    stall_percent = option[6:0];
    if ($value$plusargs("seed=%d", option) == 0) option = 1;
    seed = option == 0 ? 32'd1 : option;  // xorshift never leaves 0
    if ($value$plusargs("latency=%d", option) == 0) option = 8;
    latency = option[7:0];
    if ($value$plusargs("wave=%s", wave) != 0) begin
      $dumpfile(wave);
      $dumpvars(0, u_dut);
    end

    list = $fopen({jobs, "/jobs.txt"}, "r");
    if (list == 0) $fatal(1, "cannot open %0s/jobs.txt", jobs);
    results = $fopen({out, "/results.txt"}, "w");
    if (results == 0) $fatal(1, "cannot write %0s/results.txt", out);
    reset();
    while ($fscanf(list, "%d %d %d %d %d %d\n", number, entries, limit, reset_cycle,
                   external_words, scratchpad_words) == 6) begin
      load_program();
      if (reset_cycle != 0) begin
        load_memories();
        run(reset_cycle);
      end
      // After a program that ended by itself, the next one starts without a reset.
      if (reset_cycle != 0 || verdict != "done") reset();
      load_memories();
      run(limit);
      report();
    end
    $fwrite(results, "end\n");
    $fclose(results);
    $finish;
  end

endmodule
`default_nettype wire
