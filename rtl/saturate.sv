// Saturation of a signed number of WIDTH (at least 9) bits to -127 .. 127; combinational.
//
// Written with bit tests, not with signed comparisons: Verilator 5.006 gets those wrong at widths
// other than 8, 16 and 32.
`default_nettype none
module saturate #(
    parameter int WIDTH = 9
) (
    input  logic [WIDTH-1:0] x_i,
    output logic [7:0]       y_o
);

  localparam logic [7:0] HIGH = 8'(ga2_pkg::INT8_MAX);
  localparam logic [7:0] LOW = 8'(-ga2_pkg::INT8_MAX);

  logic negative, above, below;

  assign negative = x_i[WIDTH-1];
  assign above    = !negative && |x_i[WIDTH-2:7];
  assign below    = negative && !(&x_i[WIDTH-2:7] && |x_i[6:0]);
  assign y_o      = above ? HIGH : below ? LOW : x_i[7:0];

endmodule
`default_nettype wire
