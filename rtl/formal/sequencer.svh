// Every run reaches the HALT of its program and never leaves the program, given that HALT stands at
// some entry and that units answer within WAIT cycles; for any opcodes, starts and resets.
//
// rank bounds the cycles that are left and falls in every cycle of a run: a run takes at most
// (entries before HALT) * (WAIT + 2) + 2 cycles.
localparam int WAIT = 5;

logic [INDEX_BITS-1:0] halt_at_q, index_q;
logic [15:0] waited_q;
logic [31:0] phase, rank, rank_q;
logic unit_cycle, running;
logic past_q, ran_q, unit_q, answered_q, started_q, any_start_q, done_q;

assign unit_cycle = matrix_cycle_o || dma_cycle_o || vector_cycle_o;
assign running    = unit_cycle || control_cycle_o;
assign phase      = fetch_o ? 32'(WAIT) + 32'd2 : control_cycle_o ? 32'(WAIT) + 32'd1 :
                    32'(WAIT) - 32'(waited_q);
assign rank       = (32'(halt_at_q) - 32'(index_o)) * (32'(WAIT) + 32'd2) + phase;

initial begin
  state_q = IDLE;
  past_q  = 1'b0;
end

always_ff @(posedge clk_i) begin
  halt_at_q   <= halt_at_q;
  waited_q    <= unit_cycle && !rst_i ? waited_q + 16'd1 : '0;
  past_q      <= !rst_i;
  index_q     <= index_o;
  rank_q      <= rank;
  ran_q       <= running;
  unit_q      <= unit_cycle;
  answered_q  <= unit_cycle && unit_done_i;
  started_q   <= start_o;
  any_start_q <= matrix_start_o || dma_start_o || vector_start_o;
  done_q      <= done_o;
end

always_comb begin
  if (halt_at_q == index_o) assume (opcode_i == ga2_pkg::OP_HALT);
  if (waited_q == 16'(WAIT - 1)) assume (unit_done_i);

  // One counter a cycle; one unit a decode, of an instruction before HALT.
  assert (state_q <= VECTOR);
  assert (32'(matrix_cycle_o) + 32'(dma_cycle_o) + 32'(vector_cycle_o) + 32'(control_cycle_o) <= 1);
  assert (32'(matrix_start_o) + 32'(dma_start_o) + 32'(vector_start_o) <= 1);
  if (matrix_start_o || dma_start_o || vector_start_o) assert (index_o < halt_at_q);
  if (running) assert (index_o <= halt_at_q);
  if (unit_cycle) assert (index_o < halt_at_q && waited_q < 16'(WAIT));

  if (past_q) begin
    if (any_start_q) assert (unit_cycle && waited_q == '0);
    if (unit_cycle) assert (any_start_q || (unit_q && !answered_q));
    if (started_q) assert (fetch_o && index_o == '0);
    if (answered_q) assert (fetch_o && index_o == index_q + INDEX_BITS'(1));
    if (!answered_q && !started_q) assert (index_o == index_q);
    if (ran_q && running) assert (rank < rank_q);
    if (ran_q && !running) assert (done_o);
    if (done_q && !started_q) assert (done_o);
  end
end
