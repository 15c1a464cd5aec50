// The 4 x 4 output-stationary array: element (i, j) sums row i of A times column j of B.
//
// clear_i empties it. en_i moves it: a_i and b_i carry one byte a row and a column for one step k;
// row i and column j are delayed by i and j cycles at the edge (the skew), so that step k meets in
// element (i, j). last_i comes with the last step. finished_o is high in the cycle in which
// element (i, j) with i + j = tail_i adds that step, tail_i + 2 cycles after last_i: the sums are
// complete from the next cycle on.
// load_i puts a word into the sum of one element (row in the upper two bits), to add to it.
// drain_i takes the sums out, row by row: drained_o is the sum of (0, 0) one cycle later, and the
// sums of row 0 move one to the left; with row_end_i instead all rows move up by one.
// Assumes: only one of clear_i, en_i, load_i and drain_i at a time; bytes of unused rows and
// columns, and all bytes outside the steps, are zero.
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
    input  logic [31:0] load_sum_i,
    input  logic        drain_i,
    input  logic        row_end_i,
    output logic [31:0] drained_o
);

  localparam int N = ga2_pkg::ARRAY_SIZE;

  logic [2*N-1:0] diagonal_q;  // the last step: operands of (0, 0), then products of diagonal d
  logic [2*N-2:0] adding;  // the elements with i + j = d add the last step
  logic [N*N-1:0] loads;  // the element that takes load_sum_i
  logic move, left, up;

  assign move  = clear_i || en_i;
  assign loads = load_i ? (N * N)'(1) << load_element_i : '0;
  assign left  = drain_i && !row_end_i;
  assign up    = drain_i && row_end_i;

  // The words between the elements, each driven by the element or the edge before it.
  for (genvar i = 0; i <= N; i++) begin : g_row
    for (genvar j = 0; j <= N; j++) begin : g_column
      logic [7:0] a, b;  // the operands that enter (i, j)
      logic [31:0] sum;
    end
  end

  for (genvar i = 0; i < N; i++) begin : g_edge
    delay #(.WIDTH(8), .STAGES(i)) u_a (
        .clk_i, .enable_i(move), .clear_i, .d_i(a_i[8*i+:8]), .q_o(g_row[i].g_column[0].a)
    );
    delay #(.WIDTH(8), .STAGES(i)) u_b (
        .clk_i, .enable_i(move), .clear_i, .d_i(b_i[8*i+:8]), .q_o(g_row[0].g_column[i].b)
    );
    assign g_row[i].g_column[N].sum = '0;
    assign g_row[N].g_column[i].sum = '0;
  end

  for (genvar i = 0; i < N; i++) begin : g_pe_row
    for (genvar j = 0; j < N; j++) begin : g_pe
      pe u_pe (
          .clk_i, .enable_i(move || loads[i*N+j] || up || (left && i == 0)), .clear_i,
          .a_i(g_row[i].g_column[j].a), .b_i(g_row[i].g_column[j].b),
          .a_o(g_row[i].g_column[j+1].a), .b_o(g_row[i+1].g_column[j].b),
          .load_i, .load_sum_i,
          .right_i(left), .right_sum_i(g_row[i].g_column[j+1].sum),
          .below_i(up), .below_sum_i(g_row[i+1].g_column[j].sum),
          .sum_o(g_row[i].g_column[j].sum)
      );
    end
  end

  assign adding     = diagonal_q[2*N-1:1];
  assign finished_o = adding[tail_i];

  always_ff @(posedge clk_i)
    if (move) diagonal_q <= clear_i ? '0 : {diagonal_q[2*N-2:0], last_i};
    else if (drain_i) drained_o <= g_row[0].g_column[0].sum;

endmodule
`default_nettype wire
