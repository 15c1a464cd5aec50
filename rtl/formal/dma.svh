// n words in order, inside both memories, and then done: whatever the stalls and resets.
//
// Given: n at least 1, both ranges inside their memories, one answer at most for every read that was
// taken, no start while busy, and an enable that is high when the module's header says so.
// rank bounds the work that is left; it falls in every cycle in which neither side makes it wait.
logic busy_q, stalled, waited_q, past_q;
logic [COUNT_BITS-1:0] n_q, outstanding_q;
logic [ADDRESS_BITS-1:0] sp_base_q;
logic [EXTERNAL_BITS-1:0] ext_base_q;
logic [23:0] start_n, sp_end, ext_end, rank, rank_q, issued, retired;

initial begin
  busy_q          = 1'b0;
  past_q          = 1'b0;
  issuing_q       = 1'b0;
  answer_valid_q  = 1'b0;
  word_valid_q    = 1'b0;
  request_valid_q = 1'b0;
  outstanding_q   = '0;
end

assign start_n = 24'(is_load ? load_n : store_n);
assign sp_end  = 24'(is_load ? load_d : store_s) + start_n;
assign ext_end = 24'(is_load ? load_s : store_d) + start_n;
assign issued  = 24'(n_q) - 24'(to_issue_q);
assign retired = 24'(n_q) - 24'(to_retire_q);
assign rank    = 24'd3 * 24'(to_issue_q) + 24'd2 * (24'(outstanding_q) + 24'(word_valid_q)) +
                 24'(answer_valid_q) + 24'(request_valid_q);
assign stalled = load_q ? !(issue || ext_rvalid_i || answer_valid_q) : !move;

always_ff @(posedge clk_i) begin
  past_q   <= busy_q && !rst_i && !done_o;
  rank_q   <= rank;
  waited_q <= stalled;
  if (rst_i) begin
    busy_q        <= 1'b0;
    outstanding_q <= '0;
  end else begin
    if (start_i) begin
      busy_q     <= 1'b1;
      n_q        <= is_load ? load_n : store_n;
      sp_base_q  <= is_load ? load_d : store_s;
      ext_base_q <= is_load ? load_s : store_d;
    end else if (done_o) busy_q <= 1'b0;
    outstanding_q <= outstanding_q + COUNT_BITS'(issue && load_q) - COUNT_BITS'(ext_rvalid_i);
  end
end

always_comb begin
  if (start_i || busy_q || rst_i) assume (enable_i);
  if (start_i) assume (!busy_q && !rst_i);
  if (start_i) assume (start_n != '0);
  if (start_i) assume (sp_end <= 24'(1 << ADDRESS_BITS) && ext_end <= 24'(1 << EXTERNAL_BITS));
  if (ext_rvalid_i) assume (outstanding_q != '0);

  // Between instructions nothing is under way.
  if (!busy_q) assert (!issuing_q && !answer_valid_q && !word_valid_q && !request_valid_q);
  if (!busy_q) assert (outstanding_q == '0 && !done_o && !sp_re_o && !sp_we_o && !ext_valid_o);

  if (busy_q) begin
    assert (to_issue_q <= to_retire_q && to_retire_q <= n_q && to_retire_q != '0);
    assert (issuing_q == (to_issue_q != '0));
    assert (24'(sp_base_q) + 24'(n_q) <= 24'(1 << ADDRESS_BITS));
    assert (24'(ext_base_q) + 24'(n_q) <= 24'(1 << EXTERNAL_BITS));
    if (load_q) assert (!word_valid_q && !request_valid_q);
    else assert (outstanding_q == '0 && !answer_valid_q);
    assert (24'(to_retire_q) - 24'(to_issue_q) == 24'(outstanding_q) + 24'(answer_valid_q) +
            24'(word_valid_q) + 24'(request_valid_q));
    assert (sp_addr_q == ADDRESS_BITS'(24'(sp_base_q) + (load_q ? retired : issued)));
    assert (ext_addr_q == EXTERNAL_BITS'(24'(ext_base_q) + (load_q ? issued : retired)));

    // Word number `issued` is asked for and word number `retired` is delivered, none behind the last.
    if (sp_re_o) assert (24'(sp_raddr_o) == 24'(sp_base_q) + issued && issued < 24'(n_q));
    if (sp_we_o) assert (24'(sp_waddr_o) == 24'(sp_base_q) + retired && retired < 24'(n_q));
    if (ext_valid_o && ext_write_o)
      assert (24'(ext_addr_o) == 24'(ext_base_q) + retired && retired < 24'(n_q));
    if (ext_valid_o && !ext_write_o)
      assert (24'(ext_addr_o) == 24'(ext_base_q) + issued && issued < 24'(n_q));
    if (done_o) assert (retired == 24'(n_q) - 24'd1);
    if (past_q) assert (waited_q ? rank == rank_q : rank < rank_q);
  end
end
