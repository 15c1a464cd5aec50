// The model of external memory for the bench (not synthesized).
//
// A read accepted in cycle t is answered in cycle t + latency_i, in order; a write takes effect at
// once. With stall_percent_i above 0, in that share of the cycles the memory takes no request
// (ready low), and in half of those everything on its way stands still, too. The draws come from
// seed_i by xorshift, so that both simulators see the same stalls.
// Assumes: latency_i in 1 .. 254.
`default_nettype none
module external_memory #(
    parameter int WORDS = 8192,
    parameter int ADDRESS_BITS = $clog2(WORDS)
) (
    input  logic                    clk_i,
    input  logic                    rst_i,
    input  logic [7:0]              latency_i,
    input  logic [6:0]              stall_percent_i,
    input  logic [31:0]             seed_i,
    input  logic                    valid_i,
    output logic                    ready_o,
    input  logic                    write_i,
    input  logic [ADDRESS_BITS-1:0] addr_i,
    input  logic [31:0]             wdata_i,
    output logic                    rvalid_o,
    output logic [31:0]             rdata_o
);

  logic [31:0] mem [0:WORDS-1];

  // A ring of latency - 1 slots, each with a flag and a word: what goes in comes out a round later.
  // The output register is the last cycle of the latency.
  logic [31:0] ring [0:255];
  logic [255:0] full_q;  // the slots that hold an answer
  logic enters, leaves;
  logic [7:0] slot_q;
  logic [31:0] random_q;
  logic busy_q, frozen_q;  // this cycle's draws

  assign ready_o = !busy_q;
  assign enters  = valid_i && ready_o && !write_i;
  assign leaves  = latency_i == 8'd1 ? enters : full_q[slot_q];

  function automatic logic [31:0] xorshift(input logic [31:0] x);
    logic [31:0] y;
    y = x ^ (x << 13);
    y = y ^ (y >> 17);
    xorshift = y ^ (y << 5);
  endfunction

  function automatic logic drawn(input logic [15:0] bits, input logic [6:0] percent);
    drawn = 32'(bits) * 32'd100 < (32'(percent) << 16);
  endfunction

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      full_q   <= '0;
      slot_q   <= '0;
      rvalid_o <= 1'b0;
    end else if (frozen_q) rvalid_o <= 1'b0;
    else begin
      rvalid_o <= leaves;
      if (leaves) rdata_o <= latency_i == 8'd1 ? mem[addr_i] : ring[slot_q];
      if (enters) ring[slot_q] <= mem[addr_i];
      if (enters || leaves) full_q[slot_q] <= enters;
      slot_q <= slot_q + 8'd2 < latency_i ? slot_q + 8'd1 : '0;
    end
    if (valid_i && ready_o && write_i) mem[addr_i] <= wdata_i;
    if (rst_i) begin
      random_q <= seed_i;
      busy_q   <= 1'b0;
      frozen_q <= 1'b0;
    end else if (stall_percent_i != '0) begin
      random_q <= xorshift(random_q);
      busy_q   <= drawn(random_q[15:0], stall_percent_i);
      frozen_q <= drawn(random_q[15:0], stall_percent_i) && random_q[16];
    end
  end

endmodule
`default_nettype wire
