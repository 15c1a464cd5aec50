// Opcodes, fields and constants of GA2.
// Made from src/capra/isa/spec.py and numerics.py by `python -m capra.isa.emit`.
`default_nettype none
package ga2_pkg;
  localparam int INSTRUCTION_BITS = 160;
  localparam int OPCODE_BITS = 4;
  localparam int ARRAY_SIZE = 4;
  localparam int SCRATCHPAD_ADDRESS_BITS = 20;
  localparam int EXTERNAL_ADDRESS_BITS = 24;
  localparam int INT8_MAX = 127;
  localparam int MULTIPLIER_BITS = 16;
  localparam int EXP_TABLE_BITS = 8;
  localparam int EXP_BITS = 16;
  localparam int RECIPROCAL_BITS = 47;
  localparam int RECIPROCAL_SHIFT = 32;

  // HALT: stop; the counters freeze
  localparam logic [3:0] OP_HALT = 4'd0;

  // LD: load n words from external memory into the scratchpad
  localparam logic [3:0] OP_LD = 4'd1;
  localparam int LD_D_LSB = 4, LD_D_BITS = 20;
  localparam int LD_S_LSB = 24, LD_S_BITS = 24;
  localparam int LD_N_LSB = 48, LD_N_BITS = 20;

  // ST: store n words from the scratchpad into external memory
  localparam logic [3:0] OP_ST = 4'd2;
  localparam int ST_D_LSB = 4, ST_D_BITS = 24;
  localparam int ST_S_LSB = 28, ST_S_BITS = 20;
  localparam int ST_N_LSB = 48, ST_N_BITS = 20;

  // MM: one tile of a matrix product: int8 operands (the low byte of each word), int32 sums
  localparam logic [3:0] OP_MM = 4'd3;
  localparam int MM_D_LSB = 4, MM_D_BITS = 20;
  localparam int MM_A_LSB = 24, MM_A_BITS = 20;
  localparam int MM_B_LSB = 44, MM_B_BITS = 20;
  localparam int MM_M_LSB = 64, MM_M_BITS = 3;
  localparam int MM_N_LSB = 67, MM_N_BITS = 3;
  localparam int MM_K_LSB = 70, MM_K_BITS = 16;
  localparam int MM_SD_LSB = 86, MM_SD_BITS = 16;
  localparam int MM_SA_LSB = 102, MM_SA_BITS = 16;
  localparam int MM_SB_LSB = 118, MM_SB_BITS = 16;
  localparam int MM_T_LSB = 134, MM_T_BITS = 1;
  localparam int MM_ACC_LSB = 135, MM_ACC_BITS = 1;

  // RQ: requantize r x c words to int8: multiply, shift, saturate, relu if asked
  localparam logic [3:0] OP_RQ = 4'd4;
  localparam int RQ_D_LSB = 4, RQ_D_BITS = 20;
  localparam int RQ_S_LSB = 24, RQ_S_BITS = 20;
  localparam int RQ_R_LSB = 44, RQ_R_BITS = 16;
  localparam int RQ_C_LSB = 60, RQ_C_BITS = 16;
  localparam int RQ_SD_LSB = 76, RQ_SD_BITS = 16;
  localparam int RQ_SS_LSB = 92, RQ_SS_BITS = 16;
  localparam int RQ_MUL_LSB = 108, RQ_MUL_BITS = 16;
  localparam int RQ_SH_LSB = 124, RQ_SH_BITS = 6;
  localparam int RQ_RELU_LSB = 130, RQ_RELU_BITS = 1;

  // VADD: saturating int8 sum of two vectors (the low byte of each word)
  localparam logic [3:0] OP_VADD = 4'd5;
  localparam int VADD_D_LSB = 4, VADD_D_BITS = 20;
  localparam int VADD_A_LSB = 24, VADD_A_BITS = 20;
  localparam int VADD_B_LSB = 44, VADD_B_BITS = 20;
  localparam int VADD_N_LSB = 64, VADD_N_BITS = 20;

  // SM: softmax of one row of n int8 scores (the low byte of each word), result in Q0.15
  localparam logic [3:0] OP_SM = 4'd6;
  localparam int SM_D_LSB = 4, SM_D_BITS = 20;
  localparam int SM_S_LSB = 24, SM_S_BITS = 20;
  localparam int SM_N_LSB = 44, SM_N_BITS = 16;
  localparam int SM_MUL_LSB = 60, SM_MUL_BITS = 16;
  localparam int SM_SH_LSB = 76, SM_SH_BITS = 6;

  // AMAX: index of the first maximum of a row of n 32-bit words
  localparam logic [3:0] OP_AMAX = 4'd7;
  localparam int AMAX_D_LSB = 4, AMAX_D_BITS = 20;
  localparam int AMAX_S_LSB = 24, AMAX_S_BITS = 20;
  localparam int AMAX_N_LSB = 44, AMAX_N_BITS = 16;

endpackage
`default_nettype wire
