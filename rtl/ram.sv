// A memory with one synchronous read port and one write port: the scratchpad and the program memory
// are instances of it.
//
// Read: with re_i in cycle t, rdata_o is the word at raddr_i from cycle t + 1 on, and holds until
// the next read. Write: the word is there for reads from the next cycle on.
// Assumes: addresses below DEPTH, and no read of a word in the very cycle of its write. The words
// start undefined.
`default_nettype none
module ram #(
    parameter int WIDTH = 32,
    parameter int DEPTH = 256,
    parameter int ADDRESS_BITS = $clog2(DEPTH)
) (
    input  logic                    clk_i,
    input  logic                    re_i,
    input  logic [ADDRESS_BITS-1:0] raddr_i,
    output logic [WIDTH-1:0]        rdata_o,
    input  logic                    we_i,
    input  logic [ADDRESS_BITS-1:0] waddr_i,
    input  logic [WIDTH-1:0]        wdata_i
);

  logic [WIDTH-1:0] mem [0:DEPTH-1];

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    if (re_i) rdata_o <= mem[raddr_i];
  end

endmodule
`default_nettype wire
