// MM: one tile D[m x n] = (acc ? D : 0) + A[m x k] . B[k x n]; low bytes in, 32-bit sums out.
//
// start_i (one cycle, with the instruction, which stays until done) begins; the next cycle is the
// unit's first and the one with done_o its last. enable_i is high with start_i, while the unit
// works and with rst_i; without it no register changes. While busy it owns both scratchpad ports.
//
// Cycles. All operand words come through the one read port, one address a cycle: m*n words of D
// when acc, m*k of A, k*n of B. From the last address on, the last word of B takes:
//   +1  the scratchpad's read                  (fetch_*)
//   +1  the operand write register             (put_*)
//   +1  the operand memory's read, first step  (read_q)
//   +1  the operand memory's output register
//   +1  the operand registers of element (0, 0)
//   +1  its product, +1 its sum
//   k-1 the other steps follow the first, and m-1 + n-1 the skew to element (m-1, n-1)
// then the m*n sums leave one a cycle through the drain register (+1) and the write port.
// Sum: m*k + k*n + 7 + (k-1) + (m-1) + (n-1) + m*n + 1 = m*k + k*n + m*n + k + m + n + 5,
// and m*n more with acc.
// Assumes: m, n in 1 .. 4 and k in 1 .. OPERAND_DEPTH.
`default_nettype none
module matrix_unit #(
    parameter int ADDRESS_BITS = 13,
    parameter int OPERAND_DEPTH = 256
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

  localparam int K_BITS = ga2_pkg::MM_K_BITS;
  localparam int INDEX_BITS = $clog2(OPERAND_DEPTH);

  localparam logic [2:0] IDLE = 3'd0;
  localparam logic [2:0] ADDEND = 3'd1;
  localparam logic [2:0] LOAD_A = 3'd2;
  localparam logic [2:0] LOAD_B = 3'd3;
  localparam logic [2:0] STREAM = 3'd4;
  localparam logic [2:0] DRAIN = 3'd5;

  logic [ADDRESS_BITS-1:0] d, a, b;
  logic [2:0] m, n;
  logic [K_BITS-1:0] k;
  logic [15:0] stride_d, stride_a, stride_b;
  logic transposed, accumulate;

  assign d          = ADDRESS_BITS'(inst_i[ga2_pkg::MM_D_LSB+:ga2_pkg::MM_D_BITS]);
  assign a          = ADDRESS_BITS'(inst_i[ga2_pkg::MM_A_LSB+:ga2_pkg::MM_A_BITS]);
  assign b          = ADDRESS_BITS'(inst_i[ga2_pkg::MM_B_LSB+:ga2_pkg::MM_B_BITS]);
  assign m          = inst_i[ga2_pkg::MM_M_LSB+:ga2_pkg::MM_M_BITS];
  assign n          = inst_i[ga2_pkg::MM_N_LSB+:ga2_pkg::MM_N_BITS];
  assign k          = inst_i[ga2_pkg::MM_K_LSB+:ga2_pkg::MM_K_BITS];
  assign stride_d   = inst_i[ga2_pkg::MM_SD_LSB+:ga2_pkg::MM_SD_BITS];
  assign stride_a   = inst_i[ga2_pkg::MM_SA_LSB+:ga2_pkg::MM_SA_BITS];
  assign stride_b   = inst_i[ga2_pkg::MM_SB_LSB+:ga2_pkg::MM_SB_BITS];
  assign transposed = inst_i[ga2_pkg::MM_T_LSB];
  assign accumulate = inst_i[ga2_pkg::MM_ACC_LSB];

  // The phase, and the rectangle that the walker takes up for the next one.
  logic [2:0] phase_q, next_phase;
  logic loading, draining, advance, walk_last, finished, write_last_q;
  logic [ADDRESS_BITS-1:0] base, walk_addr;
  logic [K_BITS-1:0] rows, cols, walk_row, walk_col;
  logic [15:0] stride;

  assign loading  = phase_q == ADDEND || phase_q == LOAD_A || phase_q == LOAD_B;
  assign draining = phase_q == DRAIN && !write_last_q;
  assign advance  = start_i || (loading && walk_last);

  always_comb begin
    case (phase_q)
      IDLE:    next_phase = accumulate ? ADDEND : LOAD_A;
      ADDEND:  next_phase = LOAD_A;
      LOAD_A:  next_phase = LOAD_B;
      LOAD_B:  next_phase = STREAM;
      STREAM:  next_phase = DRAIN;
      default: next_phase = IDLE;
    endcase
    case (next_phase)
      LOAD_A: begin
        base   = a;
        rows   = K_BITS'(m);
        cols   = k;
        stride = stride_a;
      end
      LOAD_B: begin
        base   = b;
        rows   = transposed ? K_BITS'(n) : k;
        cols   = transposed ? k : K_BITS'(n);
        stride = stride_b;
      end
      default: begin  // D, to be read or written
        base   = d;
        rows   = K_BITS'(m);
        cols   = K_BITS'(n);
        stride = stride_d;
      end
    endcase
  end

  walker #(.ADDRESS_BITS(ADDRESS_BITS), .COUNT_BITS(K_BITS)) u_walker (
      .clk_i, .enable_i, .load_i(advance), .base_i(base), .rows_i(rows), .cols_i(cols),
      .stride_i(stride), .step_i(loading || draining),
      .addr_o(walk_addr), .row_o(walk_row), .col_o(walk_col), .last_o(walk_last)
  );

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) phase_q <= IDLE;
      else if (advance || (phase_q == STREAM && finished) || done_o) phase_q <= next_phase;
    end

  assign sp_re_o    = loading;
  assign sp_raddr_o = loading ? walk_addr : '0;

  // A word on its way from the scratchpad to its operand memory, or to its sum.
  logic fetch_addend_q, fetch_a_q, fetch_b_q, fetch_last_q;
  logic put_addend_q, put_a_q, put_b_q, put_last_q;
  logic [1:0] fetch_bank_q, put_bank_q;
  logic [INDEX_BITS-1:0] fetch_index_q, put_index_q;
  logic [31:0] put_word_q;
  logic by_column;

  assign by_column = phase_q == LOAD_B && !transposed;

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) begin
        fetch_addend_q <= 1'b0;
        fetch_a_q      <= 1'b0;
        fetch_b_q      <= 1'b0;
        fetch_last_q   <= 1'b0;
        put_addend_q   <= 1'b0;
        put_a_q        <= 1'b0;
        put_b_q        <= 1'b0;
        put_last_q     <= 1'b0;
      end else begin
        fetch_addend_q <= phase_q == ADDEND;
        fetch_a_q      <= phase_q == LOAD_A;
        fetch_b_q      <= phase_q == LOAD_B;
        fetch_last_q   <= phase_q == LOAD_B && walk_last;
        put_addend_q   <= fetch_addend_q;
        put_a_q        <= fetch_a_q;
        put_b_q        <= fetch_b_q;
        put_last_q     <= fetch_last_q;
      end
      if (loading) begin
        fetch_bank_q  <= by_column ? walk_col[1:0] : walk_row[1:0];
        fetch_index_q <= INDEX_BITS'(by_column ? walk_row : walk_col);
      end
      if (fetch_addend_q || fetch_a_q || fetch_b_q) begin
        put_bank_q  <= fetch_bank_q;
        put_index_q <= fetch_index_q;
        put_word_q  <= sp_rdata_i;
      end
    end

  // The k steps, read from the operand memories.
  logic read_q, read_last, last_in_ram_q, last_at_edge_q;
  logic [K_BITS-1:0] step_q;
  logic [INDEX_BITS-1:0] step;
  logic [3:0] rows_used, columns_used;
  logic [31:0] a_bytes, b_bytes, sum;
  logic write_q;
  logic [ADDRESS_BITS-1:0] write_addr_q;

  assign read_last    = step_q == k - K_BITS'(1);
  assign step         = INDEX_BITS'(step_q);
  assign rows_used    = ~(4'b1111 << m);
  assign columns_used = ~(4'b1111 << n);

  always_ff @(posedge clk_i)
    if (enable_i) begin
      if (rst_i) read_q <= 1'b0;
      else if (put_last_q) read_q <= 1'b1;
      else if (read_last) read_q <= 1'b0;
      if (put_last_q) step_q <= '0;
      else if (read_q) step_q <= step_q + K_BITS'(1);
      last_in_ram_q  <= read_q && read_last && !rst_i;
      last_at_edge_q <= last_in_ram_q && !rst_i;
    end

  operand_memory #(.DEPTH(OPERAND_DEPTH)) u_a (
      .clk_i, .enable_i, .clear_i(start_i),
      .we_i(put_a_q), .bank_i(put_bank_q), .windex_i(put_index_q), .byte_i(put_word_q[7:0]),
      .re_i(read_q), .rindex_i(step), .lanes_i(rows_used), .data_o(a_bytes)
  );

  operand_memory #(.DEPTH(OPERAND_DEPTH)) u_b (
      .clk_i, .enable_i, .clear_i(start_i),
      .we_i(put_b_q), .bank_i(put_bank_q), .windex_i(put_index_q), .byte_i(put_word_q[7:0]),
      .re_i(read_q), .rindex_i(step), .lanes_i(columns_used), .data_o(b_bytes)
  );

  array u_array (
      .clk_i, .clear_i(start_i), .en_i(phase_q == STREAM),
      .a_i(a_bytes), .b_i(b_bytes), .last_i(last_at_edge_q),
      .tail_i(m + n - 3'd2), .finished_o(finished),
      .load_i(put_addend_q), .load_element_i({put_bank_q, put_index_q[1:0]}),
      .load_sum_i(put_word_q),
      .drain_i(draining), .row_end_i(walk_col[1:0] == 2'(n - 3'd1)), .drained_o(sum)
  );

  // The drain register sits in the array; here are its address and its last word.
  always_ff @(posedge clk_i)
    if (enable_i) begin
      write_q      <= draining && !rst_i;
      write_last_q <= draining && walk_last && !rst_i;
      if (draining) write_addr_q <= walk_addr;
    end

  assign sp_we_o    = write_q;
  assign sp_waddr_o = write_q ? write_addr_q : '0;
  assign sp_wdata_o = write_q ? sum : '0;
  assign done_o     = write_last_q;

endmodule
`default_nettype wire
