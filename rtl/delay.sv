// STAGES registers in a row (none at all when 0): q_o is d_i of STAGES cycles with enable_i ago.
// clear_i together with enable_i empties them to zeros.
`default_nettype none
module delay #(
    parameter int WIDTH = 8,
    parameter int STAGES = 1
) (
    input  logic             clk_i,
    input  logic             enable_i,
    input  logic             clear_i,
    input  logic [WIDTH-1:0] d_i,
    output logic [WIDTH-1:0] q_o
);

  if (STAGES == 0) begin : g_wire
    assign q_o = d_i;
  end else begin : g_line
    logic [WIDTH*STAGES-1:0] line_q;

    always_ff @(posedge clk_i)
      if (enable_i) line_q <= clear_i ? '0 : (WIDTH * STAGES)'({line_q, d_i});

    assign q_o = line_q[WIDTH*(STAGES-1)+:WIDTH];
  end

endmodule
`default_nettype wire
