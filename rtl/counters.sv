// The five cycle counters: cleared by clear_i, then each counts the cycles in which its input is
// high, at most one at a time, and total_o those in which any is. They stand still when all inputs
// are low.
`default_nettype none
module counters #(
    parameter int WIDTH = 32
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             clear_i,
    input  logic             matrix_i,
    input  logic             dma_i,
    input  logic             vector_i,
    input  logic             control_i,
    output logic [WIDTH-1:0] total_o,
    output logic [WIDTH-1:0] matrix_o,
    output logic [WIDTH-1:0] dma_o,
    output logic [WIDTH-1:0] vector_o,
    output logic [WIDTH-1:0] control_o
);

  logic any;

  assign any = matrix_i || dma_i || vector_i || control_i;

  always_ff @(posedge clk_i)
    if (rst_i || clear_i) begin
      total_o   <= '0;
      matrix_o  <= '0;
      dma_o     <= '0;
      vector_o  <= '0;
      control_o <= '0;
    end else begin
      if (any) total_o <= total_o + WIDTH'(1);
      if (matrix_i) matrix_o <= matrix_o + WIDTH'(1);
      else if (dma_i) dma_o <= dma_o + WIDTH'(1);
      else if (vector_i) vector_o <= vector_o + WIDTH'(1);
      else if (control_i) control_o <= control_o + WIDTH'(1);
    end

endmodule
`default_nettype wire
