// The words of the rectangle and no others, in order, whatever the stalls: at (row, col) the address
// is base + row * stride + col, and last_o is high at the last word only.
//
// Given: at least one word, a rectangle inside the memory, no step behind its last word.
logic [ADDRESS_BITS-1:0] base_q;
logic [COUNT_BITS-1:0] rows_q, cols_q;
logic [STRIDE_BITS-1:0] gap_q;
logic walking_q;
logic [15:0] row_start, rectangle_end;

initial walking_q = 1'b0;

always_ff @(posedge clk_i)
  if (enable_i) begin
    if (load_i) begin
      base_q    <= base_i;
      rows_q    <= rows_i;
      cols_q    <= cols_i;
      gap_q     <= stride_i;
      walking_q <= 1'b1;
    end else if (step_i && last_o) walking_q <= 1'b0;
  end

assign rectangle_end = 16'(base_i) + (16'(rows_i) - 16'd1) * 16'(stride_i) + 16'(cols_i);
assign row_start     = 16'(base_q) + 16'(row_o) * 16'(gap_q);

always_comb begin
  if (load_i) assume (rows_i != '0 && cols_i != '0);
  if (load_i) assume (rectangle_end <= 16'(1 << ADDRESS_BITS));
  if (step_i && !load_i) assume (walking_q);

  if (walking_q) begin
    // The rectangle of the load lies inside the memory: an invariant of the registers.
    assert (16'(base_q) + (16'(rows_q) - 16'd1) * 16'(gap_q) + 16'(cols_q) <= 16'(1 << ADDRESS_BITS));
    assert (stride_q == ADDRESS_BITS'(gap_q));
    assert (last_row_q == rows_q - COUNT_BITS'(1) && last_col_q == cols_q - COUNT_BITS'(1));
    assert (next_row_q == ADDRESS_BITS'(row_start + 16'(gap_q)));

    assert (row_o < rows_q && col_o < cols_q);
    assert (16'(addr_o) == row_start + 16'(col_o));
    assert (last_o == (row_o == rows_q - COUNT_BITS'(1) && col_o == cols_q - COUNT_BITS'(1)));
  end
end
