// Runs the bench like Verilator's own main, then writes the line coverage to +coverage=FILE (the
// main that Verilator 5.006 makes with --binary writes none).
#include <cstring>
#include <memory>

#include "Vtb.h"
#include "verilated.h"
#include "verilated_cov.h"

int main(int argc, char** argv) {
    const auto context = std::make_unique<VerilatedContext>();
    context->commandArgs(argc, argv);
    const auto bench = std::make_unique<Vtb>(context.get());
    while (!context->gotFinish()) {
        bench->eval();
        if (!bench->eventsPending()) break;
        context->time(bench->nextTimeSlot());
    }
    bench->final();
    const char* const found = context->commandArgsPlusMatch("coverage=");
    if (*found) context->coveragep()->write(found + std::strlen("+coverage="));
    return 0;
}
