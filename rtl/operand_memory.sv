// One operand memory of the matrix unit: four banks of bytes, one a row of A or a column of B.
//
// Write: one byte into one bank a cycle. Read: with re_i in cycle t, data_o holds the bytes at
// index_i of all four banks in cycle t + 2 (memory, then an output register). Banks without their
// bit in lanes_i, and all of data_o when nothing was read, are zero: undefined bytes stay inside.
`default_nettype none
module operand_memory #(
    parameter int DEPTH = 256,
    parameter int INDEX_BITS = $clog2(DEPTH)
) (
    input  logic                  clk_i,
    input  logic                  we_i,
    input  logic [1:0]            bank_i,
    input  logic [INDEX_BITS-1:0] windex_i,
    input  logic [7:0]            byte_i,
    input  logic                  re_i,
    input  logic [INDEX_BITS-1:0] rindex_i,
    input  logic [3:0]            lanes_i,
    output logic [31:0]           data_o
);

  logic [31:0] read;
  logic read_q;

  for (genvar i = 0; i < 4; i++) begin : g_bank
    ram #(.WIDTH(8), .DEPTH(DEPTH)) u_ram (
        .clk_i, .re_i, .raddr_i(rindex_i), .rdata_o(read[8*i+:8]),
        .we_i(we_i && bank_i == 2'(i)), .waddr_i(windex_i), .wdata_i(byte_i)
    );

    always_ff @(posedge clk_i) data_o[8*i+:8] <= read_q && lanes_i[i] ? read[8*i+:8] : '0;
  end

  always_ff @(posedge clk_i) read_q <= re_i;

endmodule
`default_nettype wire
