// The bench of single blocks, of both simulators: runs a list of vectors, one a line.
//
// +vectors=FILE  a line each: block, then a, b, c and d in hexadecimal:
//                0 divider: divisor a; after b steps it stands still for c cycles; with d = 1, a
//                  division of ~a is begun before and reset after b steps, c cycles earlier
//                1 requantizer: x a, multiplier b, shift c, relu d
//                2 exponential table: index a
//                3 saturate of 9 bits: x a              4 saturate of 47 bits: x a
// +out=FILE      a line each: the result in hexadecimal and, for the divider, the steps it took;
//                "moved" in place of the result when it changed without valid or enable, "woke" when a
//                division went on after its reset. Then "end".
`default_nettype none
module unit_tb;

  logic clk = 1'b0;
  always #5 clk = !clk;

  logic rst, enable, start, done, valid, relu, lookup;
  logic [31:0] divisor, quotient, x, y, held;
  logic [15:0] multiplier, exponential;
  logic [5:0] shift;
  logic [7:0] index, narrow_y, wide_y;
  logic [8:0] narrow_x;
  logic [46:0] wide_x;

  divider u_divider (
      .clk_i(clk), .rst_i(rst), .enable_i(enable), .start_i(start), .divisor_i(divisor),
      .done_o(done), .quotient_o(quotient)
  );

  requantizer u_requantizer (
      .clk_i(clk), .valid_i(valid), .x_i(x), .mul_i(multiplier), .sh_i(shift), .relu_i(relu),
      .y_o(y)
  );

  exp_table u_exp_table (.clk_i(clk), .en_i(lookup), .index_i(index), .value_o(exponential));

  saturate #(.WIDTH(9)) u_narrow (.x_i(narrow_x), .y_o(narrow_y));
  saturate #(.WIDTH(47)) u_wide (.x_i(wide_x), .y_o(wide_y));

  string vectors, out;
  int list, results, block, steps;
  logic [63:0] a, b, c, d;

  task begin_division(input logic [31:0] by);
    divisor = by;
    start   = 1'b1;
    @(negedge clk);
    start = 1'b0;
  endtask

  task divide;
    if (d != 0) begin
      begin_division(~a[31:0]);
      repeat (int'(b)) @(negedge clk);
      rst = 1'b1;
      @(negedge clk);
      rst = 1'b0;
      repeat (int'(c)) begin
        if (done !== 1'b0) $fwrite(results, "woke ");
        @(negedge clk);
      end
    end
    begin_division(a[31:0]);
    steps = 1;
    while (done !== 1'b1 && steps < 100) begin
      if (steps == int'(b) && d == 0) begin
        enable = 1'b0;
        repeat (int'(c)) @(negedge clk);
        enable = 1'b1;
      end
      @(negedge clk);
      steps = steps + 1;
    end
    @(negedge clk);
    held = quotient;
    repeat (2) @(negedge clk);
    if (quotient !== held) $fwrite(results, "moved %0d\n", steps);
    else $fwrite(results, "%h %0d\n", quotient, steps);
  endtask

  task requantize;
    x          = a[31:0];
    multiplier = b[15:0];
    shift      = c[5:0];
    relu       = d[0];
    valid      = 1'b1;
    @(negedge clk);
    held = y;
    valid  = 1'b0;
    x      = ~x;
    @(negedge clk);
    if (y !== held) $fwrite(results, "moved\n");
    else $fwrite(results, "%h\n", y);
  endtask

  task look_up;
    index  = a[7:0];
    lookup = 1'b1;
    @(negedge clk);
    held = 32'(exponential);
    lookup = 1'b0;
    index  = ~index;
    @(negedge clk);
    if (32'(exponential) !== held) $fwrite(results, "moved\n");
    else $fwrite(results, "%h\n", exponential);
  endtask

  initial begin
    rst    = 1'b1;
    enable = 1'b1;
    start  = 1'b0;
    valid  = 1'b0;
    lookup = 1'b0;
    if ($value$plusargs("vectors=%s", vectors) == 0) $fatal(1, "+vectors=FILE is missing");
    if ($value$plusargs("out=%s", out) == 0) $fatal(1, "+out=FILE is missing");
    list = $fopen(vectors, "r");
    if (list == 0) $fatal(1, "cannot open %0s", vectors);
    results = $fopen(out, "w");
    if (results == 0) $fatal(1, "cannot write %0s", out);
    @(negedge clk);
    rst = 1'b0;
    while ($fscanf(list, "%d %h %h %h %h\n", block, a, b, c, d) == 5)
      case (block)
        0: divide();
        1: requantize();
        2: look_up();
        3: begin
          narrow_x = a[8:0];
          @(negedge clk);
          $fwrite(results, "%h\n", narrow_y);
        end
        default: begin
          wide_x = a[46:0];
          @(negedge clk);
          $fwrite(results, "%h\n", wide_y);
        end
      endcase
    $fwrite(results, "end\n");
    $fclose(results);
    $finish;
  end

endmodule
`default_nettype wire
