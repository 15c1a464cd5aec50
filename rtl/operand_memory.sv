// One operand memory of the matrix unit: four banks of bytes, one a row of A or a column of B.
//
// Write: one byte into one bank a cycle. Read: with re_i in cycle t, data_o holds the bytes at
// index_i of all four banks in cycle t + 2 (memory, then an output register). Banks without their
// bit in lanes_i, and all of data_o when nothing was read, are zero, from clear_i on: undefined
// bytes stay inside. Nothing changes without enable_i.
`default_nettype none
module operand_memory #(
    parameter int DEPTH = 256,
    parameter int INDEX_BITS = $clog2(DEPTH)
) (
    input  logic                  clk_i,
    input  logic                  enable_i,
    input  logic                  clear_i,
    input  logic                  we_i,
    input  logic [1:0]            bank_i,
    input  logic [INDEX_BITS-1:0] windex_i,
    input  logic [7:0]            byte_i,
    input  logic                  re_i,
    input  logic [INDEX_BITS-1:0] rindex_i,
    input  logic [3:0]            lanes_i,
    output logic [31:0]           data_o
);

  logic [31:0] used;  // the words read, without the lanes that are not used
  logic read_q, shown_q;  // something was read; data_o shows it

  for (genvar i = 0; i < 4; i++) begin : g_bank
    logic [7:0] mem [0:DEPTH-1];
    logic [7:0] read_byte_q;

    always_ff @(posedge clk_i)
      if (enable_i) begin
        if (we_i && bank_i == 2'(i)) mem[windex_i] <= byte_i;
        if (re_i) read_byte_q <= mem[rindex_i];
      end

    assign used[8*i+:8] = lanes_i[i] ? read_byte_q : '0;
  end

  always_ff @(posedge clk_i)
    if (enable_i) begin
      read_q  <= re_i && !clear_i;
      shown_q <= read_q && !clear_i;
      if (clear_i || (shown_q && !read_q)) data_o <= '0;
      else if (read_q) data_o <= used;
    end

endmodule
`default_nettype wire
