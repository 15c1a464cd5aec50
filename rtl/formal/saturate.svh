// Equal to two signed comparisons, at any width.
logic signed [WIDTH-1:0] x, high, clamped;

assign x       = x_i;
assign high    = WIDTH'(127);
assign clamped = x > high ? high : x < -high ? -high : x;

always_comb assert (y_o == clamped[7:0]);
