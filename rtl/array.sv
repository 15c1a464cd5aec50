// The 4 x 4 output-stationary array: element (i, j) sums row i of A times column j of B.
//
// a_i and b_i carry one byte a row and a column for one step k; row i and column j are delayed by
// i and j cycles at the edge (the skew), so that step k meets in element (i, j). last_i comes with
// the last step. finished_o is high in the cycle in which element (i, j) with i + j = tail_i adds
// that step, tail_i + 2 cycles after last_i: the sums are complete from the next cycle on.
// sum_o is the sum of element pick_i (row in the upper two bits) one cycle after pick_en_i.
// Assumes: bytes of unused rows and columns, and all bytes outside the steps, are zero.
`default_nettype none
module array (
    input  logic        clk_i,
    input  logic        clear_i,
    input  logic        en_i,
    input  logic [31:0] a_i,
    input  logic [31:0] b_i,
    input  logic        last_i,
    input  logic [2:0]  tail_i,
    output logic        finished_o,
    input  logic        load_i,
    input  logic [3:0]  load_element_i,
    input  logic [31:0] load_data_i,
    input  logic        pick_en_i,
    input  logic [3:0]  pick_i,
    output logic [31:0] sum_o
);

  localparam int N = ga2_pkg::ARRAY_SIZE;

  logic [8*N*(N+1)-1:0] across, down;  // operand entering (i, j), with one more column or row
  logic [32*N*N-1:0] sums;
  logic [2*N-1:0] diagonal_q;  // the last step: operands of (0, 0), then products of diagonal d
  logic [2*N-2:0] adding;  // the elements with i + j = d add the last step

  for (genvar i = 0; i < N; i++) begin : g_skew
    delay #(.WIDTH(8), .STAGES(i)) u_row (
        .clk_i, .clear_i, .en_i, .d_i(a_i[8*i+:8]), .q_o(across[8*i*(N+1)+:8])
    );
    delay #(.WIDTH(8), .STAGES(i)) u_column (
        .clk_i, .clear_i, .en_i, .d_i(b_i[8*i+:8]), .q_o(down[8*i+:8])
    );
  end

  for (genvar i = 0; i < N; i++) begin : g_row
    for (genvar j = 0; j < N; j++) begin : g_column
      pe u_pe (
          .clk_i, .clear_i, .en_i,
          .a_i(across[8*(i*(N+1)+j)+:8]),
          .b_i(down[8*(i*N+j)+:8]),
          .a_o(across[8*(i*(N+1)+j+1)+:8]),
          .b_o(down[8*((i+1)*N+j)+:8]),
          .load_i(load_i && load_element_i == 4'(i * N + j)),
          .load_data_i,
          .sum_o(sums[32*(i*N+j)+:32])
      );
    end
  end

  assign adding = diagonal_q[2*N-1:1];
  assign finished_o = adding[tail_i];

  always_ff @(posedge clk_i) begin
    if (clear_i) diagonal_q <= '0;
    else if (en_i) diagonal_q <= {diagonal_q[2*N-2:0], last_i};
    if (pick_en_i) sum_o <= sums[{pick_i, 5'd0}+:32];
  end

endmodule
`default_nettype wire
